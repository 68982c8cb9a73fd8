"""`aclog.lint`, `test`, `review`, `plan`, `diff`, `check` and `sync` return what their commands print as JSON."""

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

import aclog
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog as command
from tests.support.fakes.broker import FakeBroker
from tests.support.review.pull_requests import PULL_REQUESTS, apply, write_main

LOG = Path(__file__).parents[1] / "data/kafka-4.3.1-small/__cluster_metadata-0"
TESTS = "tests/rules.yaml"


@pytest.fixture(autouse=True)
def _in_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a repository of rules whose main branch has been left."""
    monkeypatch.chdir(write_main(tmp_path / "repository").path)
    apply(PULL_REQUESTS[0], Path())


@frozen
class Same:
    """A command line, and the call that returns what it prints."""

    line: str
    call: Callable[[], aclog.Report]


ASKED = "--operation READ --topic *"
CASES = (
    Same("lint --acls kafka --topics topics.txt", lambda: aclog.lint("kafka", topics="topics.txt")),
    Same(f"lint --log {LOG} --select 08,11", lambda: aclog.lint(LOG, select=["08", "11"])),
    Same(f"lint --log {LOG} --fail-on never", lambda: aclog.lint(aclog.open_log(LOG), fail_on="never")),
    Same(f"test {TESTS} --acls kafka", lambda: aclog.test(TESTS, rules="kafka")),
    Same(
        f"test {TESTS} --acls kafka --coverage --mutate --super-users User:admin",
        lambda: aclog.test(TESTS, rules="kafka", coverage=True, mutate=True, super_users="User:admin"),
    ),
    Same("review kafka --base main", lambda: aclog.review("kafka", base="main")),
    Same(
        f"review kafka --base main --tests {TESTS} --accesses accesses.jsonl --fail-on never",
        lambda: aclog.review("kafka", base="main", tests=[TESTS], accesses="accesses.jsonl", fail_on="never"),
    ),
    Same(f"plan --log {LOG} --want kafka --journal j", lambda: aclog.plan("kafka", journal="j", log=LOG)),
    Same("diff --ref main:kafka --to-acls kafka", lambda: aclog.diff(aclog.open_acls(ref="main:kafka"), "kafka")),
    Same(
        "diff --ref main:kafka --to-acls kafka --topics topics.txt --super-users User:a;User:b --kafka-version 4.4",
        lambda: aclog.diff(
            aclog.open_acls(ref="main:kafka"),
            "kafka",
            topics="topics.txt",
            super_users=["User:a", "User:b"],
            kafka_version="4.4",
        ),
    ),
    Same(f"diff --log {LOG} --to-log {LOG}", lambda: aclog.diff(LOG, str(LOG))),
    Same(
        "check no-new-access --ref main:kafka --to-acls kafka",
        lambda: aclog.check("no-new-access", aclog.open_acls(ref="main:kafka"), "kafka"),
    ),
    Same(
        "check no-new-access --ref main:kafka --to-acls kafka --topic pii.*",
        lambda: aclog.check("no-new-access", aclog.open_acls(ref="main:kafka"), "kafka", resources="pii.*"),
    ),
    Same(f"check equal --log {LOG} --to-log {LOG}", lambda: aclog.check("equal", LOG, LOG)),
    Same(
        f"check not-granted --log {LOG} {ASKED}",
        lambda: aclog.check("not-granted", LOG, operation="READ", resources="*"),
    ),
    Same(
        f"check only --log {LOG} {ASKED} --principal User:alice",
        lambda: aclog.check("only", LOG, operation="READ", resources="*", principals="User:alice"),
    ),
    Same(
        "check not-granted --acls kafka --intent produce --topic orders --principal User:a --host 10.0.0.1",
        lambda: aclog.check(
            "not-granted",
            "kafka",
            intent="produce",
            resources=aclog.topic("orders"),
            principals=["User:a"],
            host="10.0.0.1",
        ),
    ),
    Same("check no-public --acls kafka", lambda: aclog.check("no-public", "kafka")),
)


@pytest.mark.parametrize("same", CASES, ids=lambda each: each.line.replace(str(LOG), "LOG"))
def test_a_function_returns_what_its_command_prints(same: Same, capfd: pytest.CaptureFixture[str]) -> None:
    report = same.call()
    assert capfd.readouterr() == ("", "")
    form = "jsonl" if same.line.startswith("plan") else "json"
    printed = command(*same.line.split(), "--format", form)
    objects = json.loads(printed.out) if form == "json" else list(map(json.loads, printed.lines))
    assert report.to_dicts() == objects
    assert json.loads(report.as_json()) == objects
    assert (0 if report.passed else 1) == printed.code
    said = [line.removeprefix("aclog: ").removeprefix("note: ") for line in printed.err.splitlines()]
    assert [note for note in said if note not in report.notes and "rules in" not in note] == []


def test_a_report_is_not_taken_for_its_outcome() -> None:
    report = aclog.lint("kafka")
    assert len(report) == len(list(report)) == len(str(report).splitlines())
    with pytest.raises(TypeError, match=r"report\.passed"):
        assert report


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: aclog.lint("nowhere"), "nowhere: no such file or directory"),
        (lambda: aclog.lint(3), "rules 3: expected a path"),
        (lambda: aclog.lint("kafka", config="nowhere.toml"), "nowhere.toml: no such file"),
        (lambda: aclog.lint("kafka", select=["99"]), "99"),
        (lambda: aclog.lint("kafka", semantics="odd"), "'odd' is neither"),
        (lambda: aclog.lint("kafka", super_users="alice"), "alice"),
        (lambda: aclog.test(rules="kafka"), "no test is given"),
        (lambda: aclog.review("kafka", base="nowhere"), "nowhere: this clone has no such commit"),
        (lambda: aclog.plan("kafka", journal="j"), "expected exactly one place"),
        (lambda: aclog.diff("kafka", "nowhere"), "nowhere: no such file or directory"),
        (lambda: aclog.check("equal", "kafka"), "equal: 1 state is given: expected 2"),
        (lambda: aclog.check("odd", "kafka"), "'odd' is not one of"),
        (lambda: aclog.check("only", "kafka", operation="READ", resources="t"), "expected principals"),
        (lambda: aclog.check("not-granted", "kafka", operation="READ"), "expected an operation or an intent"),
    ],
)
def test_what_cannot_be_done_is_one_line(call: Callable[[], aclog.Report], said: str) -> None:
    with pytest.raises(aclog.MetadataError) as error:
        call()
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_argument_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'odd'"):
        aclog.lint("kafka", odd=3)  # type: ignore[call-arg]


class TestSync:
    """Of a fake broker; migrations are in tests/zkstore/migration."""

    @pytest.fixture
    def broker(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBroker]:
        monkeypatch.setattr("aclog.ops.sync._SETTLE_SECONDS", 0.0)
        with FakeBroker([acl(f"topic-{number}") for number in range(20)]) as running:
            yield running

    def test_a_poll_returns_the_changes_as_the_export_of_the_history_has_them(self, broker: FakeBroker) -> None:
        first = aclog.sync(str(broker.address), "history")
        assert (first.passed, first.notes, len(first)) == (True, (), 20)
        broker.rules = [*broker.rules[2:], acl("later")]
        second = aclog.sync(bootstrap_server=str(broker.address), to=Path("history"))
        assert [each["change"] for each in second] == ["REMOVED", "REMOVED", "ADDED"]
        exported = command("export", "--log", "history", "--history", "--format", "jsonl").ok()
        assert list(map(json.loads, exported.lines)) == first.to_dicts() + second.to_dicts()
        assert len(aclog.sync(str(broker.address), "history")) == 0

    def test_a_mass_removal_is_refused_and_can_be_accepted(self, broker: FakeBroker) -> None:
        aclog.sync(str(broker.address), "history")
        broker.rules = broker.rules[:5]
        with pytest.raises(aclog.MetadataError, match="15 of 20 rules would go"):
            aclog.sync(str(broker.address), "history")
        with pytest.raises(aclog.MetadataError, match="15 of 20 rules would go"):
            aclog.sync(str(broker.address), "history", accept_removal=14)
        report = aclog.sync(str(broker.address), "history", accept_removal=15)
        assert (len(report), [note for note in report.notes if "is accepted" in note]) == (15, list(report.notes))
        broker.rules = broker.rules[:4]
        assert len(aclog.sync(str(broker.address), "history", max_removal=100)) == 1

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            ({"max_removal": 0}, "max_removal 0: expected a percentage above 0"),
            ({"max_removal": "10"}, "max_removal '10': expected a percentage"),
            ({"accept_removal": 0}, "accept_removal 0: expected a number of at least 1"),
            ({"command_config": "nowhere"}, "nowhere"),
        ],
    )
    def test_wrong_arguments(self, arguments: dict[str, Any], text: str) -> None:
        with pytest.raises(aclog.MetadataError, match=text):
            aclog.sync("127.0.0.1:1", "history", **arguments)


@pytest.mark.parametrize(
    ("mode", "sides", "text"),
    [
        ("odd", {}, "mode 'odd' is not one of"),
        ("run", {}, "expected exactly one ZooKeeper"),
        ("run", {"zookeeper": "a:1", "to_zookeeper": "a:1"}, "expected exactly one ZooKeeper"),
        ("run", {"zookeeper": "a:1"}, "expected exactly one target"),
        ("run", {"zookeeper": "a:1", "log": "a", "bootstrap_checkpoint": "b"}, "expected exactly one target"),
        ("run", {"zookeeper": "a:1", "bootstrap_checkpoint": "b", "force": True}, "force: expected only with log"),
        ("run", {"zookeeper": "a:1", "log": "a", "command_config": "b"}, "command_config: expected only with"),
        ("compare", {"zookeeper": "a:1", "log": "a", "until_quiet": 1}, "until_quiet 1: expected seconds, and only"),
        ("run", {"zookeeper": "a:1", "log": "a", "until_quiet": -1}, "until_quiet -1: expected seconds"),
        ("run", {"zookeeper": "a:1", "log": "a", "replace": "no"}, "replace 'no'"),
        ("run", {"to_zookeeper": "a:1"}, "to_zookeeper: expected log, and none of"),
        ("run", {"to_zookeeper": "a:1", "log": "a", "until_quiet": 1}, "to_zookeeper: expected log, and none of"),
        ("run", {"to_zookeeper": "a:1", "log": "a"}, "a: "),
    ],
)
def test_a_migration_with_wrong_arguments(mode: Any, sides: dict[str, Any], text: str) -> None:
    with pytest.raises(aclog.MetadataError, match=re.escape(text)):
        aclog.migrate(mode, **sides)


def test_ops_print_no_answers() -> None:
    for path in (Path(aclog.__file__).parent / "ops").rglob("*.py"):
        imports = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom))
        names = {each.name for node in imports if node.module == "aclog.terminal.output" for each in node.names}
        assert not names & {"say", "emit", "complain"}, path
