"""What looks for findings in the console, as its flags ask: over real logs, accesses, journals and tests."""

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from aclog.authorizer.acl import NO_ORIGINS, ChangePlace
from aclog.authorizer.settings import Settings
from aclog.cli import finders
from aclog.cli.console_run import Finding
from aclog.cli.finders import LintFinder, TestsFinder
from aclog.cli.flags.commands import FindingsFlags
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.console.findings import Item, Kind, LastLook, Lookout
from aclog.console.live import LiveState
from aclog.console.pages.page import CommandLine, Page
from aclog.console.pages.states import Console, States
from aclog.metalog.errors import ConfigError
from aclog.metalog.primitives import elapsed_seconds
from aclog.ops.policies import settings_of
from aclog.sources.rule_tests import read_test_file
from tests.support.builders.acls import acl, acl_record
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import registration
from tests.support.cli.command import aclog
from tests.support.web.consoles import column, table, view

ALICE, CAROL = ("User:alice", "orders"), ("User:carol", "bill*")


def rule(principal: str, topic: str) -> dict[str, str]:
    return {
        "resourceType": "TOPIC", "resourceName": topic, "patternType": "LITERAL", "principal": principal,
        "host": "*", "operation": "READ", "permissionType": "ALLOW",
    }  # fmt: skip


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def change(log: Path, how: str, principal: str, topic: str) -> None:
    grant = ("--allow-principal", principal, "--topic", topic, "--operation", "READ")
    aclog("acls", how, "--log", log, *grant, *(("--force",) if how == "remove" else ())).ok()


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log with two rules, added one after the other."""
    monkeypatch.chdir(tmp_path)
    aclog("import", lines(tmp_path / "none"), "--log", tmp_path / "log").ok()
    change(tmp_path / "log", "add", *ALICE)
    change(tmp_path / "log", "add", *CAROL)
    return tmp_path / "log"


def rule_view(console: Console, principal: str) -> Page:
    """The page of the only rule of a principal, by the link of its use."""
    rules = table(view(console, "/principal", name=principal), "rules")
    [row] = rules.rows
    address = row.cells[[each.key for each in rules.columns].index("use")].url
    path, _, query = str(address).partition("?")
    return view(console, path, **dict(parse_qsl(query)))


@contextmanager
def console_on(source: SourceFlags, **flags: Any) -> Iterator[Console]:
    """A console that has looked once."""
    chosen = source.choose()
    live = LiveState(source=chosen.source, seconds=60, tell=lambda why: None)
    states = States(live=live, settings=Settings())
    finding = Finding(source=source, flags=FindingsFlags(**flags), authorizer=AuthorizerFlags(), choice=chosen)
    try:
        with finding.lookout(states) as lookout:
            live._look()
            lookout.round()
            yield Console(name="x", states=states, command=CommandLine(source=("--log", "log")), lookout=lookout)
    finally:
        live.stop()


def lookout_of(console: Console) -> Lookout:
    assert console.lookout is not None
    return console.lookout


def kept(console: Console, kind: Kind) -> LastLook:
    found = lookout_of(console).last_look(kind)
    assert found is not None
    return found


def items(console: Console, kind: Kind) -> tuple[Item, ...]:
    found = kept(console, kind)
    assert found.result is not None, found.error
    return found.result.items


def look_again(console: Console) -> None:
    """Let it read its source again, and look though it has not rested."""
    console.states.live._look()
    lookout_of(console)._done.clear()
    lookout_of(console).round()


def test_lint_finds_what_the_command_finds_and_where_it_stands(log: Path) -> None:
    said = [json.loads(line) for line in aclog("lint", "--log", log, "--format", "jsonl").lines]
    with console_on(SourceFlags(log=log)) as console:
        found = items(console, Kind.LINT)
        told = [(item.name[:2], item.severity.value) for item in found]
        assert told == [(one["lint"], one["severity"]) for one in said]
        assert found[0].rules[0].places_text().startswith("offset 2, ")
        looked = kept(console, Kind.LINT).result
        assert looked is not None
        assert any("skipped: check 06" in note for note in looked.notes)


def test_lint_finds_with_an_access_log_what_the_command_finds_with_it(log: Path, tmp_path: Path) -> None:
    accesses = lines(tmp_path / "accesses", access("User:Alice", -2), access("User:carol", -2, "bill*"))
    said = [json.loads(line) for line in aclog("lint", "--log", log, "--accesses", accesses, "--format", "jsonl").lines]
    assert "06" in [one["lint"] for one in said]
    with console_on(SourceFlags(log=log), accesses=[str(accesses)]) as console:
        assert [item.name[:2] for item in items(console, Kind.LINT)] == [one["lint"] for one in said]
        assert f"aclog lint --log log --accesses {accesses}" in str(view(console, "/findings", kind="lint"))
        before = lookout_of(console).finders[Kind.LINT].signature()
        accesses.write_text("\x00")
        assert lookout_of(console).finders[Kind.LINT].signature() == before, "it is read again in an hour"
    with console_on(SourceFlags(log=log), accesses=[str(accesses)]) as console:
        looked = kept(console, Kind.LINT).result
        assert looked is not None
        assert [item.name[:2] for item in looked.items] == [one["lint"] for one in said if one["lint"] != "06"]
        assert any(note.startswith("--accesses: ") for note in looked.notes)
        assert any("skipped: check 06" in note for note in looked.notes)


def test_suppressions_archive_until_they_expire_and_are_read_again(log: Path, tmp_path: Path) -> None:
    ignore = tmp_path / "ignore.toml"
    table = '[[ignore]]\nlint = "02"\nreason = "known"\nexpires = {}\n'
    ignore.write_text(table.format("2999-01-01"))
    with console_on(SourceFlags(log=log), ignore=ignore) as console:
        page = view(console, "/findings")
        assert column(page, "archived", "finding") == ["02 glob-in-name"]
        assert column(page, "archived", "expires") == ["2999-01-01"]
        assert "02 glob-in-name" not in column(page, "findings", "finding")
        lookout = lookout_of(console)
        before = lookout.finders[Kind.LINT].signature()
        ignore.write_text(table.format("2001-01-01 "))
        assert lookout.finders[Kind.LINT].signature() != before
        look_again(console)
        page = view(console, "/findings")
        assert column(page, "archived", "finding") == []
        assert "02 glob-in-name" in column(page, "findings", "finding")
        looked = kept(console, Kind.LINT).result
        assert looked is not None
        assert any("has expired" in note for note in looked.notes)


def test_suppressions_of_the_repository_count(log: Path, tmp_path: Path) -> None:
    (tmp_path / "aclog.toml").write_text('[[lint.ignore]]\nlint = "02"\nreason = "known"\n')
    with console_on(SourceFlags(log=log)) as console:
        assert column(view(console, "/findings"), "archived", "where") == ["aclog.toml:2"]


def test_new_findings_are_told_from_those_of_an_earlier_offset(log: Path) -> None:
    with console_on(SourceFlags(log=log)) as console:
        view(console, "/findings", kind="new", since="2")
        lookout_of(console).round()
        page = view(console, "/findings", kind="new", since="2")
        assert set(column(page, "findings", "rules")) == {"ALLOW User:carol READ on TOPIC LITERAL 'bill*' from *"}
        change(log, "add", "User:dan", "x[0-9]")
        look_again(console)
        page = view(console, "/findings", kind="new", since="2")
        assert any("User:dan" in text for text in column(page, "findings", "rules"))
        change(log, "remove", *CAROL)
        look_again(console)
        page = view(console, "/findings", kind="new", since="2")
        assert not any("User:carol" in text for text in column(page, "findings", "rules"))


def access(principal: str, days: float, topic: str = "orders") -> dict[str, object]:
    time = datetime.now(UTC) + timedelta(days=1 + days)
    return {
        "timestamp": time.isoformat(), "principal": principal, "host": "10.0.0.1", "operation": "READ",
        "resourceType": "TOPIC", "resourceName": topic,
    }  # fmt: skip


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of rules: in force at all times."""
    monkeypatch.chdir(tmp_path)
    return lines(tmp_path / "rules.jsonl", rule(*ALICE), rule(*CAROL))


