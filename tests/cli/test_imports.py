"""A command imports what it needs and nothing else: what is large is there only where the table says why."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

LARGE = {
    "confluent_kafka", "cryptography", "fastavro", "kazoo", "kio", "numpy", "pandas", "prometheus_client",
    "prompt_toolkit", "pyarrow", "pydantic", "pyroaring", "pyspark", "rich", "structlog", "tree_sitter", "yaml",
}  # fmt: skip
LOG = "tests/data/kafka-4.3.1-small/__cluster_metadata-0"
RULE = (
    b'{"resourceType":"TOPIC","resourceName":"t","patternType":"LITERAL","principal":"User:a","host":"*",'
    b'"operation":"READ","permissionType":"ALLOW"}\n'
)
ACCESS = (
    b'{"timestamp":"2026-11-21T10:00:00Z","principal":"User:a","host":"10.0.0.1","operation":"READ",'
    b'"resourceType":"TOPIC","resourceName":"t","decision":"ALLOWED"}\n'
)
ASKED = "--principal User:a --operation READ --topic t"
INDEX = {"numpy": "rules are columns"}
HELP = {"rich": "help is a page with colors"}
NODE = INDEX | {
    "kio": "the wire protocol",
    "cryptography": "TLS",
    "prometheus_client": "/metrics",
    "structlog": "a node's log",
    "rich": "structlog imports it where it is installed",
}

NEEDED = {
    "--version": {},
    "--help": HELP,
    "authorize --help": HELP,
    "mirror --help": HELP,
    f"authorize --acls rules.jsonl {ASKED}": INDEX,
    f"authorize --log {LOG} {ASKED}": INDEX,
    f"authorize --acls . {ASKED}": INDEX | {"yaml": "a directory of files", "tree_sitter": "with Terraform among them"},
    f"explain --acls rules.jsonl {ASKED}": INDEX,
    "acls list --acls rules.jsonl --format jsonl": INDEX,
    "acls list --acls rules.jsonl --format table": INDEX | {"rich": "columns as wide as what they show"},
    f"log dump {LOG} --json": INDEX,
    f"log verify {LOG}": INDEX,
    f"snapshot list {LOG}": INDEX,
    "export --acls rules.jsonl --format jsonl": INDEX,
    "export --acls rules.jsonl --format avro --out state.avro": INDEX | {"fastavro": "Avro"},
    f"shell --log {LOG} ls /": INDEX,
    "who-can --acls rules.jsonl --operation READ --topic t": INDEX,
    "diff --acls rules.jsonl --to-acls rules.jsonl": INDEX,
    "lint --acls rules.jsonl": INDEX,
    "plan --log new --want rules.jsonl --journal journal": INDEX,
    "drift --log new --want rules.jsonl --journal journal": INDEX,
    "grant --log new --principal User:a --intent produce --topic t": INDEX,
    "unused --acls rules.jsonl --index none": INDEX | {"pyroaring": "days and rules as bitmaps"},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("imports")
    (directory / "rules.jsonl").write_bytes(RULE)
    (directory / "accesses.jsonl").write_bytes(ACCESS)
    (directory / "tests").symlink_to(Path("tests").absolute())
    (directory / "acls").mkdir()
    (directory / "acls/rules.jsonl").write_bytes(RULE)
    (directory / "states").mkdir()
    words = (sys.executable, "-m", "aclog", "snapshot", "create", "--log", LOG, "--out", directory / "states")
    subprocess.run(words, check=True, capture_output=True)
    return directory


def imported(words, directory, command=(sys.executable, "-m", "aclog")):
    """Run a command and return the modules that it imported, by PYTHONPROFILEIMPORTTIME's report."""
    words, environment = [*command, *words], {"PYTHONPROFILEIMPORTTIME": "1"}
    ended = subprocess.run(words, check=False, cwd=directory, capture_output=True, text=True, env=environment)
    assert "Traceback" not in ended.stderr, ended.stderr[-2000:]
    names = re.findall(r"^import time: +\d+ \| +\d+ \| +([\w.]+)$", ended.stderr, re.MULTILINE)
    assert "aclog" in names
    return set(names)


