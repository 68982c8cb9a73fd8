"""Stdout that is closed, as by `| head`, or full: no command says more than a line, at its end either."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
LOG = str(ROOT / "tests/data/kafka-4.3.1-small/__cluster_metadata-0")
SOURCE = ("--log", LOG)
ASKED = ("--principal", "User:bob", "--operation", "READ", "--topic", "pay")
EARLIER = (*SOURCE, "--to-as-of", "100")
ROWS = ("table", "json", "jsonl", "csv", "markdown")
COMMANDS = [
    *(("--help",), ("--version",), ("acls", "list", "--help"), ("help", "acls", "list"), ("completion", "bash")),
    *(("log", "dump", LOG), ("log", "dump", "--json", LOG), ("log", "verify", LOG), ("snapshot", "list", LOG)),
    *(("acls", "list", *SOURCE, "--format", form) for form in ("kafka", *ROWS)),
    *(("acls", "history", *SOURCE, "--format", form) for form in ROWS),
    *(("authorize", *SOURCE, *ASKED), ("explain", *SOURCE, *ASKED), ("explain", *SOURCE, *ASKED, "--format", "json")),
    *(("why", "User:bob", "pay", *SOURCE), ("why", "bob", "pay", *SOURCE, "--format", "json")),
    *(("diff", *EARLIER), ("diff", *EARLIER, "--format", "jsonl"), ("check", "equal", *EARLIER)),
    *(("check", "no-public", *SOURCE), ("when", *SOURCE, *ASKED), ("what-can", *SOURCE, "--principal", "User:bob")),
    *(("who-can", *SOURCE, "--operation", "READ", "--topic", "pay"), ("lint", *SOURCE), ("lint", "--list")),
    *(("export", *SOURCE, "--format", form) for form in ("jsonl", "avro")),
    ("export", *SOURCE, "--history", "--format", "jsonl"),
    *(("shell", *SOURCE, "tree", "/acl"), ("shell", *SOURCE, "cat", "/acl/id/*"), ("test", "--schema")),
    *(("context", "path"), ("acls", "--help"), ("spark", "--help")),
]
SESSION = """
import json, os, sys
from contextlib import suppress
from aclog.__main__ import main, run
asked, terminal, nowhere = json.load(sys.stdin), os.dup(1), os.open("/dev/null", os.O_WRONLY)
os.dup2(nowhere, 1)
for words, _ in asked:  # once here: what they import need not be imported again by each
    with suppress(SystemExit):
        run(words)
os.dup2(terminal, 1)
for number, (words, kind) in enumerate(asked):
    if (child := os.fork()) == 0:
        if kind == "full":
            out = os.open("/dev/full", os.O_WRONLY)
        else:
            reader, out = os.pipe()
            os.close(reader)
        err = os.open(f"{sys.argv[1]}/{number}", os.O_WRONLY | os.O_CREAT)
        os.dup2(out, 1), os.dup2(err, 2)
        sys.argv = ["aclog", *words]
        main()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([code, open(f"{sys.argv[1]}/{number}").read()]), flush=True)
"""


@pytest.mark.slow(12)
def test_no_command_says_more_than_one_line(tmp_path):
    asked = [*((words, "closed") for words in COMMANDS), *((words, "full") for words in COMMANDS[::3])]
    done = subprocess.run(
        [sys.executable, "-c", SESSION, str(tmp_path)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    expected = {"closed": (141, []), "full": (2, ["aclog: standard output: No space left on device"])}
    wrong = []
    for (words, kind), line in zip(asked, done.stdout.splitlines(), strict=True):
        code, said = json.loads(line)
        left = [each for each in said.splitlines() if not each.startswith(("aclog: note:", "aclog: warning:"))]
        if (code, left) != expected[kind]:
            wrong.append((kind, words, code, left))
    assert not wrong


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--version",), 0),
        (("acls", "list", *SOURCE, "--format", "json"), 0),
        (
            (
                "authorize",
                *SOURCE,
                "--principal",
                "User:star",
                "--operation",
                "READ",
                "--topic",
                "**",
                "--resource-pattern-type",
                "literal",
            ),
            0,
        ),
        (("authorize", *SOURCE, "--principal", "User:bob", "--operation", "READ", "--topic", "secret"), 1),
        (("acls", "list", "--log", "/nonesuch"), 2),
    ],
)
def test_streams_that_the_caller_closed_are_as_dev_null(words, code, tmp_path):
    command = f'cd {ROOT} && exec {sys.executable} -m aclog "$@" >&- 2>{tmp_path}/errors'
    done = subprocess.run(["/bin/sh", "-c", command, "sh", *words], check=False)
    said = (tmp_path / "errors").read_text()
    assert (done.returncode, said.count("\n")) == (code, int(code == 2)), said


def test_an_error_is_not_printed_on_stdout_if_stderr_is_closed():
    done = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m aclog acls list --log /nonesuch 2>&-"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, b"")