def test_an_access_log_tells_which_rules_are_unused(rules: Path, tmp_path: Path) -> None:
    accesses = lines(tmp_path / "accesses.jsonl", *(access("User:alice", day) for day in (0, -1, -2)))
    with console_on(SourceFlags(acls=str(rules)), accesses=[str(accesses)], days=2) as console:
        [found] = items(console, Kind.UNUSED)
        assert found.name == "never matched"
        assert found.rules[0].acl.principal == "User:carol"
        assert "no access matched the rule" in found.text
        assert found.rules[0].places_text().endswith("rules.jsonl:2")
        assert console.uses is not None
        [used] = column(view(console, "/principal", name="User:alice"), "rules", "use")
        assert re.fullmatch(r"last used \d{4}-\d\d-\d\d", used)
        assert column(view(console, "/principal", name="User:carol"), "rules", "use") == ["never matched"]
        assert re.fullmatch(r"Used: last \S+Z by User:alice; .*", rule_view(console, "User:alice").answer)
        assert re.fullmatch(r"Not used from \S+ to \S+: no access .*", rule_view(console, "User:carol").answer)


def test_rules_of_a_log_that_are_too_young_are_not_judged_and_not_called_unused(log: Path, tmp_path: Path) -> None:
    accesses = lines(tmp_path / "accesses.jsonl", access("User:alice", 0))
    with console_on(SourceFlags(log=log), accesses=[str(accesses)], days=90) as console:
        assert items(console, Kind.UNUSED) == ()
        [use] = column(view(console, "/principal", name="User:carol"), "rules", "use")
        assert re.fullmatch(r"no use seen since \d{4}-\d\d-\d\d; not judged", use)
        [alice] = column(view(console, "/principal", name="User:alice"), "rules", "use")
        assert re.fullmatch(r"last use seen \d{4}-\d\d-\d\d; not judged", alice)
        assert "in force for too short a time to judge; last use seen" in rule_view(console, "User:alice").answer
        [tiles] = [part for part in view(console, "/").parts if part.key == "tiles"]
        [unused] = [cell for name, cell in tiles.items if name == "Unused"]
        assert unused.text.endswith(" not judged")
        assert unused.others[0].text == "in force for too short a time to judge"
        path, _, query = str(unused.url).partition("?")
        uses = column(view(console, path, **dict(parse_qsl(query))), "unjudged", "use")
        assert all(each.endswith("; in force for too short a time to judge") for each in uses)
        assert [each.startswith(("last use seen", "no use seen since")) for each in uses] == [True, True]
        assert view(console, path, kind="unused", format="json").command.endswith("--format table")


