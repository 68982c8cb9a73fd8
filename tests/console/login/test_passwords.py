"""Logging in with a password: what a session is, what ends it, and what is refused."""

import json

import pytest
from argon2 import PasswordHasher

from aclog.console.login.passwords import Attempts, Passwords, PasswordWay, password_line, read_passwords
from aclog.console.login.sessions import SESSION_S, Sessions
from aclog.metalog.errors import ConfigError
from tests.support.web.browser import Browser
from tests.support.web.guarded import NewestState, app_of, guard_of

PASSWORD = "correct horse"
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)

HASH = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdHNhbHRzYWx0c2FsdHNhbHQ"


def line(principal, password=PASSWORD):
    return f"{principal}:{CHEAP.hash(password)}\n"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "passwords"
    path.write_text(f"# viewers\n\n{line('User:alice')}{line('User:admin')}{line('User:CN=x,OU=y:z')}")
    path.chmod(0o600)
    return path


@pytest.fixture
def guard(path):
    return guard_of(PasswordWay.read(path))


@pytest.fixture
def browser(guard):
    return Browser(app_of(guard))


def log_in(browser, name="alice", password=PASSWORD, **fields):
    browser.get("/login")
    return browser.post("/login", {"name": name, "password": password, **fields})


def test_who_has_not_logged_in_is_led_to_the_form_and_back(browser):
    reply = browser.get("/rules?topic=a%2Bb")
    assert (reply.status, reply.headers["location"]) == (303, "/login?next=%2Frules%3Ftopic%3Da%252Bb")
    form = browser.get(reply.headers["location"])
    assert form.status == 200
    assert 'value="/rules?topic=a%2Bb"' in form.text
    reply = log_in(browser, next="/rules?topic=a%2Bb")
    assert (reply.status, reply.headers["location"]) == (303, "/rules?topic=a%2Bb")
    assert "alice|User:alice|False" in browser.get("/").text
    assert browser.get("/login?next=/rules").headers["location"] == "/rules"


def test_programs_and_htmx_are_told_so(browser):
    reply = browser.ask("GET", "/rules", b"", {"Accept": "application/json"})
    assert (reply.status, reply.json) == (401, {"error": "log in first"})
    reply = browser.ask("GET", "/rules", b"", {"HX-Request": "true", "HX-Current-URL": "http://127.0.0.1:8181/x?y=1"})
    assert (reply.status, reply.headers["hx-redirect"]) == (401, "/login?next=%2Fx%3Fy%3D1")
    for url in ("http://[", "//evil", "x", "", "http://x//evil", "javascript:alert(1)"):
        reply = browser.ask("GET", "/rules", b"", {"HX-Request": "true", "HX-Current-URL": url})
        assert (reply.status, reply.headers["hx-redirect"]) == (401, "/login")
    assert browser.get("/static/console.css").status == 200
    assert browser.get("/nothing").status == 303


def test_viewers_see_what_the_rules_let_them(browser, guard):
    log_in(browser)
    seen = browser.get("/rules").json
    assert seen["rules"] == ["User:*", "User:alice"]
    assert "There may be more" in seen["notice"]
    admin = Browser(browser.app)
    log_in(admin, "User:admin")
    assert len(admin.get("/rules").json["rules"]) == 4
    assert "admin|User:admin|True" in admin.get("/").text
    guard.sights.newest.image = None
    assert "admin|User:admin|False" in admin.get("/").text


def test_a_session_is_the_browsers_alone_and_a_logout_ends_it(browser):
    browser.get("/login")
    before = dict(browser.cookies)
    reply = log_in(browser)
    cookie = next(each for each in reply.set_cookies if each.startswith("aclog-8181="))
    assert "; HttpOnly; SameSite=Lax" in cookie
    assert "Secure" not in cookie
    assert before.keys() == browser.cookies.keys()
    assert before != browser.cookies, "an id that was known before the login is in nobody's session"
    assert Browser(browser.app, cookies=before).get("/").status == 303
    thief = Browser(browser.app, cookies=dict(browser.cookies))
    assert thief.get("/").status == 200
    browser.get("/")
    assert browser.post("/logout", {}).status == 303
    assert thief.get("/").status == 303
    assert browser.get("/").status == 303


