"""What every request is checked for: whose page it comes from, which host it names, and what is written down."""

import errno
import json
import os
import threading
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from aclog.console.http import Hosts
from aclog.console.login.passwords import Passwords, PasswordWay
from tests.support.runs.profiles import examples
from tests.support.web.asgi import ask
from tests.support.web.browser import Browser
from tests.support.web.guarded import app_of, guard_of

OWN = {"Origin": "http://127.0.0.1:8181", "Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def guard():
    return guard_of(None)


@pytest.fixture
def browser(guard):
    browser = Browser(app_of(guard))
    assert "||None|True" in browser.get("/").text.replace("<p>", "|")
    return browser


def test_without_a_login_everybody_sees_all_and_forms_still_have_tokens(browser, guard):
    assert len(browser.get("/rules").json["rules"]) == 4
    assert browser.post("/change", {"a": "b"}).json == {"a": "b"}
    assert browser.post("/change", {"csrf_token": "x"}).status == 403
    assert browser.post("/change", {"csrf_token": ""}).status == 403
    assert browser.get("/login").status == 404
    assert guard.reload() is None
    assert guard.sessions.get("") is None


def test_a_token_is_of_one_browser(browser):
    other = Browser(browser.app)
    other.get("/")
    assert other.token != browser.token
    assert other.post("/change", {"csrf_token": browser.token}).status == 403
    assert Browser(browser.app, token=browser.token).post("/change", {}).status == 403
    assert browser.get("/").set_cookies == (), "the cookie stays"


def test_a_token_may_be_a_header_or_a_field_of_either_kind_of_form(browser):
    headers = {**OWN, "X-CSRF-Token": browser.token}
    sent = browser.ask("POST", "/change", b"", headers | {"Content-Type": "application/json"})
    assert sent.status == 200
    parts = "".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{value}\r\n'
        for name, value, more in (("csrf_token", browser.token, ""), ("file", "a" * 100_000, '; filename="f"'))
    )
    multipart = {**OWN, "Content-Type": "multipart/form-data; boundary=x"}
    assert browser.ask("POST", "/draft", f"{parts}--x--\r\n".encode(), multipart).status == 200
    assert browser.ask("POST", "/change", b"--x\r\nContent-Disposition: nothing", multipart).status in {400, 403}
    fields = urlencode({"csrf_token": browser.token}).encode()
    for kind in ("text/plain", "application/json", ""):
        assert browser.ask("POST", "/change", fields, {**OWN, "Content-Type": kind}).status == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "", "Sec-Fetch-Site": ""}, 200),
        ({"Origin": "", "Sec-Fetch-Site": "none"}, 200),
        ({"Origin": "https://127.0.0.1:8181"}, 200),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:8182"}, 403),
        ({"Origin": "http://evil"}, 403),
        ({"Origin": "file://127.0.0.1:8181"}, 403),
        ({"Origin": "", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "", "Sec-Fetch-Site": "same-site"}, 403),
    ],
)
def test_what_changes_something_comes_from_an_own_page(browser, headers, status):
    given = {name.replace("-", "_").lower(): value for name, value in headers.items()}
    assert browser.post("/change", {}, **given).status == status


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "X"])
def test_every_method_that_is_not_known_to_be_safe_needs_a_token(browser, method):
    assert browser.ask(method, "/change", b"", {**OWN, "Content-Type": "text/plain"}).status == 403


@pytest.mark.parametrize(
    ("site", "mode", "dest", "status"),
    [
        ("cross-site", "navigate", "document", 200),
        ("cross-site", "no-cors", "image", 403),
        ("cross-site", "cors", "empty", 403),
        ("cross-site", "navigate", "iframe", 403),
        ("same-site", "no-cors", "script", 403),
        ("same-origin", "cors", "empty", 200),
    ],
)
def test_other_sites_may_link_and_embed_nothing(browser, site, mode, dest, status):
    assert browser.get("/", sec_fetch_site=site, sec_fetch_mode=mode, sec_fetch_dest=dest).status == status


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8181", 200),
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:8181", 200),
        ("127.0.0.1.evil:8181", 421),
        ("evil", 421),
        ("[::1].evil", 421),
        ("[::1].evil:80", 421),
        ("[::1]", 200),
        ("", 421),
    ],
)
def test_a_request_names_this_host(guard, host, status):
    assert ask(app_of(guard), "GET", "/", headers={"Host": host}).status == status


def test_hosts_of_servers():
    others = Hosts.of(listen="0.0.0.0", is_local=False, base_url=None)
    assert others.answer(["anything"])
    own = Hosts.of(listen="127.0.0.9", is_local=True, base_url="https://Acl.Example:8443/x")
    assert own.answer(["127.0.0.9:1"])
    assert own.answer(["acl.example"])
    assert not own.answer(["acl.example.evil"])
    assert not own.answer(["localhost", "evil"])
    assert not own.answer([])
    assert Hosts.of(listen="::1", is_local=True, base_url=None).answer(["[::1]:80"])


