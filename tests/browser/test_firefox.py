"""Firefox, by its keyboard alone: the search, rows, filters, sorting, the draft, and the questions of five users."""

from collections.abc import Iterator

import pytest

from tests.support.web.console import ConsoleProcess
from tests.support.web.firefox import Firefox, firefox

ANSWER = "document.getElementById('answer').innerText"
FOCUS = "document.activeElement"


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    with firefox(tmp_path_factory.mktemp("firefox") / "profile") as opened:
        yield opened


@pytest.mark.parametrize("keys", ["Control+k", "/"])
def test_the_search_is_reached_and_answered(tab: Firefox, console: ConsoleProcess, keys: str) -> None:
    tab.open(f"{console.url}/rules")
    tab.press(keys)
    tab.sees(f"{FOCUS}.id === 'find'")
    tab.type("who can read pii-c")
    tab.press("ArrowDown")
    tab.press("Enter")
    tab.sees("location.pathname === '/resource'")
    tab.sees(f"{ANSWER}.includes('READ on TOPIC pii-customers: 1 principal')")


def test_rows_are_walked_filtered_and_sorted(tab: Firefox, console: ConsoleProcess) -> None:
    tab.open(f"{console.url}/rules")
    shown = "[...document.querySelectorAll('#answer tbody tr')].filter(each => each.getClientRects().length)"
    tab.sees(f"{shown}.length === 13")
    tab.press("j")
    tab.press("j")
    tab.sees(f"{FOCUS} === {shown}[1]")
    tab.press("k")
    tab.sees(f"{FOCUS} === {shown}[0]")
    tab.press("f")
    tab.type("pii-")
    tab.sees(f"{shown}.length === 2")
    tab.press("Escape")
    tab.sees(f"{shown}.length === 13")
    tab.tab_to("each.className === 'sort' && each.textContent === 'Principal'")
    tab.press("Enter")
    tab.sees("document.querySelector('#answer th[aria-sort=ascending]').innerText.startsWith('Principal')")
    names = f"{shown}.map(each => each.cells[1].innerText)"
    assert tab.value(f"{names}.every((each, at, all) => !at || all[at - 1].localeCompare(each) <= 0)")


def test_a_finding_is_opened_and_closed(tab: Firefox, console: ConsoleProcess) -> None:
    tab.open(f"{console.url}/findings?kind=unused")
    tab.sees("document.querySelectorAll('details.line').length > 1")
    tab.press("j")
    tab.press("j")
    tab.press("Enter")
    tab.sees("document.querySelectorAll('details.line[open]').length === 1")
    tab.press("Escape")
    tab.sees("document.querySelectorAll('details.line[open]').length === 0")


def test_a_draft_is_answered_while_it_is_typed(tab: Firefox, console: ConsoleProcess) -> None:
    tab.open(f"{console.url}/draft")
    tab.tab_to("each.tagName === 'TEXTAREA'")
    tab.type("+ ALLOW User:* READ on TOPIC secret")
    tab.sees(f"{ANSWER}.includes('1 rule to add, 0 to remove: access is gained')")
    tab.sees(f"{FOCUS}.tagName === 'TEXTAREA'")


def test_a_denied_request_is_explained(tab: Firefox, console: ConsoleProcess) -> None:
    tab.open(console.url)
    tab.press("/")
    tab.type("why can crm read pii-customers")
    tab.press("ArrowDown")
    tab.press("Enter")
    tab.sees("location.pathname === '/why'")
    tab.sees(f"{ANSWER}.includes('DENIED') && {ANSWER}.includes('To allow it')")
