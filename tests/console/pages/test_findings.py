"""What the page of findings says, and what it does not pretend to know."""

from datetime import date
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from aclog.analysis.lint.finding import Severity
from aclog.analysis.lint_report import PlacedRule, suppression_lines
from aclog.authorizer.acl import StandardAcl, object_of_rule
from aclog.console.findings import Archived, Kind, LookResult, Use, Uses
from aclog.console.pages.page import BadParameterError, Facts, Lines, Mark, Page, rule_url
from aclog.console.pages.states import Console
from aclog.metalog.errors import ConfigError
from aclog.sources.repository import read_suppressions
from tests.support.builders.acls import acl
from tests.support.web.consoles import cells, column, console_of, look, table, view
from tests.support.web.finders import Clock, HeldFinder, item, watched
from tests.support.web.points import HeldSource, image_of

ALICE, BOB = acl("orders", "User:alice"), acl("billing", "User:bob")
ACCEPTED = Archived(reason="it is wanted", expires=date(2027, 1, 31), where="aclog.toml:9")
LINT = LookResult(
    items=(item("08 shadowed", ALICE), item("02 glob", BOB, severity=Severity.ERROR, advice="PREFIXED covers all")),
    archived=(item("13 no group", ALICE, archived=ACCEPTED),),
    summary="1 error, 1 warning in 2 rules; 1 suppressed",
)
FAILING = LookResult(items=(item("billing", kind=Kind.TESTS, severity=Severity.ERROR),), summary="3 of 4 tests pass")
LACKING = {Kind.UNUSED: "no access log and no index: pass --index DIR or --accesses PATH"}


@pytest.fixture
def source() -> HeldSource:
    return HeldSource(image_of(ALICE, BOB))


@pytest.fixture
def console(source: HeldSource) -> Console:
    """One that has looked for lint and tests."""
    finders = {Kind.LINT: HeldFinder(LINT), Kind.TESTS: HeldFinder(FAILING)}
    made = watched(console_of(source), finders, LACKING)
    turn(made)
    return made


def turn(console: Console) -> None:
    assert console.lookout is not None
    console.lookout.round()


def looked(page: Page) -> dict[str, str]:
    [facts] = [part for part in page.parts if isinstance(part, Facts)]
    return {name: cell.text for name, cell in facts.items}


def test_it_has_each_finding_with_its_rules_place_and_mend(console: Console) -> None:
    page = view(console, "/findings")
    assert column(page, "findings", "kind") == ["lint", "tests", "lint"]
    assert column(page, "findings", "finding") == ["02 glob", "billing", "08 shadowed"]
    assert column(page, "findings", "severity") == ["error", "error", "warning"]
    assert column(page, "findings", "place")[2] == "a.yaml:7"
    assert column(page, "findings", "mend")[0] == "PREFIXED covers all"
    [rule] = [cell for cell in cells(page) if cell.url and "alice" in cell.url and "ALLOW" in cell.text][:1]
    assert rule.url is not None
    assert rule.url.startswith("/rules?principal=User%3Aalice&resource=orders&type=TOPIC")
    assert page.answer == "3 findings: 2 errors, 1 warning; unknown: unused rules, drift"


def test_it_says_of_which_state_the_findings_are_and_how_old(source: HeldSource) -> None:
    clock = Clock()
    console = watched(console_of(source), {Kind.LINT: HeldFinder(LINT)}, clock=clock)
    turn(console)
    clock.seconds += 4
    assert looked(view(console, "/findings"))["Lint"] == f"{LINT.summary}; of offset 0, 4 s ago"
    source.current = image_of(ALICE)
    look(console)
    assert looked(view(console, "/findings"))["Lint"].endswith("4 s ago; the rules have changed since")


def test_a_finding_is_accepted_by_the_lines_that_its_page_shows(console: Console, tmp_path: Path) -> None:
    [link] = {row.cells[-1].url for row in table(view(console, "/findings"), "findings").rows if "08" in str(row)}
    path, _, query = str(link).partition("?")
    fields = dict(parse_qsl(query))
    page = view(console, path, **fields)
    assert page.answer == "08 shadowed: enter a reason"
    assert not any(isinstance(part, Lines) for part in page.parts)
    page = view(console, path, **fields, reason='its "owner"\x7f agreed', until="2031-01-31")
    [lines] = [part for part in page.parts if isinstance(part, Lines)]
    assert lines.title == "Append to aclog.toml, and commit it"
    assert lines.lines[0] == "[[lint.ignore]]"
    file = tmp_path / "ignore.toml"
    file.write_text("\n".join(["[[ignore]]", *lines.lines[1:]]), encoding="utf-8")
    [suppression] = read_suppressions(file)
    assert (suppression.reason, suppression.expires) == ('its "owner"\x7f agreed', date(2031, 1, 31))
    assert suppression.covers("08", [PlacedRule(fields=object_of_rule(ALICE))])
    assert not suppression.covers("08", [PlacedRule(fields=object_of_rule(BOB))])
    assert not suppression.covers("02", [PlacedRule(fields=object_of_rule(ALICE))])


