"""Drafts that are planned and applied from the page, on a real log: asked first, once, by who may."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from attrs import evolve
from starlette.types import ASGIApp

from aclog.authorizer.codes import AclOperation
from aclog.authorizer.settings import Settings
from aclog.console.draft import Editing
from aclog.console.live import LiveState
from aclog.console.login.passwords import PasswordWay
from aclog.console.pages.page import CommandLine
from aclog.console.pages.states import Console, States
from aclog.console.web.app import WebConsole
from aclog.planning.plan import PlaceAddress, PlaceKind
from aclog.sources.logs import LogSource
from aclog.targets.opening import PlaceSettings
from tests.support.builders.acls import acl, cluster_acl
from tests.support.cli.command import aclog
from tests.support.planning.estate import Estate, log_with
from tests.support.web.asgi import Reply
from tests.support.web.browser import Browser
from tests.support.web.guarded import guard_of
from tests.support.web.logins import password_line

SHOP, OWNED = acl("shop", "User:shop"), acl("orders", "User:alice")
RULES = (
    OWNED,
    cluster_acl("User:admin", AclOperation.ALTER),
    cluster_acl("User:viewer", AclOperation.DESCRIBE),
)
PASSWORD = "correct horse"
TEXT = "+ ALLOW User:shop READ on TOPIC shop from *"


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return Estate(tmp_path / "home", log_with(tmp_path / "log", RULES))


@pytest.fixture
def console(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> Iterator[Console]:
    """A console that looks at its log once: a page after an apply waits in vain for the state after it."""
    monkeypatch.setattr("aclog.console.web.app._WAIT_S", 0.1)
    log = Path(str(estate.place[1]))
    live = LiveState(source=LogSource(log, print), seconds=60, tell=lambda why: None)
    live._look()
    yield Console(
        name=str(log),
        states=States(live=live, settings=Settings()),
        command=CommandLine(source=("--log", str(log))),
        editing=Editing(
            address=PlaceAddress(kind=PlaceKind.LOG, value=str(log)),
            stated=PlaceSettings(allow_everyone=False),
            journal=estate.journal,
            notify=print,
        ),
    )
    live.source.close()


@pytest.fixture
def browser(console: Console) -> Browser:
    found = Browser(WebConsole(console=console, guard=guard_of(None)).app())
    found.get("/draft")
    return found


def planned(browser: Browser, text: str = TEXT, **fields: str) -> str:
    """The address of the plan of a draft."""
    browser.get("/draft")
    reply = browser.post("/draft", {"rules": text, "do": "plan", **fields})
    assert reply.status == 303, reply.text
    return reply.headers["location"]


def digest_in(page: Reply) -> str:
    """The plan that a page asks about."""
    found = re.search(r'name="plan" value="([0-9a-f]{64})"', page.text)
    assert found, page.text
    return found[1]


def apply(browser: Browser, address: str, **fields: str) -> Reply:
    """Say yes to a plan, and go where that leads."""
    digest = digest_in(browser.get(address))
    reply = browser.post("/draft/apply", {"plan": digest, **fields})
    return browser.get(reply.headers["location"]) if reply.status == 303 else reply


def test_it_is_shown_asked_applied_and_gone_back_from(browser: Browser, estate: Estate) -> None:
    address = planned(browser)
    page = browser.get(address)
    assert "Plan: 1 rule to add, 0 to delete" in page.text
    assert "Nothing is written yet" in page.text
    assert SHOP not in estate.rules()
    assert not estate.journal.exists()
    done = apply(browser, address)
    assert SHOP in estate.rules()
    assert "1 rule added, 0 deleted" in done.text
    assert 'name="plan"' not in done.text
    [apply_id] = set(re.findall(r"--apply (\S+)", done.text))
    assert f"apply {apply_id}" in done.text
    back = ("rollback", *estate.place, "--journal", estate.journal, "--apply", apply_id, "--out", estate.home / "BACK")
    assert aclog(*back).code == 1
    aclog("apply", estate.home / "BACK", "--yes").ok()
    assert estate.rules() == set(RULES)


def test_a_double_click_applies_once(browser: Browser, estate: Estate) -> None:
    address = planned(browser)
    digest = digest_in(browser.get(address))
    replies = [browser.post("/draft/apply", {"plan": digest}) for _ in range(2)]
    assert {reply.headers["location"] for reply in replies} == {address}
    assert len(estate.journal.read_text().splitlines()) == 3  # head, BEGIN, DONE
    assert "1 rule added" in browser.get(address).text


def test_the_second_of_two_tabs_is_refused(browser: Browser, estate: Estate) -> None:
    first, second = planned(browser), planned(browser, TEXT.replace("shop", "other"))
    assert "1 rule added" in apply(browser, first).text
    refused = apply(browser, second)
    assert "The plan was not applied." in refused.text
    assert "create a new plan" in refused.text
    assert len(estate.rules()) == len(RULES) + 1
    again = planned(browser, TEXT.replace("shop", "other"))
    assert "1 rule added" in apply(browser, again).text


def test_a_changed_base_is_refused(browser: Browser, estate: Estate) -> None:
    address = planned(browser)
    deny = ("--deny-principal", "User:shop", "--operation", "Read", "--topic", "shop")
    aclog("acls", "add", *estate.place, *deny).ok()
    refused = apply(browser, address)
    assert "ACLs that the plan touches have changed" in refused.text
    assert SHOP not in estate.rules()


def test_what_is_not_owned_is_removed_only_if_that_is_said(browser: Browser, estate: Estate) -> None:
    text = "- ALLOW User:alice READ on TOPIC orders"
    refused = browser.post("/draft", {"rules": text, "do": "plan"})
    assert refused.status == 400
    assert "not managed by the journal" in refused.text
    assert "User:alice READ on TOPIC orders" in refused.text
    apply(browser, planned(browser, text, adopt="1"))
    assert OWNED not in estate.rules()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"rules": "ALLOW"}, "line 1 is invalid"),
        ({"rules": "ALLOW User:alice READ on TOPIC orders"}, "nothing to do"),
        ({"rules": TEXT, "max_deletes": "some"}, "expected a number such as 50"),
        ({"rules": "- ALLOW User:alice READ on TOPIC orders", "adopt": "1", "max_deletes": "0"}, "exceed --max"),
    ],
)
def test_what_cannot_be_planned_says_why(browser: Browser, fields: dict[str, str], why: str) -> None:
    reply = browser.post("/draft", {"do": "plan", **fields})
    assert (reply.status, why in reply.text) == (400, True), reply.text


def test_a_plan_is_saved_and_applied_by_the_command(browser: Browser, estate: Estate) -> None:
    address = planned(browser)
    for path in (f"{address}&format=plan", f"/draft?rules={TEXT.replace(' ', '%20').replace('+', '%2B')}&format=plan"):
        saved = browser.get(path)
        assert saved.headers["content-disposition"] == 'attachment; filename="PLAN"'
        estate.plan_file.write_bytes(saved.body)
    assert SHOP not in estate.rules()
    estate.apply().ok()
    assert SHOP in estate.rules()
    assert browser.get("/draft/plan?plan=none&format=plan").status == 400
    assert "make the plan again" in browser.get("/draft/plan?plan=none").text


def test_who_sends_it_from_elsewhere_writes_nothing(browser: Browser, estate: Estate) -> None:
    digest = digest_in(browser.get(planned(browser)))
    for headers, fields in (
        ({}, {"csrf_token": "guess"}),
        ({"Origin": "http://evil.example"}, {}),
        ({"Sec_Fetch_Site": "cross-site"}, {}),
        ({"Sec_Fetch_Site": "same-site"}, {}),
    ):
        assert browser.post("/draft/apply", {"plan": digest, **fields}, **headers).status == 403
    assert browser.get(f"/draft/apply?plan={digest}").status in {404, 405}
    browser.get(f"/draft/plan?plan={digest}")
    assert SHOP not in estate.rules()


def offers(page: Reply) -> list[str]:
    """The buttons below the header that send a form."""
    return re.findall(r'<button type="submit"[^>]*>([^<]*)</button>', page.text.partition("<main")[2])


def test_without_edit_nothing_is_written(console: Console, estate: Estate) -> None:
    for each in (
        WebConsole(console=evolve(console, editing=None), guard=guard_of(None)),
        WebConsole(console=console),  # unguarded
    ):
        browser = Browser(each.app())
        browser.get("/draft")
        page = browser.get(f"/draft?rules={quote(TEXT)}")
        assert "1 rule to add, 0 to remove" in page.text
        assert offers(page) == ["Show", "Append"]
        assert browser.post("/draft", {"rules": TEXT, "do": "plan"}).status == 400
        assert browser.get(f"/draft?rules={TEXT.replace(' ', '%20')}&format=plan").status == 400
        assert browser.post("/draft/apply", {"plan": "x"}).status == 403
        plan = browser.get("/draft/plan")
        assert "This console is read-only" in plan.text
        assert offers(plan) == []
    assert estate.rules() == set(RULES)
    assert not estate.journal.exists()


def behind_login(console: Console, estate: Estate) -> ASGIApp:
    """Its application, at which admin, viewer and alice can log in."""
    lines = estate.home / "logins"
    lines.write_text("".join(f"{password_line(f'User:{name}', PASSWORD)}\n" for name in ("admin", "viewer", "alice")))
    lines.chmod(0o600)
    live = console.states.live
    guard = guard_of(PasswordWay.read(lines), newest=lambda: live.newest.image if live.newest else None)
    return WebConsole(console=console, guard=guard).app()


def logged_in(app: ASGIApp, name: str, address: str = "127.0.0.1") -> Browser:
    browser = Browser(app, address=address)
    browser.get("/login")
    assert browser.post("/login", {"name": f"User:{name}", "password": PASSWORD}).status == 303
    browser.get("/")
    return browser


def test_with_a_login_only_who_may_alter_the_cluster_writes(console: Console, estate: Estate) -> None:
    app = behind_login(console, estate)
    admin, viewer, alice = (logged_in(app, name) for name in ("admin", "viewer", "alice"))
    address = planned(admin)
    digest = digest_in(admin.get(address))
    assert alice.get("/draft").status == alice.get(address).status == 403
    assert alice.post("/draft", {"rules": TEXT}).status == alice.post("/draft/apply", {"plan": digest}).status == 403
    assert "for users with ALTER on the cluster" in viewer.get(address).text
    assert viewer.post("/draft/apply", {"plan": digest}).status == 403
    assert viewer.post("/draft", {"rules": TEXT, "do": "plan"}).status == 400
    assert estate.rules() == set(RULES)
    assert "1 rule added" in apply(admin, address).text
    assert '"who":"User:admin by ' in estate.journal.read_text()


@pytest.mark.parametrize(
    ("address", "denied"), [("::1", "0:0:0:0:0:0:0:1"), ("::ffff:127.0.0.1", "127.0.0.1"), ("unknown", "10.0.0.1")]
)
def test_whence_he_may_not_alter_the_cluster_he_writes_nothing(
    console: Console, estate: Estate, address: str, denied: str
) -> None:
    deny = ("--deny-principal", "User:admin", "--deny-host", denied, "--operation", "Alter", "--cluster")
    aclog("acls", "add", *estate.place, *deny).ok()
    console.states.live._look()
    before, app = estate.rules(), behind_login(console, estate)
    elsewhere, there = logged_in(app, "admin", "fe80::1"), logged_in(app, "admin", address)
    plan = planned(elsewhere)
    digest = digest_in(elsewhere.get(plan))
    assert 'name="plan"' not in there.get(plan).text
    assert there.post("/draft/apply", {"plan": digest}).status == 403
    assert there.post("/draft", {"rules": TEXT, "do": "plan"}).status in {400, 403}
    assert estate.rules() == before
    assert "1 rule added" in apply(elsewhere, plan).text


def test_what_is_applied_is_shown_by_the_next_state(browser: Browser, console: Console) -> None:
    apply(browser, planned(browser))
    console.states.live._look()
    assert "User:shop" in browser.get("/rules").text