def test_another_login_ends_the_one_before(browser):
    log_in(browser)
    thief = Browser(browser.app, cookies=dict(browser.cookies))
    browser.get("/")
    assert browser.post("/login", {"name": "admin", "password": PASSWORD}).status == 303
    assert "admin|User:admin|True" in browser.get("/").text
    assert thief.get("/").status == 303


def test_only_who_sees_all_can_send_much(browser):
    fields = {"name": "alice", "password": "x" * 70_000}
    browser.get("/login")
    assert browser.post("/login", fields).status == 413
    assert browser.post("/login", fields, x_csrf_token=browser.token).status == 413
    for name, status in (("alice", 413), ("admin", 200)):
        log_in(browser, name)
        browser.get("/")
        assert browser.post("/draft", {"a": "x" * 70_000}).status == status


def test_what_the_address_says_is_text_in_the_form(browser):
    page = browser.get("/login?next=/%22%3E%3Cscript%3Ealert(1)%3C/script%3E").text
    assert 'value="/&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"' in page
    assert "<script" not in page


def test_where_there_is_https_cookies_are_this_hosts(path):
    browser = Browser(app_of(guard_of(PasswordWay.read(path), secure=True)))
    reply = log_in(browser)
    assert all(each.startswith("__Host-aclog-8181") and each.endswith("; Secure") for each in reply.set_cookies)
    assert browser.get("/").status == 200


def test_forged_cookies_are_nobodys(browser, path):
    log_in(browser)
    ((name, value),) = browser.cookies.items()
    for bad in (
        value[:-1],
        value + "x",
        value.partition(".")[0],
        "x",
        "",
        "." * 5000,
        "\u00e9",
        value + "; " + name + "=x",
    ):
        assert Browser(browser.app, cookies={name: bad}).get("/").status == 303
    other = Browser(app_of(guard_of(PasswordWay.read(path))), cookies=dict(browser.cookies))
    assert other.get("/").status == 303, "another console's keys"


def test_a_session_ends_in_time(path):
    now = [0.0]
    browser = Browser(app_of(guard_of(PasswordWay.read(path), clock=lambda: now[0])))
    log_in(browser)
    now[0] = SESSION_S - 1
    assert browser.get("/").status == 200
    now[0] = SESSION_S
    assert browser.get("/").status == 303


def test_a_changed_line_ends_its_sessions(path, guard, browser):
    admin = Browser(browser.app)
    log_in(browser)
    log_in(admin, "admin")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(each for each in lines if "admin" not in each))
    guard.reload()
    assert (browser.get("/").status, admin.get("/").status) == (200, 303)
    path.write_text(line("User:alice", "another password"))
    guard.reload()
    assert browser.get("/").status == 303
    assert log_in(browser).status == 403
    path.write_text("damaged")
    with pytest.raises(ConfigError):
        guard.reload()
    assert log_in(browser, password="another password").status == 303


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda _: line("User:admin"), 403),
        (lambda _: line("User:alice", "another password"), 403),
        (lambda _: line("User:alice"), 403),
        (lambda own: own + line("User:bob"), 303),
    ],
)
def test_a_file_that_is_read_again_while_a_password_is_checked_counts(
    path, guard, browser, monkeypatch, change, status
):
    verify = Passwords.verify
    [own] = [each for each in path.read_text().splitlines(keepends=True) if "alice" in each]

    def overtaken(self, name, password):
        found = verify(self, name, password)
        path.write_text(change(own))
        guard.reload()
        return found

    monkeypatch.setattr(Passwords, "verify", overtaken)
    assert log_in(browser).status == status
    assert browser.get("/").status == (200 if status == 303 else 303)