@pytest.mark.parametrize(
    ("fields", "why"),
    [({"accept": "gone", "reason": "r"}, "not found"), ({"reason": "r", "until": "soon"}, "until .soon.")],
)
def test_what_cannot_be_accepted_is_refused(console: Console, fields: dict[str, str], why: str) -> None:
    key = next(row.key for row in table(view(console, "/findings"), "findings").rows if "08" in str(row))
    with pytest.raises(BadParameterError, match=why):
        view(console, "/findings", **{"accept": key, **fields})


def test_a_name_that_no_toml_states_cannot_be_accepted() -> None:
    with pytest.raises(ConfigError, match="not Unicode"):
        list(suppression_lines("08", acl("a\ud800", "User:a"), "r", table="ignore", expires=None))


def test_archived_findings_stand_apart_with_reason_and_expiry(console: Console) -> None:
    page = view(console, "/findings")
    assert column(page, "archived", "finding") == ["13 no group"]
    assert column(page, "archived", "reason") == ["it is wanted"]
    assert column(page, "archived", "expires") == ["2027-01-31"]
    assert column(page, "archived", "where") == ["aclog.toml:9"]
    assert "13 no group" not in column(page, "findings", "finding")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"kind": "tests"}, ["billing"]),
        ({"severity": "error"}, ["02 glob", "billing"]),
        ({"principal": "ALICE"}, ["08 shadowed"]),
        ({"principal": "bill"}, ["billing"]),
        ({"q": "Glob"}, ["02 glob"]),
        ({"q": "a.yaml:7", "kind": "lint"}, ["02 glob", "08 shadowed"]),
        ({"q": "nothing"}, []),
    ],
)
def test_filters_leave_out_and_say_so(console: Console, asked: dict[str, str], found: list[str]) -> None:
    page = view(console, "/findings", **asked)
    assert column(page, "findings", "finding") == found
    if asked != {"kind": "tests"}:
        assert f"filtered: {len(found)} of " in table(page, "findings").note


@pytest.mark.parametrize("asked", [{"kind": "foo"}, {"severity": "bad"}, {"since": "soonish"}, {"first": "x"}])
def test_what_cannot_be_asked_is_refused(console: Console, asked: dict[str, str]) -> None:
    with pytest.raises(BadParameterError):
        view(console, "/findings", **asked)


def test_what_nobody_looks_for_is_unknown_and_no_empty_list(console: Console) -> None:
    page = view(console, "/findings", kind="unused")
    assert page.answer == "Not scanned yet"
    assert page.tables() == ()
    assert [notice.text for notice in page.notices] == [f"Unused rules: unknown: {LACKING[Kind.UNUSED]}"]
    assert "unknown" in looked(view(console, "/findings"))["Unused rules"]
    assert "only lint, failing tests" in table(view(console, "/findings"), "findings").note


def test_without_anybody_who_looks_all_is_unknown(source: HeldSource) -> None:
    page = view(console_of(source), "/findings")
    assert page.tables() == ()
    assert page.notices[0].mark is Mark.ERROR


def test_before_the_first_look_they_are_being_looked_for(source: HeldSource) -> None:
    page = view(watched(console_of(source), {Kind.LINT: HeldFinder(LINT)}), "/findings", kind="lint")
    assert page.tables() == ()
    assert [notice.text for notice in page.notices] == ["Lint: being scanned"]


