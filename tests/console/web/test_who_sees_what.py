"""The console behind a login: who may DESCRIBE the cluster sees all, anybody else his own rights, and is told so."""

import threading
from pathlib import Path

import pytest
from attrs import evolve
from starlette.requests import Request

from aclog.authorizer.acl import FileOrigin, StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.console.findings import Kind, LookResult, Use, Uses
from aclog.console.login.guard import All, Own, Sights
from aclog.console.login.passwords import PasswordWay
from aclog.console.pages.states import Console
from aclog.console.pages.views import OWN_VIEWS, VIEWS
from aclog.console.web.app import WebConsole
from aclog.snapshots.image import Image, Provenance
from tests.support.builders.acls import acl, cluster_acl
from tests.support.web.browser import Browser
from tests.support.web.consoles import console_of, look
from tests.support.web.finders import HeldFinder, watched
from tests.support.web.guarded import guard_of
from tests.support.web.logins import password_line
from tests.support.web.points import HeldSource, image_of

PASSWORD = "a long enough password"
RULES = (
    cluster_acl("User:admin", AclOperation.DESCRIBE),
    acl("orders", "User:alice"),
    acl("orders", "User:bob"),
    acl("secret-plans", "User:bob", permission_type=AclPermissionType.DENY),
    acl("news", "User:*"),
)


@pytest.fixture
def source() -> HeldSource:
    return HeldSource(image_of(*RULES))


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "logins"
    path.write_text("".join(f"{password_line(f'User:{name}', PASSWORD)}\n" for name in ("admin", "alice")))
    path.chmod(0o600)
    return path


@pytest.fixture
def web(source: HeldSource, lines: Path) -> WebConsole:
    console = console_of(source, settings=Settings(super_users=frozenset({"User:root"})), name="log-of-payments")
    newest = console.states.live
    guard = guard_of(
        PasswordWay.read(lines),
        newest=lambda: None if newest.newest is None else newest.newest.image,
        settings=console.states.settings,
    )
    return WebConsole(console=console, guard=guard)


def logged_in(web: WebConsole, name: str, address: str = "127.0.0.1") -> Browser:
    browser = Browser(web.app(), address=address)
    browser.get("/login")
    assert browser.post("/login", {"name": f"User:{name}", "password": PASSWORD}).status == 303
    return browser