@pytest.mark.parametrize(
    ("name", "password", "status"),
    [
        ("alice", "wrong", 403),
        ("bob", PASSWORD, 403),
        ("User:bob", PASSWORD, 403),
        ("Alice", PASSWORD, 403),
        ("alice", "", 400),
        ("", PASSWORD, 400),
        ("alice", "x" * 1025, 400),
        ("a" * 1025, PASSWORD, 400),
        ("*", PASSWORD, 403),
        ("<script>\u202e", PASSWORD, 403),
        ("CN=x,OU=y:z", PASSWORD, 303),
    ],
)
def test_names_and_passwords(browser, name, password, status):
    reply = log_in(browser, name, password)
    assert reply.status == status
    assert "<script>" not in reply.text
    assert PASSWORD not in reply.text


def test_the_answer_to_an_unknown_name_and_to_a_wrong_password_are_one(browser):
    assert log_in(browser, "alice", "wrong").body == log_in(browser, "bob", "wrong").body


def test_an_unknown_name_costs_what_a_known_one_does(path, monkeypatch):
    passwords, verified = read_passwords(path), []
    monkeypatch.setattr(PasswordHasher, "verify", lambda _self, known, given: verified.append(known.split("$")[1:4]))
    for name in ("alice", "bob", "x"):
        passwords.verify(name, "x")
    assert len(verified) == 3
    assert verified[0] == verified[1] == verified[2]


@pytest.mark.parametrize(
    "target", ["//evil", "https://evil", "/\\evil", "evil", "/a\nb", "", "/%0d" + "x" * 5000, "/\u00e9"]
)
def test_a_login_leads_nowhere_else(browser, target):
    assert log_in(browser, next=target).headers["location"] == "/"


def test_attempts_are_limited_by_name_and_by_address(path):
    now = [0.0]
    way = PasswordWay.read(path)
    way.attempts = Attempts(clock=lambda: now[0])
    browser = Browser(app_of(guard_of(way)))
    assert [log_in(browser, "alice", "wrong").status for _ in range(11)] == [403] * 10 + [429]
    refused = log_in(browser)
    assert (refused.status, refused.headers["retry-after"]) == (429, "30"), "the right password, too"
    assert log_in(browser, "User:alice").status == 429
    assert log_in(Browser(browser.app, address="10.0.0.1")).status == 429, "another address"
    assert log_in(Browser(browser.app), "admin").status == 303
    assert [log_in(browser, f"x{n}", "wrong").status for n in range(11)] == [403] * 10 + [429]
    assert log_in(Browser(browser.app, address="10.0.0.1"), "admin").status == 303
    now[0] = 30.0
    assert log_in(browser).status == 303
    assert [log_in(Browser(browser.app)).status for _ in range(15)] == [303] * 15, "a good one is free"


def test_attempts_keep_bounded_memory():
    attempts = Attempts(clock=lambda: 0.0)
    for number in range(30_000):
        assert attempts.begin(f"2001:db8::{number:x}", f"n{number}") == (0.0 if number < 20 else 6.0)
    for number in range(30_000):
        attempts.begin(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", f"m{number}")
    assert len(attempts._names._balances) == len(attempts._addresses._balances) == 10_000
    assert attempts.begin("2001:db8::ffff:1", "x") == 0.0, "forgotten"


def test_sessions_keep_bounded_memory_and_one_viewer_ends_his_own_only():
    sessions = Sessions(clock=lambda: 0.0)
    first = sessions.begin("bob", "User:bob")
    own = [sessions.begin("alice", "User:alice") for _ in range(21)]
    assert sessions.get(first) is not None
    assert [sessions.get(each) is None for each in own] == [True] + [False] * 20


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no principals"),
        ("User:alice:secretpw", "with a hash of argon2"),
        ("alice:$argon2id$x", "expected a principal"),
        ("User:a:$argon2id$secretpw", "is not one of argon2"),
        ("User:*:" + HASH, "cannot log in"),
        ("User:a\u202e:" + HASH, "cannot log in"),
        (2 * ("User:a:" + HASH + "\n"), "duplicate principal"),
        ("User:a:" + HASH.replace("argon2id", "argon2i"), "expected argon2id"),
        ("User:a:" + HASH.replace("m=8", "m=99999999"), "more than 1 GiB"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, text, said):
    path = tmp_path / "passwords"
    path.write_text(text)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_passwords(path)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=said) as raised:
        read_passwords(path)
    assert "secretpw" not in str(raised.value)
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_passwords(path)


