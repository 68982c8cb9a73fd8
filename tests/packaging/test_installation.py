"""Hints name where this aclog came from, and never its bare name, which anyone could register at a package index."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from aclog import installation
from aclog.installation import Installation, extra_of, install_command, needs_extra
from tests.packaging.conftest import ROOT, Environment

METADATA = """\
Metadata-Version: 2.4
Name: aclog
Version: 1
Requires-Dist: attrs>=25.1
Requires-Dist: confluent-kafka>=2.6; extra == 'kafka'
Requires-Dist: pyarrow>=18; extra == "usage"
Requires-Dist: pyroaring>=1.0 ; python_version > '3' and extra == 'usage'
"""


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    made = tmp_path / "tools" / "aclog"
    (made / "bin").mkdir(parents=True)
    return made


def read(prefix: Path, direct_url: object = None, *, pip: bool = True) -> Installation:
    folder = prefix / "aclog-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(METADATA)
    if direct_url is not None:
        (folder / "direct_url.json").write_text(json.dumps(direct_url))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(installation, "find_spec", lambda name: object() if pip else None)
        return installation.installation(PathDistribution(folder), prefix, str(prefix / "bin" / "python"))


def test_of_an_editable_checkout(prefix: Path, tmp_path: Path):
    checkout = tmp_path / "a checkout"
    checkout.mkdir()
    found = read(prefix, {"url": checkout.as_uri(), "dir_info": {"editable": True}})
    assert found.command("kafka") == f"{prefix}/bin/python -m pip install --editable '{checkout}[kafka]'"
    assert found.command() == f"{prefix}/bin/python -m pip install --editable '{checkout}'"


def test_of_a_directory_without_pip(prefix: Path, tmp_path: Path):
    found = read(prefix, {"url": tmp_path.as_uri(), "dir_info": {}}, pip=False)
    assert found.command("web", "kafka") == f"uv pip install --python {prefix}/bin/python '{tmp_path}[kafka,web]'"


def test_of_a_wheel_at_an_address(prefix: Path):
    url = "https://example.org/aclog-1-py3-none-any.whl"
    found = read(prefix, {"url": url, "archive_info": {}})
    assert found.command("kafka") == f"{prefix}/bin/python -m pip install 'aclog[kafka] @ {url}'"


def test_of_a_commit(prefix: Path):
    vcs = {"vcs": "git", "commit_id": "abc", "requested_revision": "main"}
    found = read(prefix, {"url": "https://example.org/a.git", "vcs_info": vcs, "subdirectory": "x"})
    assert found.command("web").endswith("'aclog[web] @ git+https://example.org/a.git@abc#subdirectory=x'")


@pytest.mark.parametrize(
    "direct_url", [None, {"url": "file:///no/such/aclog-1.whl", "archive_info": {}}], ids=["an index", "gone"]
)
def test_of_an_origin_that_is_unknown_or_gone_it_names_the_libraries_of_other_projects(prefix: Path, direct_url):
    found = read(prefix, direct_url)
    assert found.command("usage") == f"{prefix}/bin/python -m pip install 'pyarrow>=18' 'pyroaring>=1.0'"
    assert found.command() == f"{prefix}/bin/python -m pip install WHEEL"


def test_of_uv_tool_it_keeps_the_extras_that_are_there(prefix: Path, tmp_path: Path):
    wheel = tmp_path / "aclog-1-py3-none-any.whl"
    wheel.touch()
    receipt = f'[tool]\nrequirements = [{{ name = "aclog", extras = ["web"], path = "{wheel}" }}, {{ name = "x" }}]\n'
    (prefix / "uv-receipt.toml").write_text(receipt)
    found = read(prefix, {"url": wheel.as_uri(), "archive_info": {}}, pip=False)
    assert found.command("kafka") == f"uv tool install --force '{wheel}[kafka,web]'"
    wheel.unlink()
    assert read_again(prefix).command("kafka") == (
        f"uv pip install --python {prefix}/bin/python 'confluent-kafka>=2.6'"
    )


def read_again(prefix: Path) -> Installation:
    folder = PathDistribution(prefix / "aclog-1.dist-info")
    return installation.installation(folder, prefix, str(prefix / "bin" / "python"))


def test_of_pipx_it_injects(prefix: Path, tmp_path: Path):
    (prefix / "pipx_metadata.json").write_text("{}")
    found = read(prefix, {"url": tmp_path.as_uri(), "dir_info": {}}, pip=False)
    assert found.command("usage") == "pipx inject aclog 'pyarrow>=18' 'pyroaring>=1.0'"
    assert found.command() == f"pipx install --force {tmp_path}"


def test_of_uvx(tmp_path: Path):
    prefix = tmp_path / "uv" / "archive-v0" / "Xy"
    prefix.mkdir(parents=True)
    found = read(prefix, {"url": tmp_path.as_uri(), "dir_info": {}}, pip=False)
    assert found.command("kafka") == f"uvx --from '{tmp_path}[kafka]' aclog"


@pytest.mark.process
def test_of_sources_that_are_not_installed():
    code = (
        "import importlib.metadata as metadata, sys\n"
        "def missing(name): raise metadata.PackageNotFoundError(name)\n"
        "metadata.distribution = missing\n"
        "from aclog.installation import install_command\n"
        "print(install_command('kafka'))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ended.stdout == f"{sys.executable} -m pip install WHEEL\n"


@pytest.mark.slow(3)
def test_of_a_wheel_that_pip_has_installed(installed: Environment, wheel: Path, tmp_path: Path):
    code = "from aclog.installation import install_command; print(install_command('kafka'))"
    ended = installed.run("-c", code, cwd=tmp_path)
    assert ended.stdout.endswith(f" '{wheel}[kafka]'\n"), ended.stderr


def test_an_error_names_what_is_missing_and_the_command():
    line = needs_extra("a topic log", "confluent-kafka", "kafka")
    assert line == f"a topic log needs confluent-kafka, which is not installed: {install_command('kafka')}"
    assert [extra_of(name) for name in ("kazoo.client", "json", "", None)] == ["zookeeper", None, None, None]


def texts() -> Iterator[tuple[Path, str]]:
    folders = ("aclog", "docs", "packaging", "pyspark_aclog", ".github")
    for path in [*ROOT.glob("*"), *(path for folder in folders for path in (ROOT / folder).rglob("*"))]:
        if path.suffix in {".py", ".md", ".yml", ".yaml", ".toml", ".ipynb", ".sh", ""} and path.is_file():
            yield path, path.read_text("utf-8", errors="replace")


def test_no_text_installs_by_a_name_that_no_index_has():
    bare = re.compile(
        r"(?:pip install|uv add|uv tool install|pipx install|uvx)(?: +-[-\w]+)* +[\"']?aclog(?:-native)?"
        r"(?:[\s\"'`\[]|$)"
    )
    named = [f"{path.relative_to(ROOT)}: {each[0]}" for path, text in texts() for each in bare.finditer(text)]
    assert named == []