def test_without_a_stated_window_it_is_the_longest_in_which_a_rule_of_a_log_is_judged(tmp_path: Path) -> None:
    """As for `aclog accesses usage`: all rules are younger than 90 days."""
    born = int((datetime.now(UTC) - timedelta(days=6)).timestamp() * 1000)
    write_log(
        tmp_path / "log",
        [acl_record(1, acl("orders", "User:alice")), acl_record(2, acl("billing", "User:carol"))],
        times=[born],
    )
    accesses = lines(tmp_path / "accesses.jsonl", *(access("User:alice", day) for day in (0, -1, -2, -3)))
    with console_on(SourceFlags(log=tmp_path / "log"), accesses=[str(accesses)]) as console:
        [found] = items(console, Kind.UNUSED)
        assert (found.name, found.rules[0].acl.principal) == ("never matched", "User:carol")
        looked = kept(console, Kind.UNUSED).result
        assert looked is not None
        assert "all rules were first seen in the last 90 days of the access log: the window has 7 days" in looked.notes
        assert view(console, "/findings", kind="unused").command.endswith("--format table")
    with console_on(SourceFlags(log=tmp_path / "log"), accesses=[str(accesses)], days=30) as console:
        assert items(console, Kind.UNUSED) == ()
        assert len(column(view(console, "/findings", kind="unused"), "unjudged", "rule")) == 2


def test_an_index_tells_it_too_and_a_log_proves_it(rules: Path, tmp_path: Path) -> None:
    accesses = lines(tmp_path / "accesses.jsonl", *(access("User:alice", day / 4) for day in range(-12, 1)))
    index = tmp_path / "index"
    aclog("usage-index", "--acls", rules, "--accesses", accesses, "--index", index).ok()
    flags = {"index": index, "days": 1}
    with console_on(SourceFlags(acls=str(rules)), **flags, accesses=[str(accesses)]) as console:
        [found] = items(console, Kind.UNUSED)
        assert found.rules[0].acl.principal == "User:carol"
        looked = kept(console, Kind.UNUSED).result
        assert looked is not None
        assert "decided again without the removable rules: all the same" in looked.summary
    with console_on(SourceFlags(acls=str(rules)), **flags) as console:
        assert len(items(console, Kind.UNUSED)) == 1