def test_every_answer_has_the_headers(browser):
    for reply in (
        browser.get("/"),
        browser.get("/nothing"),
        browser.get("/", host="evil"),
        browser.post("/change", {"csrf_token": "x"}),
    ):
        policy = reply.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert policy.endswith("; frame-ancestors 'none'; base-uri 'none'; report-uri /csp-report")
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "same-origin"
        assert reply.headers["cache-control"] == "no-store"
    assert browser.get("/static/console.css").headers["cache-control"] == "max-age=60"


def test_violations_are_counted_and_bounded(browser, guard):
    report = {"csp-report": {"effective-directive": "script-src", "blocked-uri": "http://e/x?y=1", "document-uri": 5}}
    kind = {"Content-Type": "application/csp-report", "Sec-Fetch-Site": "same-origin"}
    assert browser.ask("POST", "/csp-report", json.dumps(report).encode(), kind).status == 204
    (kept,) = guard.reports.last
    assert (kept.directive, kept.blocked, kept.page) == ("script-src", "http://e/x", "")
    for body in (b"", b"\xff", b"[]", b"[" * 16_000, b'{"csp-report": 5}'):
        assert browser.ask("POST", "/csp-report", body, kind).status == 204
    assert browser.ask("POST", "/csp-report", b"x" * 20_000, kind).status == 413
    for _ in range(100):
        browser.ask("POST", "/csp-report", json.dumps(report).encode(), kind)
    assert (guard.reports.count, len(guard.reports.last)) == (106, 50)
    shown = browser.get("/csp-report").json
    assert (shown["count"], len(shown["last"])) == (106, 50)
    assert shown["last"][0] == {"directive": "script-src", "blocked": "http://e/x", "page": ""}
    assert browser.ask("PUT", "/csp-report", b"", {}).status == 405


def test_a_violation_that_names_no_text_is_shown(browser):
    body = (
        rb'{"csp-report": {"violated-directive": "\ud800", "blocked-uri": "x\udfff", "document-uri": "\ud83d\ude00"}}'
    )
    kind = {"Content-Type": "application/csp-report", "Sec-Fetch-Site": "same-origin"}
    assert browser.ask("POST", "/csp-report", body, kind).status == 204
    shown = browser.get("/csp-report")
    assert shown.status == 200
    assert shown.json["last"] == [{"directive": "?", "blocked": "x?", "page": "\U0001f600"}]


TEXTS = st.text(st.characters(codec="latin-1"), max_size=40)
PATHS = ("/", "/rules", "/change", "/login", "/logout", "/csp-report", "/static/../rules", "//rules", "/rules/")
HEADERS = (
    "Host", "Cookie", "Origin", "Sec-Fetch-Site", "Accept", "HX-Request", "HX-Current-URL", "Content-Type",
    "X-CSRF-Token",
)  # fmt: skip
VALUES = ("localhost", "text/html", "true", "multipart/form-data; boundary=x", "http://[", "aclog-8181=x.y")


@settings(max_examples=examples(100), deadline=None)
@given(
    st.sampled_from(["GET", "POST", "PUT", "HEAD", "OPTIONS"]),
    st.sampled_from(PATHS),
    TEXTS,
    st.binary(max_size=60),
    st.dictionaries(st.sampled_from(HEADERS), TEXTS | st.sampled_from(VALUES), max_size=6),
)
def test_no_request_fails_and_no_stranger_sees_a_rule(behind_login, method, path, query, body, headers):
    query = query.replace("?", "")
    reply = ask(behind_login, method, f"{path}?{query}", body, {"Host": "localhost", **headers})
    assert reply.status < 500
    assert b"User:" not in reply.body


@pytest.fixture(scope="module")
def guard_of_nobody():
    return guard_of(PasswordWay(path=None, passwords=Passwords({}, ("$argon2id$x",))))


@pytest.fixture(scope="module")
def behind_login(guard_of_nobody):
    return app_of(guard_of_nobody)


def test_what_browsers_stopped_is_shown_to_who_sees_all(behind_login):
    assert ask(behind_login, "GET", "/csp-report", headers={"Host": "localhost"}).status == 403


def test_a_form_that_is_too_large_is_not_read(browser):
    assert browser.post("/draft", {"a": "x" * (9 << 20)}).status == 413
    assert browser.post("/draft", {"a": "x" * 100_000}).status == 200
    assert browser.post("/change", {"a": "x" * 100_000}).status == 413, "only a draft may be large"
    other = {**OWN, "X-CSRF-Token": browser.token, "Content-Type": "text/plain"}
    assert browser.ask("POST", "/change", b"x" * 100_000, other).status == 413