def test_a_line_is_made_and_read(tmp_path):
    path = tmp_path / "passwords"
    path.write_text(password_line("User:\u00e9ve", "p\u00e4ssword"))
    path.chmod(0o600)
    passwords = read_passwords(path)
    assert passwords.verify("\u00e9ve", "p\u00e4ssword") == "User:\u00e9ve"
    assert "argon2" not in repr(passwords)
    for principal, password in (("alice", PASSWORD), ("User:*", PASSWORD), ("User:a", "short"), ("User:a\n", PASSWORD)):
        with pytest.raises(ConfigError):
            password_line(principal, password)


def test_no_secret_is_written_down(path, tmp_path):
    audit = tmp_path / "audit"
    guard = guard_of(PasswordWay.read(path), audit=audit)
    browser = Browser(app_of(guard))
    log_in(browser, PASSWORD, "wrong")
    log_in(browser)
    browser.get("/rules?topic=a&password=" + PASSWORD.replace(" ", "+") + "&pass%77ord=correct")
    browser.get("/login?code=correct&state=correct")
    browser.get("/")
    browser.post("/logout", {})
    guard.audit.close()
    text = audit.read_text()
    lines = [json.loads(each) for each in text.splitlines()]
    assert [(each["viewer"], each["method"], each["path"], each["status"]) for each in lines] == [
        (None, "GET", "/login", 200),
        (None, "POST", "/login", 403),
        (None, "GET", "/login", 200),
        ("User:alice", "POST", "/login", 303),
        ("User:alice", "GET", "/rules?topic=a&password=...&pass%77ord=...", 200),
        ("User:alice", "GET", "/login", 303),
        ("User:alice", "GET", "/", 200),
        ("User:alice", "POST", "/logout", 303),
    ]
    assert all(each["ms"] >= 0 and each["time"].endswith("Z") and each["address"] == "127.0.0.1" for each in lines)
    for secret in ("correct", browser.token, *browser.cookies.values()):
        assert secret not in text


def test_what_a_viewer_asked_is_written_down_whole_and_of_a_stranger_the_beginning(path, tmp_path):
    audit = tmp_path / "audit"
    guard = guard_of(PasswordWay.read(path), audit=audit)
    viewer, stranger = (Browser(app_of(guard)) for _ in range(2))
    log_in(viewer)
    asked = f"/rules?filler={'x' * 5_000}&name=User:ceo"
    assert (viewer.get(asked).status, stranger.get(asked).status) == (200, 303)
    guard.audit.close()
    seen, refused = (json.loads(each) for each in audit.read_text().splitlines()[-2:])
    assert (seen["viewer"], seen["path"]) == ("User:alice", asked)
    assert (refused["viewer"], refused["path"]) == (None, asked[:4096])


def test_newer_states_are_used(path):
    held = NewestState()
    browser = Browser(app_of(guard_of(PasswordWay.read(path), newest=held)))
    log_in(browser, "admin")
    assert browser.get("/rules").json["notice"] is None
    held.image = type(held)().image.with_acls(type(held.image.acls).empty())
    assert browser.get("/rules").json == {
        "rules": [],
        "notice": "You see the rules of User:admin and of User:*. There may be more: all are shown to users "
        "with DESCRIBE on the cluster.",
    }
