"""Drafts that are typed, planned and applied in Chromium, on a real log: once, by who may, unless they are stale."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from aclog.authorizer.codes import AclOperation, AclPermissionType
from tests.support.builders.acls import acl, cluster_acl
from tests.support.planning.estate import Estate
from tests.support.processes.node_zygote import shared_zygote
from tests.support.web.console import ConsoleProcess
from tests.support.web.estate import NEW_RULE, TESTS, append, write_estate
from tests.support.web.logins import log_in, write_logins
from tests.support.web.visitor import Hands, Visitor, watched

FIELD = "Rules to add and to remove"
MAIL = acl("clicks", "User:mail")
TEXT = "ALLOW User:mail READ on TOPIC clicks"
OTHER = "ALLOW User:search READ on TOPIC clicks"
FAILING = """- name: only the mailer reads clicks
  who_can: {READ topic:clicks: [User:mail]}
"""
ADMIN = cluster_acl("User:admin", AclOperation.ALTER)  # which implies DESCRIBE
pytestmark = pytest.mark.slow(5)


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path, ("--log", write_estate(tmp_path / "log")))


@pytest.fixture
def edited(estate: Estate) -> list[object]:
    """The flags of a console that edits the estate."""
    (estate.home / "tests.yaml").write_text(TESTS + FAILING, encoding="utf-8")
    settled = "--no-allow-everyone-if-no-acl-found"
    return [*estate.place, "--edit", "--journal", estate.journal, "--tests", estate.home / "tests.yaml", settled]


@pytest.fixture
def console(edited: list[object]) -> Iterator[ConsoleProcess]:
    with ConsoleProcess(*edited, zygote=shared_zygote()) as started:
        yield started


def planned(visitor: Visitor) -> None:
    """Type a draft, and go to its plan."""
    visitor.start("/draft")
    visitor.fill(FIELD, TEXT)
    if visitor.hands is not Hands.PLAIN:
        visitor.sees("1 rule to add, 0 to remove: access is gained")
    visitor.submit("Plan it")
    visitor.sees("Nothing is written yet", "Plan: 1 rule to add, 0 to delete", "GAINED", TEXT.partition(" on ")[0])


def kinds(estate: Estate) -> list[str]:
    """What the journal says, without its head."""
    lines = estate.journal.read_text("utf-8").splitlines() if estate.journal.exists() else []
    return [entry["kind"] for entry in map(json.loads, lines) if entry["kind"] in ("BEGIN", "DONE")]


def outcome(page: Page, text: str) -> None:
    """Wait until the tests of the draft say this."""
    expect(page.locator('#answer [aria-labelledby="h-tests"]').first).to_contain_text(text)


@pytest.mark.parametrize(
    "hands", [pytest.param(hands, marks=pytest.mark.tier("test")) if hands is Hands.MOUSE else hands for hands in Hands]
)
def test_a_draft_is_typed_planned_and_applied(visit, estate, hands):
    visitor = visit(hands)
    before = estate.rules()
    planned(visitor)
    assert MAIL not in estate.rules()
    assert kinds(estate) == []
    visitor.submit("Apply")
    visitor.sees("1 rule added, 0 deleted", "aclog rollback")
    expect(visitor.page.get_by_role("button", name="Apply", exact=True)).to_have_count(0)
    assert estate.rules() == before | {MAIL}
    assert kinds(estate) == ["BEGIN", "DONE"]
    visitor.page.reload()
    visitor.sees("1 rule added, 0 deleted")
    assert kinds(estate) == ["BEGIN", "DONE"]
    visitor.start("/rules?principal=User:mail")
    visitor.sees("1 of 14 rules")


def test_a_plan_that_another_writer_has_overtaken_is_refused_and_says_so(visit, estate):
    visitor = visit()
    planned(visitor)
    append(Path(str(estate.place[1])), add=[acl("clicks", "User:mail", permission_type=AclPermissionType.DENY)])
    visitor.submit("Apply")
    visitor.sees("The plan was not applied.", "ACLs that the plan touches have changed", "create a new plan")
    assert MAIL not in estate.rules()
    assert kinds(estate) == []


def offers(page: Page) -> list[str]:
    """The buttons below the header, the login's not among them."""
    return [each.strip() for each in page.locator("main button[type=submit]").all_inner_texts()]