def test_a_log_proves_what_an_index_says_by_the_kafka_that_its_brokers_ran(tmp_path: Path) -> None:
    """The log has an access that the index does not know, and that only a range allows."""
    given = (acl("orders", "User:alice"), acl("orders", "User:carol", "10.0.0.0/8"))
    log, index = tmp_path / "log", tmp_path / "index"
    acls = [acl_record(number, each) for number, each in enumerate(given)]
    write_log(log, [registration(1, 30), *acls], [registration(1, 33)])
    known = [access("User:alice", day / 4) for day in range(-12, 1)]
    accesses = lines(tmp_path / "accesses.jsonl", *known)
    aclog("usage-index", "--log", log, "--accesses", accesses, "--index", index).ok()
    flags = {"index": index, "days": 1, "accesses": [str(accesses)]}
    with console_on(SourceFlags(log=log), **flags) as console:
        looked = kept(console, Kind.UNUSED).result
        assert looked is not None
        assert "decided again without the removable rules: all the same" in looked.summary
    lines(accesses, *known, access("User:carol", -0.1))
    with console_on(SourceFlags(log=log), **flags) as console:
        found = kept(console, Kind.UNUSED)
        assert found.result is None
        assert "1 access would be decided differently without the removable rules, such as User:carol" in str(
            found.error
        )


def test_an_access_of_a_log_is_judged_by_the_kafka_of_its_own_time(tmp_path: Path) -> None:
    """The brokers of the newest state take no host for a range; those at the time of the access did."""
    log = tmp_path / "log"
    ranged = acl_record(0, acl("orders", "User:carol", "10.0.0.0/8"))
    now = int(datetime.now(tz=UTC).timestamp() * 1000)
    day = 86_400_000
    write_log(log, [registration(1, 33), ranged], [registration(1, 30)], times=[now - 30 * day, now - day])
    accesses = lines(tmp_path / "accesses.jsonl", access("User:carol", -4), access("User:alice", -0.1))
    with console_on(SourceFlags(log=log), days=10, accesses=[str(accesses)]) as console:
        assert items(console, Kind.UNUSED) == ()
    lines(accesses, access("User:carol", -0.5), access("User:alice", -0.1))
    with console_on(SourceFlags(log=log), days=10, accesses=[str(accesses)]) as console:
        (unused,) = items(console, Kind.UNUSED)
        assert "10.0.0.0/8" in str(unused)


@pytest.mark.parametrize("host", ["app1.example.org", 5])
def test_a_rule_that_an_unread_access_may_need_is_not_judged(rules: Path, tmp_path: Path, host: object) -> None:
    known = [access("User:alice", day / 4) for day in range(-12, 1)]
    unread = access("User:carol", -0.1) | {"host": host}
    accesses, index = lines(tmp_path / "accesses.jsonl", *known, unread), tmp_path / "index"
    aclog("usage-index", "--acls", rules, "--accesses", accesses, "--index", index).ok()
    for flags in ({"accesses": [str(accesses)], "days": 2}, {"index": index, "days": 1}):
        with console_on(SourceFlags(acls=str(rules)), **flags) as console:
            assert items(console, Kind.UNUSED) == ()
            [use] = column(view(console, "/principal", name="User:carol"), "rules", "use")
            assert use == "not judged"
            answer = rule_view(console, "User:carol").answer
            assert answer.endswith(": it may apply to 1 access that could not be read or decided.")
            assert rule_view(console, "User:alice").answer.startswith("Used: last ")
            looked = kept(console, Kind.UNUSED).result
            assert looked is not None
            assert "1 not judged" in looked.summary
            assert any("1 access could not be read or decided" in note for note in looked.notes)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"accesses": ["gone.jsonl"]}, "gone.jsonl"),
        ({"accesses": ["rules.jsonl"]}, "no access has a timestamp"),
        ({"index": Path("gone")}, "gone"),
        ({"tests": ["gone.yaml"]}, "gone.yaml"),
    ],
)
def test_files_that_fail_are_errors_on_the_page(rules: Path, flags: dict[str, Any], said: str) -> None:
    with console_on(SourceFlags(acls=str(rules)), **flags) as console:
        kind = "tests" if "tests" in flags else "unused"
        page = view(console, "/findings", kind=kind)
        assert page.tables() == ()
        assert any(said in notice.text for notice in page.notices)
        assert column(view(console, "/findings", kind="lint"), "findings", "kind")


