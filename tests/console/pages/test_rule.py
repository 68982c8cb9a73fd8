"""The page of a rule: its use with the window of the accesses, and nothing that is not known."""

from urllib.parse import parse_qsl

import pytest
from attrs import evolve

from aclog.analysis.lint.finding import Severity
from aclog.authorizer.acl import StandardAcl, acl_text
from aclog.console.findings import NEEDED, Kind, LookResult, Need, Use, Uses
from aclog.console.login.guard import Own
from aclog.console.pages.page import Facts, Links, Mark, Page, Parameters, draft_url, rule_url
from aclog.console.pages.rule import stated_rule
from aclog.console.pages.states import Console
from tests.support.builders.acls import acl
from tests.support.web.consoles import column, console_of, table, view
from tests.support.web.finders import HeldFinder, item, watched
from tests.support.web.points import HeldSource, image_of

USED, UNTIMED, UNUSED, YOUNG = (acl(name, f"User:{name}") for name in ("used", "untimed", "unused", "young"))
LATER = acl("later", "User:later")
USES = Uses(
    by_rule={
        UNUSED: Use(is_unused=True, text="never matched", verdict="Not used", detail="no access matched the rule"),
        YOUNG: Use(is_unused=False, text="too young; x", detail="too young", why="too young", brief="not judged"),
    },
    is_judged={USED, UNTIMED, UNUSED, YOUNG}.__contains__,
    last_need={USED: Need(time="2026-11-19T22:40:00.000Z", principal="User:used")}.get,
    since="2026-09-01T10:00:00.000Z",
    until="2026-11-30T10:00:00.000Z",
    sources="brokers: 1, 2",
    notes=("no accesses on 2026-10-01",),
)
FOUND = LookResult(items=(item("never matched", UNUSED, kind=Kind.UNUSED),), uses=USES)


@pytest.fixture
def console() -> Console:
    return watched(
        console_of(HeldSource(image_of(USED, UNTIMED, UNUSED, YOUNG, LATER))), {Kind.UNUSED: HeldFinder(FOUND)}
    )


def page_of(console: Console, rule: StandardAcl, **more: str) -> Page:
    path, _, query = rule_url(rule).partition("?")
    return view(console, path, **dict(parse_qsl(query)), **more)


def facts(page: Page) -> dict[str, str]:
    [found] = [part for part in page.parts if isinstance(part, Facts)]
    return {name: cell.whole for name, cell in found.items}


def scan(console: Console) -> Console:
    assert console.lookout is not None
    console.lookout.round()
    return console


@pytest.mark.parametrize(
    ("rule", "answer", "mark"),
    [
        (
            USED,
            f"Used: last 2026-11-19T22:40:00.000Z by User:used; {NEEDED}.",
            Mark.GOOD,
        ),
        (UNTIMED, f"Used: {NEEDED}.", Mark.GOOD),
        (UNUSED, "Not used from 2026-09-01 to 2026-11-30: no access matched the rule.", Mark.WARNING),
        (YOUNG, "Not judged from 2026-09-01 to 2026-11-30: too young.", Mark.QUIET),
        (LATER, "Use unknown: the accesses were counted before this rule was added.", Mark.QUIET),
    ],
)
def test_the_use_of_a_rule_has_its_window_and_its_premises(console: Console, rule, answer, mark) -> None:
    page = page_of(scan(console), rule)
    assert (page.title, page.answer, page.mark) == (acl_text(rule), answer, mark)
    assert facts(page)["Accesses"].splitlines() == [
        "2026-09-01T10:00:00.000Z to 2026-11-30T10:00:00.000Z; brokers: 1, 2",
        "no accesses on 2026-10-01",
    ]


def test_a_row_has_the_day_of_the_last_use_and_the_link_to_its_rule(console: Console) -> None:
    page = view(scan(console), "/rules")
    uses = dict(zip(column(page, "rules", "principal"), column(page, "rules", "use"), strict=True))
    assert uses == {
        "User:used": "last used 2026-11-19",
        "User:untimed": "needed",
        "User:unused": "never matched",
        "User:young": "not judged",
        "User:later": "unknown",
    }
    at = [each.key for each in table(page, "rules").columns].index("use")
    urls = {row.cells[1].text: row.cells[at].url for row in table(page, "rules").rows}
    assert urls["User:used"] == rule_url(USED)
    assert urls["User:later"] is None


def test_before_the_scan_the_use_is_unknown(console: Console) -> None:
    page = page_of(console, UNUSED)
    assert (page.answer, page.mark) == ("Use unknown: being scanned.", Mark.QUIET)
    assert "Accesses" not in facts(page)


def test_without_an_access_log_the_page_names_the_flag() -> None:
    lacking = {Kind.UNUSED: "no access log and no index: pass --index DIR or --accesses PATH"}
    console = watched(console_of(HeldSource(image_of(USED))), {}, lacking)
    assert page_of(console, USED).answer == f"Use unknown: {lacking[Kind.UNUSED]}."


def test_a_viewer_of_own_rules_sees_neither_use_nor_findings(console: Console) -> None:
    scan(console)
    own = evolve(console, lookout=None, own=Own(principal="User:unused"))
    page = page_of(own, UNUSED)
    assert (page.answer, page.mark) == ("Its use is not shown here.", Mark.QUIET)
    assert [each.key for each in page.tables()] == []
    [links] = [part for part in page.parts if isinstance(part, Links)]
    assert not [cell for cell in links.links if str(cell.url).startswith("/draft")]


def test_it_has_its_findings_and_the_draft_of_its_removal(console: Console) -> None:
    page = page_of(scan(console), UNUSED)
    assert column(page, "findings", "finding") == ["never matched"]
    [links] = [part for part in page.parts if isinstance(part, Links)]
    assert draft_url(UNUSED, added=False) in [cell.url for cell in links.links]
    assert page_of(console, USED).tables() == ()


def test_its_findings_are_in_lines_the_most_severe_first(console: Console) -> None:
    lint = LookResult(
        items=(item("08 shadowed", USED), evolve(item("02 glob", USED, severity=Severity.ERROR), text="one\ntwo"))
    )
    both = watched(console, {Kind.LINT: HeldFinder(lint)})
    page = page_of(scan(both), USED)
    assert column(page, "findings", "finding") == ["02 glob", "08 shadowed"]
    assert table(page, "findings").rows[0].cells[2].whole == "one\ntwo"
    assert [cell.text for cell in table(page, "findings").rows[0].cells[2].others] == ["two"]


def test_a_rule_that_is_not_there_is_not_called_unused(console: Console) -> None:
    other = acl("other", "User:other")
    page = page_of(scan(console), other)
    assert (page.answer, page.mark) == ("No such rule in this state.", Mark.QUIET)
    [links] = [part for part in page.parts if isinstance(part, Links)]
    assert draft_url(other, added=True) in [cell.url for cell in links.links]


def test_a_filter_is_a_rule_only_if_it_states_all_of_one() -> None:
    values = dict(parse_qsl(rule_url(USED).partition("?")[2]))
    assert stated_rule(Parameters(values)) == USED
    for name in values:
        assert stated_rule(Parameters({key: value for key, value in values.items() if key != name})) is None
    assert stated_rule(Parameters({**values, "q": "x"})) is None
