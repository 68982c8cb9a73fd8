"""Completion in the real shells: a line is typed into each, with its Tabs, and runs with the arguments meant."""

import json
import sys
from collections.abc import Iterator
from subprocess import run

import pytest

from tests.support.builders.acls import acl_row
from tests.support.cli.shells import Terminal, terminal
from tests.support.processes.waiting import wait_until

# Since Python 3.12 forking a process with threads, such as a test worker, is a warning
pytestmark = [
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
    pytest.mark.slow(12),
    pytest.mark.xdist_group("shells"),
]
SHELLS = ("bash", "zsh", "fish")
NAMES = (
    "orders",
    "payments.eu",
    "payments.us",
    "name with spaces",
    "it's",
    "dol$(touch run)`touch run`",
    'quo"te',
    "glob*b?[c]",
    "注文",
    "\x1b[31mred",
)
PRINCIPALS = ("User:alice", r"User:CN=Alice Smith,OU=Eng\, x", "User:*")
LIST = "acls list --acls acls.jsonl"


@pytest.fixture(scope="module", params=SHELLS)
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    directory = tmp_path_factory.mktemp(request.param)
    rows = [
        *(acl_row(name, principal="User:bob") for name in NAMES),
        *(acl_row("orders", principal=who) for who in PRINCIPALS),
    ]
    (directory / "acls.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (directory / "some.checkpoint").touch()
    contexts = directory / "home" / ".config" / "aclog" / "config.toml"
    contexts.parent.mkdir(parents=True)
    contexts.write_text(f'[contexts.staging]\nacls = "{directory / "acls.jsonl"}"\n[contexts.prod]\nlog = "/none"\n')
    contexts.chmod(0o600)
    (directory / "logs").mkdir()
    command = [sys.executable, "-m", "aclog", "completion", request.param]
    script = run(command, capture_output=True, text=True, check=True).stdout
    with terminal(request.param, directory / "home", script, directory=directory) as opened:
        # A busy machine takes longer to read a source than a user waits; what was read once is always offered.
        wait_until(lambda: opened.arguments(f"aclog {LIST} --topic ord\t")[-1] == "orders")
        wait_until(lambda: opened.arguments("aclog -c staging acls list --principal User:al\t")[-1] == "User:alice")
        yield opened
    assert not (directory / "run").exists()  # no name was run


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("acl\t li\t", ["acls", "list"]),
        ("acls list --resource-pat\t", ["acls", "list", "--resource-pattern-type"]),
        ("authorize --operation ALTER_\t", ["authorize", "--operation", "ALTER_CONFIGS"]),
        ("export --format=av\t", ["export", "--format=avro"]),
        ("acls list --snapshot so\t", ["acls", "list", "--snapshot", "some.checkpoint"]),
        ("acls list --acls ac\t", ["acls", "list", "--acls", "acls.jsonl"]),
        (f"{LIST} --topic ord\t", [*LIST.split(), "--topic", "orders"]),
        (f"{LIST} --topic=ord\t", [*LIST.split(), "--topic=orders"]),
        (f"{LIST} --topic pay\te\t", [*LIST.split(), "--topic", "payments.eu"]),
        (f"{LIST} --topic na\t", [*LIST.split(), "--topic", "name with spaces"]),
        (f"{LIST} --topic 'na\t", [*LIST.split(), "--topic", "name with spaces"]),
        (f'{LIST} --topic "na\t', [*LIST.split(), "--topic", "name with spaces"]),
        (f"{LIST} --topic it\t", [*LIST.split(), "--topic", "it's"]),
        (f"{LIST} --topic dol\t", [*LIST.split(), "--topic", "dol$(touch run)`touch run`"]),
        (f"{LIST} --topic quo\t", [*LIST.split(), "--topic", 'quo"te']),
        (f"{LIST} --topic glob\t", [*LIST.split(), "--topic", "glob*b?[c]"]),
        (f"{LIST} --topic 注\t", [*LIST.split(), "--topic", "注文"]),
        (f"{LIST} --principal User:al\t", [*LIST.split(), "--principal", "User:alice"]),
        (f"{LIST} --principal User:CN\t", [*LIST.split(), "--principal", PRINCIPALS[1]]),
        (f"{LIST} --principal User:\\*\t", [*LIST.split(), "--principal", "User:*"]),
        (f'{LIST} --principal "User:al\t', [*LIST.split(), "--principal", "User:alice"]),
        ("-c sta\t acls list --principal User:al\t", ["-c", "staging", "acls", "list", "--principal", "User:alice"]),
        ("context use pr\t", ["context", "use", "prod"]),
    ],
)
def test_a_line_is_completed(shell: Terminal, typed: str, meant: list[str]) -> None:
    assert shell.arguments(f"aclog {typed}") == meant


def test_a_directory_is_completed(shell: Terminal) -> None:
    [*before, directory] = shell.arguments("aclog log verify lo\t")
    assert (before, directory.rstrip("/")) == (["log", "verify"], "logs")