def test_an_error_is_an_error_with_its_text(source: HeldSource) -> None:
    clock, finder = Clock(), HeldFinder(ConfigError("a.parquet: damaged"))
    console = watched(console_of(source), {Kind.UNUSED: finder}, clock=clock)
    turn(console)
    page = view(console, "/findings", kind="unused")
    assert page.tables() == ()
    assert "Unused rules: the newest scan failed: a.parquet: damaged" in [notice.text for notice in page.notices]
    finder.answer = LookResult(items=(item("never matched", BOB, kind=Kind.UNUSED),))
    clock.seconds += 60
    turn(console)
    assert not view(console, "/findings", kind="unused").notices
    finder.answer, source.current = ConfigError("gone"), image_of(ALICE)
    look(console)
    clock.seconds += 60
    turn(console)
    page = view(console, "/findings", kind="unused")
    assert [notice.mark for notice in page.notices] == [Mark.ERROR]
    assert "the findings shown are of offset 0" in page.notices[0].text
    assert column(page, "findings", "finding") == ["never matched"]


def test_new_findings_are_those_that_the_earlier_state_did_not_have(source: HeldSource) -> None:
    finder = HeldFinder(LINT, before=frozenset({LINT.items[0].key}))
    console = watched(console_of(source), {Kind.LINT: finder})
    turn(console)
    page = view(console, "/findings", kind="new", since="0")
    assert page.tables() == (), "which are new is not known yet"
    assert "being scanned" in page.notices[0].text
    turn(console)
    page = view(console, "/findings", kind="new", since="0")
    assert column(page, "findings", "finding") == ["02 glob"]
    assert page.answer.startswith("1 new finding: 1 error, since offset 0; unknown: ")
    assert view(console, "/findings", kind="new").answer == page.answer, "a younger log: since its beginning"
    assert column(view(console, "/findings", kind="lint", since="0"), "findings", "finding") == ["02 glob"]


def test_which_are_new_is_unknown_if_the_earlier_state_cannot_be_judged(source: HeldSource) -> None:
    console = watched(console_of(source), {Kind.LINT: HeldFinder(LINT, before=ConfigError("damaged"))})
    turn(console)
    view(console, "/findings", kind="new", since="0")
    turn(console)
    page = view(console, "/findings", kind="new", since="0")
    assert page.tables() == ()
    assert page.notices[0].text == "Lint: new ones are unknown: damaged"
    with pytest.raises(BadParameterError, match="no such state"):
        view(console, "/findings", kind="new", since="7")


def test_a_source_without_history_cannot_tell_which_are_new(
    source: HeldSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(_self: HeldSource, _moment: object) -> None:
        raise ConfigError("one state only")

    monkeypatch.setattr(HeldSource, "image_at", none)
    console = watched(console_of(source), {Kind.LINT: HeldFinder(LINT)})
    turn(console)
    page = view(console, "/findings", kind="new")
    assert page.tables() == ()
    assert page.notices[0].mark is Mark.ERROR
    assert "one state only" in page.notices[0].text


UNUSED = LookResult(
    items=(item("never matched", BOB, kind=Kind.UNUSED),),
    uses=Uses(by_rule={BOB: Use(is_unused=True, text="never matched")}, is_judged={ALICE, BOB}.__contains__),
)


@pytest.mark.parametrize(
    ("path", "asked"), [("/principal", {"name": "{}"}), ("/resource", {"type": "TOPIC", "name": "{}"})]
)
def test_rules_that_are_unused_are_marked_and_what_is_unknown_is_not_called_used(
    source: HeldSource, path: str, asked: dict[str, str]
) -> None:
    young = acl("young", "User:carol")
    source.current = image_of(ALICE, BOB, young)
    console = watched(console_of(source), {Kind.UNUSED: HeldFinder(UNUSED)})

    def page(rule: StandardAcl) -> Page:
        name = rule.principal if path == "/principal" else rule.resource_name
        return view(console, path, **{key: value.format(name) for key, value in asked.items()})

    assert "use" not in [each.key for each in table(page(BOB), "rules").columns], "not known at all yet"
    turn(console)
    assert column(page(BOB), "rules", "use") == ["never matched"]
    assert [cell for cell in cells(page(BOB)) if cell.mark is Mark.UNUSED]
    assert column(page(ALICE), "rules", "use") == ["needed"]
    assert column(page(young), "rules", "use") == ["unknown"]


def test_unused_rules_lead_to_their_pages(source: HeldSource) -> None:
    console = watched(console_of(source), {Kind.UNUSED: HeldFinder(UNUSED)})
    turn(console)
    [cell] = [cell for cell in cells(view(console, "/principal", name="User:bob")) if cell.mark is Mark.UNUSED]
    assert cell.url == rule_url(BOB)
