"""The base package: what it takes, how large that is, and that it does without every extra."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Environment
from tests.packaging.requirements import files, needed, requirements

pytestmark = pytest.mark.slow(5)

LOG = ROOT / "tests" / "data" / "kafka-4.3.1-small" / "__cluster_metadata-0"
LIMIT = 150_000_000
"""Bytes that the base package and all that it needs may take on a disk, compiled Python aside."""


def pinned(name: str) -> dict[str, str]:
    """Each line that pins a package, with the hashes after it."""
    found, last = dict[str, str](), ""
    for line in (ROOT / name).read_text("utf-8").splitlines():
        if line.startswith(" "):
            found[last] += line
        else:
            last = line
            found[last] = ""
    return found


@pytest.fixture(scope="module")
def base() -> set[str]:
    return needed(requirements())


@pytest.fixture(scope="module")
def alone(base: set[str], wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment that has the wheel and what the base needs, and nothing else; no test changes it."""
    bare = Environment(tmp_path_factory.mktemp("alone") / "venv")
    (bare.packages / "dependencies.pth").unlink()
    for name in base:
        for file in files(name):
            if ".." in file.parts:
                continue
            relative = file.relative_to(next(parent for parent in file.parents if parent.name == "site-packages"))
            top = bare.packages / relative.parts[0]
            if not top.exists():
                top.symlink_to(file.parents[len(relative.parts) - 2] if len(relative.parts) > 1 else file)
    bare.install(wheel)
    return bare


def test_it_stays_small(base: set[str]):
    taken = {name: sum(file.stat().st_size for file in files(name)) for name in sorted(base)}
    ours = sum(file.stat().st_size for file in (ROOT / "aclog").rglob("*") if file.is_file() and file.suffix != ".pyc")
    assert min(taken.values()) > 0
    assert sum(taken.values()) + ours < LIMIT, taken


def test_no_extra_is_in_it(base: set[str]):
    extras = (
        needed(
            requirements(
                "kafka",
                "zookeeper",
                "parquet",
                "delta",
                "iceberg",
                "spark",
                "usage",
                "s3",
                "gcs",
                "azure",
                "query",
                "web",
                "mcp",
            )
        )
        - base
    )
    assert extras >= {"confluent-kafka", "duckdb", "kazoo", "obstore", "pandas", "pyarrow", "pyroaring", "pyspark"}
    assert "numpy" in base


def test_all_are_all_extras():
    stores = ("s3", "gcs", "azure")
    extras = ("kafka", "zookeeper", "parquet", "delta", "iceberg", "spark", "usage", *stores, "query", "web", "mcp")
    assert set(requirements("all")) == set(requirements(*extras))


def test_what_running_needs_is_pinned_as_everything_is(base: set[str]):
    running, everything = pinned("constraints-run.txt"), pinned("constraints.txt")
    assert running.items() <= everything.items()
    assert {line.partition("==")[0] for line in running} >= base


def ran(environment: Environment, where: Path, *words: str) -> tuple[int, str, str]:
    ended = environment.run("-m", "aclog", *words, cwd=where)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.tier("test")
def test_the_base_alone_reads_lints_and_decides(alone: Environment, tmp_path: Path):
    source = ("--log", str(LOG))
    code, out, error = ran(alone, tmp_path, "lint", *source, "--format", "jsonl")
    assert code == 1, error
    assert out.count("\n") > 20
    code, out, error = ran(alone, tmp_path, "authorize", *source, "--principal", "User:bob", "--operation", "READ",
                           "--topic", "orders")  # fmt: skip
    assert (code, out.split()[0], error) == (0, "ALLOWED", "")


def test_the_base_alone_matches_expressions(alone: Environment, tmp_path: Path):
    code = (
        "from aclog.sources.formats.jikkou import matching\n"
        "from aclog.sources.formats.terraform.functions import replace_all\n"
        "print(matching('a+', ['a', 'ab']), replace_all('(b)(x)?', 'abc', '<$1$2>'))"
    )
    ended = alone.run("-c", code, cwd=tmp_path)
    assert ended.stdout == "['a'] a<b>c\n", ended.stderr


NEEDS = (
    (("lint", "--log", str(LOG), "--accesses", "seen.parquet"), "parquet"),
    (("diff", "--log", str(LOG), "--to-log", str(LOG), "--accesses", "seen.parquet"), "parquet"),
    (("usage", "--log", str(LOG), "--accesses", "seen.parquet"), "usage"),
    (("unused", "--log", str(LOG), "--index", "."), "usage"),
    (("coverage", "--index", "."), "usage"),
    (("usage-index", "--log", str(LOG), "--accesses", "seen.parquet", "--index", "."), "usage"),
    (("plan", "--log", str(LOG), "--want", "w", "--journal", "j", "--accesses", "."), "usage"),
    (("query", "SELECT 1", str(LOG)), "query"),
    (("spark", "history", "--log", str(LOG), "--out", "out"), "spark"),
    (("spark", "suggest", "--log", str(LOG), "--accesses", "seen.parquet"), "spark"),
    (("console", "--log", str(LOG)), "web"),
    (("pdp", "--log", str(LOG)), "web"),
    (("mcp", "--log", str(LOG)), "mcp"),
    (("acls", "list", "--authorizer-properties", "zookeeper.connect=127.0.0.1:1"), "zookeeper"),
)
"""Command lines, and the extra that each needs. (`kafka`: tests/metalog/topiclog/test_settings.py.)"""


def test_what_needs_an_extra_says_which(alone: Environment, wheel: Path, tmp_path: Path):
    (tmp_path / "seen.parquet").write_bytes(b"PAR1")
    for words, extra in NEEDS:  # in one environment: making one takes longer than all of them
        code, out, error = ran(alone, tmp_path, *words)
        assert (code, out) == (2, ""), words
        assert error.splitlines()[-1].endswith(f": uv pip install --python {alone.python} '{wheel}[{extra}]'"), error
        assert "Traceback" not in error, error


def test_the_base_alone_loads_every_command(alone: Environment, tmp_path: Path):
    code = (
        "from aclog.cli.app import LazyCommand, app\n"
        "loaded = [each.load() for each in app.commands.values() if isinstance(each, LazyCommand)]\n"
        "print(len(loaded) > 30)"
    )
    ended = alone.run("-c", code, cwd=tmp_path)
    assert ended.stdout == "True\n", ended.stderr


def set_up(made: Path, pinned: str) -> subprocess.CompletedProcess[str]:
    script = str(ROOT / "packaging" / "setup_venv.py")
    return subprocess.run(
        [sys.executable, script, str(made), pinned, "what it needs"],
        cwd=ROOT, check=False, capture_output=True, text=True,
    )  # fmt: skip


def test_the_installers_script_says_what_takes_long(tmp_path: Path):
    made = tmp_path / "venv"
    made.joinpath("bin").mkdir(parents=True)
    # has pip, which fails at all else
    made.joinpath("bin", "python").write_text('#!/bin/sh\n[ "$*" = "-m pip --version" ]\n')
    made.joinpath("bin", "python").chmod(0o755)
    ended = set_up(made, "constraints-run.txt")
    assert ended.returncode == 1
    assert f"{made}: what it needs, " in ended.stdout
    assert "the environment" not in ended.stdout
    assert "exit status 1" in ended.stderr


def test_an_environment_whose_making_was_interrupted_is_completed(tmp_path: Path):
    made = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
    ended = set_up(made, str(tmp_path / "missing.txt"))
    assert "the environment" in ended.stdout
    assert "missing.txt: no such file" in ended.stderr.splitlines()[0]
    assert "No module named pip" not in ended.stderr