def packages(*arguments):
    return {name.partition(".")[0] for name in imported(*arguments)}


@pytest.mark.server
def test_a_node_imports_what_it_needs(place):
    assert packages(("serve", "no.properties"), place) & LARGE <= set(NODE)


@pytest.mark.parametrize("line", NEEDED)
@pytest.mark.process
def test_a_command_imports_what_it_needs(line, place):
    words = line.replace("--acls . ", "--acls acls ").split()
    assert packages(words, place) & LARGE <= set(NEEDED[line])


ABSENT = {
    "aclog.analysis.policy",
    "aclog.analysis.regions",
    "aclog.authorizer.index.odd_rules",
    "aclog.cli.flags.many_requests",
    "aclog.metalog.committed_log",
    "asyncio",
    "ctypes",
    "importlib.metadata",
    "numpy",
    "rich",
    "ssl",
}


@pytest.mark.parametrize(
    "line",
    [
        "authorize --principal User:alice --operation READ --topic t",
        "explain --principal User:alice --operation READ --topic t",
        "acls list --topic t",
    ],
)
@pytest.mark.process
def test_a_question_about_one_name_of_an_image_file_imports_neither_arrays_nor_analysis(line, place):
    (checkpoint,) = (place / "states").glob("*.checkpoint")
    assert checkpoint.with_suffix(".image").exists()
    assert not imported((*line.split(), "--snapshot", checkpoint), place) & ABSENT


ABSENT_OF_LINES = {
    "diff --acls rules.jsonl --to-acls rules.jsonl": {
        "aclog.analysis.lint.effect",
        "aclog.analysis.timeline",
        "aclog.planning.plan",
        "aclog.snapshots.history",
        "aclog.sources.formats.rule",
        "aclog.sources.git",
        "aclog.sources.logs",
        "aclog.sources.repository",
        "aclog.usage.accesses.layouts",
        "html",
        "importlib.metadata",
    },
    f"authorize --acls rules.jsonl {ASKED}": {"aclog.sources.formats.rule", "aclog.snapshots.applier"},
    "--help": {"attr", "rich._emoji_codes", "shutil"},
    "authorize --help": {"rich._emoji_codes", "shutil"},
}


@pytest.mark.parametrize("line", ABSENT_OF_LINES)
@pytest.mark.process
def test_a_command_imports_nothing_that_only_others_or_other_flags_need(line, place):
    assert not imported(line.split(), place) & ABSENT_OF_LINES[line]


@pytest.mark.process
def test_arrow_does_not_find_pandas(place):
    """It imports pandas where it is installed, as here."""
    names = imported(("usage", "--acls", "rules.jsonl", "--accesses", "accesses.jsonl"), place)
    assert "pyarrow.lib" in names
    assert not any(name.startswith("pandas.") for name in names)


@pytest.mark.process
def test_the_script_imports_no_more_than_the_module(place):
    words = ("authorize", "--acls", "rules.jsonl", *ASKED.split())
    script = Path(sys.executable).with_name("aclog")
    assert packages(words, place, (script,)) <= packages(words, place) | {"re", "__main__"}


@pytest.mark.process
def test_to_import_the_library_imports_nothing_large(place):
    assert not packages((), place, (sys.executable, "-c", "import aclog")) & LARGE


@pytest.mark.process
def test_the_librarys_authorizer_imports_columns_only(place):
    code = f"import aclog; aclog.open_log({LOG!r}).image().authorizer()"
    assert packages((), place, (sys.executable, "-c", code)) & LARGE <= {"numpy"}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("serve no.properties", marks=pytest.mark.server),
        "report --acls ../rules.jsonl",
        f"why a t ../{LOG}",
    ],
)
@pytest.mark.process
def test_a_command_leaves_an_empty_directory_empty(line, place):
    """Where hypothesis is installed, as here: it would make a directory `.hypothesis`."""
    empty = place / "empty"
    empty.mkdir(exist_ok=True)
    imported(line.split(), empty)
    assert list(empty.iterdir()) == []