def test_nothing_offers_to_apply_to_who_may_not_alter_the_cluster(browser: Browser, edited, estate, tmp_path):
    append(Path(str(estate.place[1])), add=[ADMIN])
    logins = write_logins(tmp_path / "logins", "admin", "ann", "shop")
    with ConsoleProcess(*edited, "--login", logins, ready="/healthz", zygote=shared_zygote()) as console:
        address = f"{console.url}/draft"
        with watched(browser, console.url) as context:
            visitor = Visitor(context.new_page(), console.url)
            log_in(visitor.page, address, "admin")
            assert offers(visitor.page) == ["Show", "Append", "Plan it"]
            planned(visitor)
            plan = visitor.page.url
            assert offers(visitor.page) == ["Apply"]
        with watched(browser, console.url) as context:
            seeing = Visitor(context.new_page(), console.url)
            log_in(seeing.page, address, "ann")
            assert offers(seeing.page) == ["Show", "Append"]
            seeing.page.goto(plan)
            seeing.sees("This console is read-only", "for users with ALTER on the cluster")
            assert offers(seeing.page) == []
        with watched(browser, console.url, expected=("status of 403",)) as context:
            page = context.new_page()
            log_in(page, f"{console.url}/rules", "shop")
            expect(page.get_by_role("link", name="Draft", exact=True)).to_have_count(0)
            for place in (address, plan):
                page.goto(place)
                assert offers(page) == []
        assert MAIL not in estate.rules()
        with watched(browser, console.url) as context:
            page = context.new_page()
            log_in(page, plan, "admin")
            page.get_by_role("button", name="Apply", exact=True).click()
            expect(page.locator("#answer")).to_contain_text("1 rule added, 0 deleted")
    assert MAIL in estate.rules()
    assert '"who":"User:admin by ' in estate.journal.read_text("utf-8")


def test_tests_turn_red_and_green_again_while_a_draft_is_typed(visit):
    visitor = visit()
    visitor.start("/draft")
    visitor.page.get_by_label(FIELD).press_sequentially(TEXT)
    outcome(visitor.page, "turns green")
    visitor.page.get_by_label(FIELD).press_sequentially(f"\n{OTHER}")
    outcome(visitor.page, "stays red")
    outcome(visitor.page, "User:search")
    visitor.page.get_by_label(FIELD).press_sequentially(f"\n- {OTHER}")
    outcome(visitor.page, "turns green")
    visitor.misses("tests", "stays red", "turns red")
    expect(visitor.page.get_by_label(FIELD)).to_have_value(f"{TEXT}\n{OTHER}\n- {OTHER}")


def test_an_answer_that_is_on_its_way_is_shown_though_the_rules_change_meanwhile(visit, estate):
    visitor = visit()
    visitor.start("/draft")
    held: list[Route] = []
    is_refused: list[bool] = []

    def hold(route: Route) -> None:
        if "hx-request" in route.request.headers and not held:
            held.append(route)
        elif "hx-request" not in route.request.headers and is_refused:
            route.fulfill(status=503)  # so that no later refresh hides that the answer was lost
        else:
            route.continue_()

    visitor.page.route("**/draft*", hold)
    with visitor.page.expect_request(lambda request: "hx-request" in request.headers):
        visitor.fill(FIELD, TEXT)
    with visitor.page.expect_response("**/draft*"):
        append(estate.place[1], add=[acl("clicks", "User:search")])
    with visitor.page.expect_response("**/live"):
        is_refused.append(True)
    held[0].continue_()
    visitor.sees("1 rule to add, 0 to remove")
    outcome(visitor.page, "stays red")


def test_a_test_that_a_draft_breaks_is_as_it_was_once_the_draft_takes_it_back(visit):
    visitor = visit()
    visitor.start("/draft")
    visitor.page.get_by_label(FIELD).press_sequentially(NEW_RULE)
    outcome(visitor.page, "turns red")
    outcome(visitor.page, "only audit reads personal data")
    visitor.page.get_by_label(FIELD).press_sequentially("\nDENY User:mail ALL on TOPIC PREFIXED pii-")
    visitor.sees("2 rules to add, 0 to remove. No access changes")
    outcome(visitor.page, "No test depends on the changes.")