def test_of_who_cannot_have_the_token_no_body_is_read(browser):
    body = urlencode({"csrf_token": browser.token}).encode() + b"&a=" + b"x" * (9 << 20)
    form = {**OWN, "Content-Type": "application/x-www-form-urlencoded"}
    assert browser.ask("POST", "/draft", body, {**form, "X-CSRF-Token": "x"}).status == 403
    assert browser.ask("POST", "/draft", body, {**OWN, "Content-Type": "text/plain"}).status == 403
    assert browser.ask("POST", "/draft", body, form | {"Origin": "http://evil"}).status == 403
    assert browser.ask("POST", "/draft", body, form).status == 413


def test_a_form_of_very_many_fields_is_not_parsed(browser):
    form = {**OWN, "Content-Type": "Application/X-WWW-Form-URLEncoded; charset=utf-8"}
    sent = urlencode({"csrf_token": browser.token}).encode()
    for body in (b"&" * (8 << 20), sent + b"&" * 1_000, b"&" * 1_000 + sent):
        for headers in (form, {**form, "X-CSRF-Token": browser.token}):
            reply = browser.ask("POST", "/draft", body, headers)
            assert (reply.status, reply.text) == (400, "the form has more than 1,000 fields\n")
    assert browser.ask("POST", "/draft", b"&" * 999 + sent, form).status == 200


def test_a_long_form_is_parsed_in_a_thread(browser, monkeypatch):
    threads = []

    class Seen(Request):
        def form(self, **limits):
            threads.append(threading.current_thread())
            return super().form(**limits)

    monkeypatch.setattr("aclog.console.login.forms.Request", Seen)
    multipart = {**OWN, "Content-Type": "multipart/form-data; boundary=x"}
    for size, status in ((10, 200), (3 << 20, 200), (9 << 20, 413)):
        body = "".join(
            f'--x\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{value}\r\n'
            for name, value, more in (("csrf_token", browser.token, ""), ("file", "a" * size, '; filename="f"'))
        )
        assert browser.ask("POST", "/draft", f"{body}--x--\r\n".encode(), multipart).status == status
    assert [each is threading.main_thread() for each in threads] == [True, False], "the event loop is in the main one"
    assert browser.ask("POST", "/draft", b"x" * 100_000, multipart).status == 400


@pytest.mark.parametrize("bodies", ["_of_viewers", "_of_strangers"])
def test_bodies_of_all_together_are_bounded(browser, guard, behind_login, guard_of_nobody, bodies):
    if bodies == "_of_strangers":
        guard, browser = guard_of_nobody, Browser(behind_login)
        browser.get("/login")
    budget, path = getattr(guard, bodies), "/draft" if bodies == "_of_viewers" else "/login"
    whole = budget.remaining
    budget.remaining = 100
    reply = browser.post(path, {"a": "x" * 60})
    assert (reply.status, reply.text) == (503, "too many requests in progress: retry later\n")
    budget.remaining = whole
    for fields in ({"a": "x" * 1_000}, {"a": "x" * (9 << 20)}, {"csrf_token": "x"}):
        assert browser.post(path, fields).status != 503
        assert budget.remaining == whole, "all is given back"


def test_what_cannot_be_written_down_is_not_answered(tmp_path, monkeypatch):
    guard = guard_of(None, audit=tmp_path / "audit")
    browser = Browser(app_of(guard))
    assert browser.get("/?a=\u202e<b>").status == 200

    def full(_line):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(guard.audit), "write", lambda _self, line: full(line))
    reply = browser.get("/rules")
    assert reply.status == 500
    assert "User:" not in reply.text
    guard.audit.close()


def test_no_other_protocol_passes(guard):
    import asyncio

    sent = []

    async def asked():
        async def send(message):
            sent.append(message)

        await app_of(guard)({"type": "websocket", "path": "/"}, None, send)

    asyncio.run(asked())
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_while_the_audit_cannot_be_written_no_request_has_an_effect(tmp_path, monkeypatch):
    """The line of a form is written after its effect: it does not begin once a line could not be written."""
    effects, reports, write = [], [], os.write

    async def changing(scope, receive, send):
        effects.append(scope["path"])
        await PlainTextResponse("changed")(scope, receive, send)

    guard = guard_of(None, audit=tmp_path / "audit")
    guard.report = reports.append
    browser = Browser(guard.around(changing))

    def full(number, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    for _ in range(3):
        assert browser.get("/").status == 500
    monkeypatch.setattr(os, "write", write)
    assert effects == ["/"], "the first one found out"
    expected = (
        f"nothing is answered: the audit cannot be written: {tmp_path}/audit: No space left on device: free space"
    )
    assert [report.startswith(expected) for report in reports] == [True] * 3
    assert browser.get("/").status == 200
    assert effects == ["/", "/"]
    guard.audit.close()