def test_denials_alone_do_not_make_rules_unused(rules: Path, tmp_path: Path) -> None:
    line = (
        "[2026-11-01 10:00:00,000] INFO Principal = User:alice is Denied Operation = Read from host = 10.0.0.1 on "
        "resource = Topic:LITERAL:pii for request = Fetch with resourceRefCount = 1 (kafka.authorizer.logger)\n"
    )
    (tmp_path / "kafka-authorizer.log").write_text(line * 3)
    with console_on(SourceFlags(acls=str(rules)), accesses=["kafka-authorizer.log"]) as console:
        assert "denials, by which no rule is ever needed" in str(kept(console, Kind.UNUSED).error)


def test_drift_is_told_from_the_state_that_is_shown(log: Path, tmp_path: Path) -> None:
    want, journal = tmp_path / "want.jsonl", tmp_path / "journal"
    lines(want, rule(*ALICE), rule("User:z", "z"))
    plan = ("--log", log, "--want", want, "--journal", journal, "--no-allow-everyone-if-no-acl-found")
    aclog("plan", *plan, "--adopt", "--out", tmp_path / "plan")
    aclog("apply", tmp_path / "plan", "--yes").ok()
    with console_on(SourceFlags(log=log), want=str(want), journal=journal) as console:
        assert items(console, Kind.DRIFT) == ()
        change(log, "remove", "User:z", "z")
        lines(want, rule("User:z", "z"))
        look_again(console)
        found = {item.name: item for item in items(console, Kind.DRIFT)}
        assert found.keys() == {"missing", "leftover"}
        assert "deleted by another writer" in found["missing"].text
        assert found["missing"].rules[0].places_text().endswith("want.jsonl:1")
        assert found["leftover"].rules[0].places_text().startswith("offset 1, ")
        assert found["leftover"].changes[0].added is False
        before = str(console.states.now().offset - 1)
        view(console, "/findings", kind="drift", since=before)
        lookout_of(console).round()
        page = view(console, "/findings", kind="drift", since=before)
        assert column(page, "findings", "finding") == ["missing"], "the other was left over then as well"


