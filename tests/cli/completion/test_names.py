"""Names of the source on the command line: what is offered, for how long it is kept, and what a source may cost."""

import json
import os
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import DEVNULL, run

import click
import pytest

from aclog.cli.app import LazyCommand, app
from aclog.cli.completion import NameCache, kind_of
from tests.support.builders.acls import acl_row
from tests.support.processes.waiting import wait_until

ROOT = Path(__file__).parents[3]
LOG = ROOT / "tests" / "data" / "kafka-4.3.1-small" / "__cluster_metadata-0"
NO_NAMES = {
    "--apply", "--to-context", "--workspace", "--operation", "--cluster-id", "--explain", "--ignore-broker",
    "--hash-password",
}  # fmt: skip
"""Options whose value looks like a name but is none of a source."""


def offered(home: Path, *words: str, **variables: str) -> list[str]:
    """What a process offers for the last word; it must print nothing else, and nothing on stderr."""
    config = {"ACLOG_CONFIG": str(home / "none.toml"), "ACLOG_CONTEXT": ""}
    environment = {**os.environ, **config, "_ACLOG_COMPLETE": "zsh", "XDG_CACHE_HOME": str(home / "cache"), **variables}
    command = [sys.executable, "-m", "aclog", *words]
    done = run(command, cwd=home, env=environment, capture_output=True, text=True, check=True, stdin=DEVNULL)
    assert done.stderr == ""
    return [line.split("\t")[0] for line in done.stdout.splitlines()[1:]]


def assert_offered(home: Path, names: list[str], *words: str, **variables: str) -> None:
    """What is offered once the source is read: on a busy machine that takes more than the second that a user waits."""
    found: list[str] | None = None

    def is_right() -> bool:
        nonlocal found
        found = offered(home, *words, **variables)
        return found == names

    try:
        wait_until(is_right, every=0.2)
    except AssertionError:
        assert found == names


def write(path: Path, names: Sequence[str]) -> None:
    path.write_text("".join(json.dumps(acl_row(name)) + "\n" for name in names), encoding="utf-8")


@pytest.mark.parametrize(
    ("flag", "typed", "names"),
    [
        ("--topic", "order", ["orders", "orders-abc", "orders.out"]),
        ("--principal", "User:al", ["User:alice"]),
        ("--principal", "User:late", ["User:late-user"]),  # one with credentials and no rule
        ("--group", "g", ["g-", "g-audit", "g-orders", 'group "quoted" \\back/slash']),
        ("--delegation-token", "ZBv", ["ZBvxGyG3QzGElOqW67Ma7Q"]),
    ],
)
@pytest.mark.sample(1)
@pytest.mark.process
def test_names_of_a_log(tmp_path: Path, flag: str, typed: str, names: list[str]) -> None:
    assert_offered(tmp_path, names, "acls", "list", "--log", str(LOG), flag, typed)


