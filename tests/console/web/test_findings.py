"""The page of findings over HTTP: in every form, as it comes to be known, and with hostile names."""

import pytest

from aclog.console.findings import Kind, LookResult
from aclog.console.pages.states import Console
from aclog.console.web.app import WebConsole
from tests.support.builders.acls import acl
from tests.support.web.asgi import ask
from tests.support.web.consoles import console_of
from tests.support.web.finders import Clock, HeldFinder, item, watched
from tests.support.web.points import HeldSource, image_of

HOSTILE = acl("<script>alert(1)</script>\u202e", "User:<b>eve")
ALICE = acl("orders", "User:alice")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def console(clock: Clock) -> Console:
    found = LookResult(items=(item("08 shadowed", ALICE, HOSTILE, advice="=1+1"),))
    return watched(console_of(HeldSource(image_of(ALICE, HOSTILE))), {Kind.LINT: HeldFinder(found)}, clock=clock)


def turn(console: Console) -> None:
    assert console.lookout is not None
    console.lookout.round()


def test_they_appear_in_a_page_that_was_shown_before(console: Console, clock: Clock) -> None:
    app = WebConsole(console=console).app()
    before = ask(app, "GET", "/live").json["version"]
    assert "being scanned" in ask(app, "GET", "/findings").body.decode()
    turn(console)
    assert ask(app, "GET", "/live").json["version"] != before, "which tells the page to look again"
    html = ask(app, "GET", "/findings").body.decode()
    assert "08 shadowed" in html
    assert "0 s ago" in html
    clock.seconds += 9
    assert "9 s ago" in ask(app, "GET", "/findings").body.decode()


def test_hostile_rules_are_text_in_every_form(console: Console) -> None:
    app = WebConsole(console=console).app()
    turn(console)
    html = ask(app, "GET", "/findings").body.decode()
    assert "<script>alert" not in html
    assert "<b>eve" not in html
    assert "\u202e" not in html
    [row] = ask(app, "GET", "/findings?format=json").json["findings"]["rows"]
    assert len(row["rules"].splitlines()) == 2
    csv = ask(app, "GET", "/findings?format=csv&table=findings").body.decode()
    assert "\u202e" not in csv
    assert ",'=1+1" in csv


def test_both_rules_of_a_finding_are_links(console: Console) -> None:
    turn(console)
    html = ask(WebConsole(console=console).app(), "GET", "/findings").body.decode()
    assert html.count('href="/rules?principal=User') == 2