def test_a_file_to_which_what_is_wanted_leads_is_looked_at_again(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(finders, "elapsed_seconds", lambda: clock[0])
    elsewhere, want = tmp_path / "elsewhere", tmp_path / "want"
    elsewhere.mkdir()
    want.mkdir()
    (want / "team").symlink_to(elsewhere)
    (want / ".#rules.jsonl").symlink_to("me@host.1234:5678")
    lines(want / "own.jsonl", rule(*ALICE))
    lines(elsewhere / "more.jsonl", rule("User:z", "z"))
    with console_on(SourceFlags(log=log), want=str(want), journal=tmp_path / "journal") as console:
        assert len(items(console, Kind.DRIFT)) == 1
        lookout_of(console).clock = lambda: elapsed_seconds() + 1000 * clock[0]  # it rests in between
        lines(elsewhere / "more.jsonl", rule("User:z", "z"), rule("User:y", "y"))
        clock[0] += 4
        lookout_of(console).round()
        assert len(items(console, Kind.DRIFT)) == 1, "it was read just now"
        clock[0] += 1
        lookout_of(console).round()
        assert len(items(console, Kind.DRIFT)) == 2
        lines(elsewhere / "more.jsonl", {"principal": "User:z"})
        clock[0] += 5
        lookout_of(console).round()
        assert "key resourceType is missing" in str(kept(console, Kind.DRIFT).error)


def test_drift_takes_a_place_and_a_journal(log: Path, rules: Path) -> None:
    for source, flags in (
        (SourceFlags(log=log), {"want": "rules.jsonl"}),
        (SourceFlags(acls=str(rules)), {"want": "rules.jsonl", "journal": Path("j")}),
    ):
        with pytest.raises(ConfigError), console_on(source, **flags):
            pass


def test_failing_tests_are_told_with_what_is_so_instead(log: Path, tmp_path: Path) -> None:
    tests = tmp_path / "tests.yaml"
    tests.write_text("tests:\n- name: alice\n  principal: User:alice\n  can: {READ: [topic:orders, topic:pii]}\n")
    with console_on(SourceFlags(log=log), tests=[str(tests)]) as console:
        [found] = items(console, Kind.TESTS)
        assert (found.name, found.place) == ("alice", f"{tests}:4")
        assert "expected: User:alice can READ topic:pii" in found.text
        assert "found: User:alice: READ on TOPIC pii is denied" in found.text
        assert "--topic pii" in found.advice
        looked = kept(console, Kind.TESTS).result
        assert looked is not None
        assert looked.summary == "1 of 2 tests pass"
        change(log, "add", "User:alice", "pii")
        look_again(console)
        assert items(console, Kind.TESTS) == ()
        change(log, "remove", *ALICE)
        look_again(console)
        before = str(console.states.now().offset - 1)
        view(console, "/findings", kind="tests", since=before)
        lookout_of(console).round()
        assert len(column(view(console, "/findings", kind="tests", since=before), "findings", "finding")) == 1


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (AuthorizerFlags(), (True, {"User:root"})),
        (AuthorizerFlags(kafka_version="4.3.1"), (False, {"User:root"})),
        (AuthorizerFlags(cidr=False), (False, {"User:root"})),
        (AuthorizerFlags(super_users=""), (True, set())),
    ],
)
def test_a_flag_wins_over_what_a_file_of_tests_states(
    flags: AuthorizerFlags, expected: tuple[bool, set[str]], tmp_path: Path
) -> None:
    path = tmp_path / "tests.yaml"
    path.write_text(
        "cidr: true\nsuper-users: [User:root]\ntests: [{name: a, principal: User:a, cannot: {READ: ['topic:t']}}]\n"
    )
    finder = TestsFinder(files=[str(path)], authorizer=flags, origins=NO_ORIGINS, place=ChangePlace())
    settings = finder.settings_for(settings_of(flags), read_test_file(str(path)).settings)
    assert (settings.cidr, settings.super_users) == expected
    assert settings.is_kafka_stated


@pytest.mark.slow(2)
def test_many_rules_are_linted_in_a_process_of_their_own(log: Path) -> None:
    with console_on(SourceFlags(log=log)) as console:
        finder = lookout_of(console).finders[Kind.LINT]
        assert isinstance(finder, LintFinder)
        here = finder.look(console.states.now())
        finder.apart = 0
        apart = finder.look(console.states.now())
        assert (apart.items, apart.notes) == (here.items, here.notes)
        assert here.items


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        ("lint", {"ignore": Path("ignore.toml")}),
        ("unused", {"accesses": ["accesses.jsonl"], "days": 3}),
        ("unused", {"index": Path("index")}),
        ("drift", {"want": "rules.jsonl", "journal": Path("journal")}),
        ("tests", {"tests": ["tests.yaml"]}),
    ],
)
def test_the_command_that_it_names_is_one_that_says_the_same(
    log: Path, tmp_path: Path, kind: str, flags: dict[str, Any]
) -> None:
    (tmp_path / "ignore.toml").write_text('[[ignore]]\nlint = "02"\nreason = "known"\n')
    (tmp_path / "tests.yaml").write_text("tests:\n- {principal: User:alice, can: {READ: [topic:pii]}}\n")
    lines(tmp_path / "rules.jsonl", rule(*ALICE))
    accesses = lines(tmp_path / "accesses.jsonl", access("User:alice", 0))
    aclog("usage-index", "--log", log, "--accesses", accesses, "--index", tmp_path / "index").ok()
    with console_on(SourceFlags(log=log), **flags) as console:
        command = view(console, "/findings", kind=kind).command
        assert command is not None
        words = shlex.split(command)
        assert words[0] == "aclog"
        assert aclog(*words[1:]).code in (0, 1)


@pytest.mark.parametrize("flags", [{"tests": ["-"]}, {"accesses": ["-"]}, {"want": "-"}, {"ignore": Path("-")}])
def test_what_is_read_again_cannot_be_stdin(log: Path, flags: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="again and again"), console_on(SourceFlags(log=log), **flags):
        pass