@pytest.mark.process
def test_a_name_with_a_star_is_offered_as_a_question_writes_it(tmp_path: Path) -> None:
    rows = [acl_row("gr*p", resourceType="GROUP"), acl_row("grown", resourceType="GROUP"), acl_row("gr*p")]
    (tmp_path / "rules.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert_offered(tmp_path, [r"gr\*p", "grown"], "who-can", "--acls", "rules.jsonl", "--group", "gr")
    assert_offered(tmp_path, ["gr*p", "grown"], "acls", "list", "--acls", "rules.jsonl", "--group", "gr")


@pytest.mark.process
def test_several_super_users(tmp_path: Path) -> None:
    asked = ("who-can", "--log", str(LOG), "--super-users", "User:root;User:al")
    assert_offered(tmp_path, ["User:root;User:alice"], *asked)


@pytest.mark.process
def test_names_are_kept_for_a_minute_and_then_read_again(tmp_path: Path) -> None:
    write(tmp_path / "acls.jsonl", ["first"])
    asked = ("acls", "list", "--acls", "acls.jsonl", "--topic", "")
    assert_offered(tmp_path, ["first"], *asked)
    write(tmp_path / "acls.jsonl", ["second"])
    assert offered(tmp_path, *asked) == ["first"]
    [kept] = (tmp_path / "cache").glob("aclog/completion/*.sqlite")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    os.utime(kept, (time.time() - 61, time.time() - 61))
    assert_offered(tmp_path, ["second"], *asked)


@pytest.mark.process
def test_a_source_that_is_gone_offers_what_was_last_known(tmp_path: Path) -> None:
    write(tmp_path / "acls.jsonl", ["known"])
    asked = ("acls", "list", "--acls", "acls.jsonl", "--topic", "")
    assert_offered(tmp_path, ["known"], *asked)
    (tmp_path / "acls.jsonl").unlink()
    [kept] = (tmp_path / "cache").glob("aclog/completion/*.sqlite")
    os.utime(kept, (time.time() - 61, time.time() - 61))
    assert offered(tmp_path, *asked) == ["known"]


@pytest.mark.process
def test_names_of_a_context(tmp_path: Path) -> None:
    write(tmp_path / "acls.jsonl", ["orders", "of-the-context"])
    config = tmp_path / "config.toml"
    config.write_text(f'[contexts.mine]\nacls = "{tmp_path / "acls.jsonl"}"\n[contexts.gone]\nlog = "/none"\n')
    config.chmod(0o600)
    known = {"ACLOG_CONFIG": str(config)}
    asked = ("acls", "list", "--topic", "o")
    found = ["of-the-context", "orders"]
    assert_offered(tmp_path, found, "-c", "mine", *asked, **known)
    assert_offered(tmp_path, found, *asked, **known, ACLOG_CONTEXT="mine")
    assert offered(tmp_path, "-c", "mine", "acls", "list", "--acls", "none", "--topic", "o", **known) == []
    for without in (("-c", "gone"), ("-c", "unknown"), ()):
        assert offered(tmp_path, *without, *asked, **known) == []
    assert (
        offered(tmp_path, "-c", "", **known) == offered(tmp_path, "acls", "list", "-c", "", **known) == ["mine", "gone"]
    )
    assert_offered(tmp_path, ["orders"], "acls", "list", "-c", "mine", "--topic", "ord", **known)
    config.chmod(0o666)  # not to be trusted
    assert offered(tmp_path, "-c", "mine", *asked, **known) == []


@pytest.mark.parametrize("flag", ["--bootstrap-server", "--bootstrap-controller"])
@pytest.mark.sample(1)
@pytest.mark.process
def test_a_server_that_never_answers_is_given_up(tmp_path: Path, flag: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert offered(tmp_path, "acls", "list", flag, address, "--topic", "") == []
        # One second of waiting, and a process that starts: the server's own limit is 30 s.
        assert time.monotonic() - begun < 30


@pytest.mark.parametrize("given", [("--acls", "-"), ("--log", "nowhere"), (), ("--log", str(LOG), "--as-of", "x")])
@pytest.mark.sample(1)
@pytest.mark.process
def test_without_a_source_that_can_be_read_nothing_is_offered(tmp_path: Path, given: tuple[str, ...]) -> None:
    assert offered(tmp_path, "acls", "list", *given, "--topic", "") == []


@pytest.mark.process
def test_a_name_that_steers_a_terminal_is_not_offered(tmp_path: Path) -> None:
    write(tmp_path / "acls.jsonl", ["red\x1b[31m", "two\nlines", "tab\tbed", "rtl\u202e", "fine"])
    assert_offered(tmp_path, ["fine"], "acls", "list", "--acls", "acls.jsonl", "--topic", "")


@pytest.mark.process
def test_a_cache_that_cannot_be_written_offers_nothing(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    assert offered(tmp_path, "acls", "list", "--log", str(LOG), "--topic", "") == []


def test_a_damaged_cache_is_read_again_in_a_minute(tmp_path: Path) -> None:
    cache = NameCache(path=tmp_path / "x.sqlite")
    cache.path.write_bytes(b"no database at all" * 100)
    assert list(cache.names("topic", "", most=10)) == []
    cache.store({"topic": ["b", "a", "注"]})
    assert list(cache.names("topic", "", most=2)) == ["a", "b"]
    assert list(cache.names("topic", "注", most=2)) == ["注"]


def test_every_option_that_takes_a_name_completes_it() -> None:
    """A new option named like these must be completed, or be said to name nothing of a source."""
    metavars = {"NAME", "TYPE:NAME", "TYPE:NAME,...", "PRINCIPAL", "ID", "USERS"}
    bare = {option.opts[0] for option in options() if option.metavar in metavars and kind_of(option) is None}
    assert bare - NO_NAMES == set()


def options() -> list[click.Option]:
    """All options of all commands."""

    def of(command: object) -> list[click.Option]:
        command = command.load() if isinstance(command, LazyCommand) else command
        if isinstance(command, click.Group):
            return [option for below in command.commands.values() for option in of(below)]
        assert isinstance(command, click.Command)
        return [each for each in command.get_params(click.Context(command)) if isinstance(each, click.Option)]

    return of(app)
