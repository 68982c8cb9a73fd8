"""What a user installs: one import name, whatever else is installed or lies beside the user's script."""

import zipfile
from pathlib import Path

import pytest

from tests.packaging.conftest import HANG_S, ROOT, Environment

pytestmark = pytest.mark.slow(3)

LOG = ROOT / "tests" / "data" / "kafka-4.3.1-small" / "__cluster_metadata-0"
ROOMS = ("authorizer", "credentials", "metalog", "nodes", "pipeline", "shell", "snapshots", "zkstore")


def test_the_top_level_names_are_ours_only(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        top = {name.split("/")[0] for name in archive.namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} == {"aclog", "pyspark_aclog"}


def test_the_wheel_holds_every_file_of_the_source_tree(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if not name.split("/")[0].endswith(".dist-info")}
    tree = {
        str(path.relative_to(ROOT))
        for package in ("aclog", "pyspark_aclog")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == tree


def test_links_in_the_long_description_are_absolute(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        text = archive.read(name).decode()
    assert "](https://" in text
    assert "](docs/" not in text
    assert "](ARCHITECTURE.md" not in text


@pytest.fixture
def crowded(tmp_path: Path) -> Path:
    """A user's folder in which every former top-level name of aclog means something else."""
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ROOMS[::2]:
        (folder / f"{name}.py").write_text("raise SystemExit('the user has a module of this name')\n")
    for name in ROOMS[1::2]:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise SystemExit('the user has a package of this name')\n")
    return folder


@pytest.mark.tier("test")
def test_names_in_the_users_folder_do_not_matter(installed: Environment, crowded: Path):
    script = crowded / "script.py"
    script.write_text(f"import aclog\nprint(aclog.__file__)\nprint(len(aclog.open_log({str(LOG)!r}).image()))\n")
    ran = installed.run(str(script), cwd=crowded)
    assert ran.stdout.splitlines() == [str(installed.packages / "aclog" / "__init__.py"), "68"], ran.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("acls", "list", "--log", str(LOG), "--topic", "orders"),
        ("shell", "--log", str(LOG), "ls", "/acl"),
        ("log", "verify", str(LOG)),
        ("format", "--help"),
        ("spark", "history", "--help"),
    ],
    ids=" ".join,
)
def test_the_command_runs_as_a_module_anywhere(installed: Environment, crowded: Path, command: tuple[str, ...]):
    ran = installed.run("-m", "aclog", *command, cwd=crowded)
    # the log holds rules that match nobody, which `log verify` warns of
    said = [line for line in ran.stderr.splitlines() if not line.startswith("aclog: warning: ")]
    assert (said, ran.returncode) == ([], 0)
    assert ran.stdout


def test_the_packages_of_other_distributions_stay(bare: Environment, wheel: Path, tmp_path: Path):
    for name in ROOMS:
        (bare.packages / name).mkdir()
        (bare.packages / name / "__init__.py").write_text(f"OWNER = 'another distribution: {name}'\n")
    bare.install(wheel)
    imports = "; ".join(f"import {name}; print({name}.OWNER)" for name in ROOMS)
    ran = bare.run("-c", f"import aclog; aclog.open_log({str(LOG)!r}).image(); {imports}", cwd=tmp_path)
    assert ran.stdout.splitlines() == [f"another distribution: {name}" for name in ROOMS], ran.stderr


PROGRAM = """
from datetime import UTC, datetime

import aclog
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.standard import StandardAuthorizer
from aclog.credentials.scram import ScramImage
from aclog.metalog.filelog import open_log
from aclog.metalog.records import AccessControlEntryRecord
from aclog.snapshots.publisher import recover


def allowed(path: str, principal: str, topic: str) -> bool:
    with aclog.open_log(path) as log:
        answer = log.image(datetime(2026, 11, 21, tzinfo=UTC)).authorizer().check(principal, "READ", aclog.topic(topic))
        return answer.allowed


def wrong(log: aclog.Log) -> str:
    return log.image()
"""


@pytest.mark.timeout(2 * HANG_S)
def test_a_strictly_typed_program_sees_types_in_every_module(installed: Environment, tmp_path: Path):
    modules = sorted(
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in (ROOT / "aclog").rglob("*.py")
        if path.name != "__main__.py"
    )
    program = tmp_path / "program.py"
    program.write_text("".join(f"import {module}\n" for module in modules) + PROGRAM)
    command = ("-m", "mypy", "--strict", f"--python-executable={installed.python}", "program.py")
    ran = installed.run(*command, cwd=tmp_path)
    errors = [line for line in ran.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 1, ran.stdout + ran.stderr
    assert 'Incompatible return value type (got "Image", expected "str")' in errors[0]