@pytest.mark.parametrize("path", ["/rules", "/live", "/none"])
def test_the_event_loop_does_not_make_what_one_viewer_sees(
    web: WebConsole, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    alice, makers, loops = logged_in(web, "alice"), list[threading.Thread](), list[threading.Thread]()
    image, console_of_request = Sights.image, WebConsole._console_of

    def made(sights: Sights, whole: Image, sight: All | Own) -> Image:
        """Note in which thread."""
        makers.append(threading.current_thread())
        return image(sights, whole, sight)

    def noted(self: WebConsole, request: Request) -> Console:
        """Note the thread of the event loop."""
        loops.append(threading.current_thread())
        return console_of_request(self, request)

    monkeypatch.setattr(Sights, "image", made)
    monkeypatch.setattr(WebConsole, "_console_of", noted)
    assert alice.get(path).status == (404 if path == "/none" else 200)
    assert makers
    assert not set(makers) & set(loops)


def test_nobody_sees_anything_before_the_login(web: WebConsole) -> None:
    stranger = Browser(web.app())
    for path in (*VIEWS, "/live", "/readyz", "/complete?q=o"):
        assert stranger.get(path).status == 303
        assert stranger.get(path, accept="application/json").status == 401
    assert stranger.get("/static/console.css").status == 200
    assert stranger.get("/static/none").status == 404
    assert stranger.get("/healthz").status == 200


def test_a_stranger_is_told_nothing_of_the_source(web: WebConsole, source: HeldSource) -> None:
    source.current = Image(acls=image_of(*RULES).acls, provenance=Provenance(end_offset=1_234_567))
    look(web.console)
    source.current = None
    look(web.console)
    told = ("log-of-payments", "1,234,567", "has not been confirmed", "gone", web.console.version)
    unknown = Browser(web.app()).get("/static/none")
    assert unknown.status == 404
    assert [each for each in told if each in unknown.text] == []
    seen = logged_in(web, "admin").get("/static/none").text
    assert [each for each in told if each in seen] == list(told)


def test_who_may_describe_the_cluster_sees_all(web: WebConsole) -> None:
    admin = logged_in(web, "admin")
    page = admin.get("/rules").body.decode()
    assert "secret-plans" in page
    assert "You see the rules of" not in page
    assert "User:admin" in page
    assert "Log out" in page


@pytest.mark.parametrize("path", sorted(OWN_VIEWS))
def test_anybody_else_sees_his_own_rights_and_is_told(web: WebConsole, path: str) -> None:
    page = logged_in(web, "alice").get(path).body.decode()
    assert "You see the rules of User:alice and of User:*. There may be more" in page
    for others in ("User:bob", "secret-plans", "User:root", "User:admin"):
        assert others not in page


def test_what_tells_of_others_is_refused(web: WebConsole) -> None:
    alice = logged_in(web, "alice")
    assert alice.get("/principal?name=User:bob").status == 403
    assert alice.get("/why?principal=User:bob&operation=READ&name=orders").status == 403
    for path in VIEWS.keys() - OWN_VIEWS:
        assert alice.get(path).status == 403
        assert f'href="{path}"' not in alice.get("/").body.decode()
    who = alice.get("/resource?name=orders&operation=READ").body.decode()
    assert "User:alice can" in who
    assert "nobody else" not in who


def test_his_own_requests_are_decided_from_all_rules(source: HeldSource, lines: Path) -> None:
    console = console_of(source, settings=Settings(allow_everyone=True))
    guard = guard_of(PasswordWay.read(lines), newest=lambda: source.current, settings=console.states.settings)
    alice = logged_in(WebConsole(console=console, guard=guard), "alice")
    refused = alice.get("/why?principal=User:alice&operation=READ&name=secret-plans").body.decode()
    assert "DENIED: User:alice" in refused, "another's rule closes it, though no rule of hers does"
    assert "ALLOWED: User:alice" in alice.get("/why?principal=User:alice&operation=READ&name=t").body.decode()
    assert "Hidden rules can also decide your requests" in refused


def test_rights_that_come_and_go_count_at_once(web: WebConsole, source: HeldSource) -> None:
    alice = logged_in(web, "alice")
    assert "secret-plans" not in alice.get("/rules").body.decode()
    source.current = image_of(*RULES, cluster_acl("User:alice", AclOperation.DESCRIBE))
    look(web.console)
    assert "secret-plans" in alice.get("/rules").body.decode()
    source.current = image_of(*RULES)
    look(web.console)
    assert "secret-plans" not in alice.get("/rules").body.decode()


def test_nobody_is_served_a_page_that_was_made_for_another(web: WebConsole) -> None:
    admin, alice = logged_in(web, "admin"), logged_in(web, "alice")
    assert "User:bob" in admin.get("/rules?q=o").body.decode()
    assert "User:bob" not in alice.get("/rules?q=o").body.decode()
    assert "User:bob" in admin.get("/rules?q=o").body.decode()
    assert "User:bob" not in alice.get("/rules?q=o&as_of=").body.decode()


def test_every_answer_has_a_strict_policy(web: WebConsole) -> None:
    admin = logged_in(web, "admin")
    for path in (*VIEWS, "/nowhere", "/static/console.js", "/rules?operation=x"):
        policy = admin.get(path).headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy


def test_a_rule_on_which_the_authorizer_throws_is_not_named_to_others(web: WebConsole, source: HeldSource) -> None:
    source.current = image_of(*RULES, acl("payroll", "secretadmin"))
    look(web.console)
    asked = "/why?principal=User:alice&operation=READ&name=payroll"
    for form in ("", "&format=json"):
        reply = logged_in(web, "alice").get(f"{asked}{form}")
        assert reply.status == 400
        assert b"secretadmin" not in reply.body
    assert b"secretadmin" in logged_in(web, "admin").get(asked).body


@pytest.mark.parametrize(
    ("address", "denied"),
    [("::1", "0:0:0:0:0:0:0:1"), ("::ffff:127.0.0.1", "127.0.0.1"), ("unknown", "10.0.0.1"), ("", "10.0.0.1")],
)
def test_whence_he_may_not_describe_the_cluster_he_sees_his_own(
    web: WebConsole, source: HeldSource, address: str, denied: str
) -> None:
    closed = acl(
        "kafka-cluster", "User:admin", denied, operation=AclOperation.DESCRIBE, resource_type=ResourceType.CLUSTER,
        permission_type=AclPermissionType.DENY,
    )  # fmt: skip
    source.current = image_of(*RULES, closed)
    look(web.console)
    there = logged_in(web, "admin", address)
    page = there.get("/rules").text
    assert "You see the rules of User:admin" in page
    assert "secret-plans" not in page
    assert 'href="/changes"' not in page
    assert there.get("/csp-report").status == 403
    elsewhere = logged_in(web, "admin", "fe80::1")
    assert "secret-plans" in elsewhere.get("/rules").text
    assert elsewhere.get("/csp-report").status == 200


class InOneFile:
    """Where every rule stands."""

    def of(self, _: StandardAcl) -> tuple[FileOrigin, ...]:
        return (FileOrigin(file="rules/of-all.yaml", line=7),)


@pytest.mark.parametrize(
    "path",
    [
        "/rules?q=orders",
        "/principal?name=User:alice",
        "/resource?name=orders&operation=READ",
        "/why?principal=User:{}&operation=READ&name=orders",
    ],
)
@pytest.mark.parametrize("form", ["", "&format=json"])
def test_the_lines_of_rules_are_shown_to_who_sees_all(web: WebConsole, path: str, form: str) -> None:
    web.console = evolve(web.console, origins=InOneFile())
    for name, shown in (("admin", True), ("alice", False)):
        reply = logged_in(web, name).get(path.format(name) + form)
        assert reply.status == 200
        assert "orders" in reply.text
        assert ("of-all.yaml" in reply.text) is shown


def test_the_uses_of_rules_are_shown_to_who_sees_all(web: WebConsole) -> None:
    unused = Use(is_unused=True, text="never matched")
    uses = Uses(by_rule=dict.fromkeys(RULES, unused), is_judged={*RULES}.__contains__)
    web.console = watched(web.console, {Kind.UNUSED: HeldFinder(LookResult(items=(), uses=uses))})
    assert web.console.lookout is not None
    web.console.lookout.round()
    for path in ("/principal?name=User:alice", "/resource?name=news"):
        for name, shown in (("admin", True), ("alice", False)):
            page = logged_in(web, name).get(path).text
            assert "User:" in page
            assert ("never matched" in page) is shown
