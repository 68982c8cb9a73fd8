"""`aclog console` as a process: where it says it is, names without a script, a clean end; and what it refuses."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from http.cookiejar import CookieJar
from urllib.error import HTTPError

import pytest

from aclog.cli.console_run import _open_browser
from aclog.console.login.passwords import read_passwords
from tests.support.cli.command import aclog
from tests.support.kafka.server import free_port
from tests.support.processes.waiting import SECONDS, wait_until
from tests.support.web.console import ConsoleProcess
from tests.support.web.oidc_provider import CLIENT, SECRET, OidcProvider, served
from tests.support.web.served import post_bytes

NAME = "orders.<b>eu</b>"


@pytest.fixture
def log(tmp_path):
    grant = ("--allow-principal", "User:alice", "--topic", NAME, "--operation", "READ")
    (tmp_path / "none").write_text("")
    aclog("import", tmp_path / "none", "--log", tmp_path / "log").ok()
    aclog("acls", "add", "--log", tmp_path / "log", *grant).ok()
    return tmp_path / "log"


def first_line(process: subprocess.Popen) -> str:
    """The first line that it prints; nothing if it ends, or is killed for saying nothing."""
    clock = threading.Timer(SECONDS, process.kill)
    clock.start()
    try:
        return process.stdout.readline()
    finally:
        clock.cancel()


@pytest.mark.slow(3)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_is_shows_names_and_ends(log, number):
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "aclog", "console", "--log", str(log), "--listen", f"127.0.0.1:{port}"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert first_line(process) == f"console at http://127.0.0.1:{port}; stop with Ctrl-C\n"
        page = html(port)
        assert "orders.&lt;b&gt;" in page
        assert "User:alice" in page
        assert "<b>eu" not in page
        half = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        half.sendall(post_bytes("/draft", b"12")[:-1])
        html(port)
    finally:
        process.send_signal(number)
        said = process.communicate(timeout=SECONDS)
    half.close()
    assert process.returncode == 0, said
    assert said == ("", "")


@pytest.mark.slow(3)
def test_port_0_is_a_free_one_that_it_prints(log):
    command = [sys.executable, "-m", "aclog", "console", "--log", str(log), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        match = re.fullmatch(r"console at http://127\.0\.0\.1:(\d+); stop with Ctrl-C\n", first_line(process))
        assert match is not None
        assert int(match[1]) > 0
        assert "User:alice" in html(int(match[1]))
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=SECONDS) == ("", "")


class HeldBrowser:
    """A browser that keeps the addresses that it would open."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open(self, url: str) -> None:
        self.opened.append(url)


@pytest.mark.parametrize(
    ("is_terminal", "display", "is_off", "opens"),
    [(True, ":0", False, True), (False, ":0", False, False), (True, "", False, False), (True, ":0", True, False)],
)
def test_a_browser_opens_for_a_user_at_a_terminal_with_windows(monkeypatch, is_terminal, display, is_off, opens):
    browser = HeldBrowser()
    monkeypatch.setattr("aclog.cli.console_run.webbrowser.get", lambda: browser)
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    _open_browser("http://127.0.0.1:8080", is_off=is_off)
    for thread in threading.enumerate():
        if thread.name == "browser":
            thread.join(SECONDS)
    assert browser.opened == (["http://127.0.0.1:8080"] if opens else [])


def html(port: int) -> str:
    """The first page, once a state was read."""

    def read() -> str:
        status, body = get(port)
        assert status in (200, 503)
        return body if status == 200 else ""

    return wait_until(read, "a state that was read")


def get(port: int) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=SECONDS) as reply:
            return reply.status, reply.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--listen", "0.0.0.0:8080"), "others can reach it, and no client needs a secret"),
        (("--listen", "nowhere"), "--listen"),
        (("--as-of", "0"), "the console shows the newest state"),
        (("--login", "oidc"), "ACLOG_OIDC_ISSUER is not set"),
        (("--login", "oidc:none.toml"), "no such file"),
        (("--login", "none"), "--login: none: no such file or directory"),
        (("--edit",), "--edit: expected --journal FILE"),
        (
            ("--edit", "--base-url", "https://acls.example"),
            "every client that reaches https://acls.example could change",
        ),
        (("--trusted-proxy", "*"), "expected the address of a proxy"),
        (("--base-url", "https://acls.example/path"), "without a path"),
        (("--base-url", "acls.example"), "expected https://HOST"),
        (("--base-url", "https://["), "expected https://HOST"),
    ],
)
def test_what_would_be_unsafe_or_unclear_is_refused(log, flags, said):
    result = aclog("console", "--log", log, *flags)
    assert result.code == 2
    assert said in result.complaint


def test_only_a_place_is_written_to(log, tmp_path):
    rules = tmp_path / "rules.jsonl"
    rules.write_text("")
    result = aclog("console", "--acls", rules, "--edit", "--journal", tmp_path / "journal")
    assert result.code == 2
    assert "--edit: expected a place" in result.complaint


def test_an_address_in_use_is_said_so(log):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = aclog("console", "--log", log, "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert result.code == 2
    assert "Address already in use" in result.complaint


@pytest.mark.slow(3)
def test_health_is_asked_beside_the_login(log, tmp_path):
    health = free_port()
    with ConsoleProcess("--log", log, "--health-listen", f"127.0.0.1:{health}") as console:
        asked = {}
        for path in ("/healthz", "/readyz", "/metrics"):
            with urllib.request.urlopen(f"http://127.0.0.1:{health}{path}", timeout=SECONDS) as reply:
                asked[path] = reply.read().decode()
        assert console.url
    assert (asked["/healthz"], asked["/readyz"]) == ("ok\n", "ok\n")
    for name in ("aclog_web_requests_refused_total{", "aclog_web_connections{", "aclog_age_seconds "):
        assert name in asked["/metrics"]


def test_a_line_of_the_password_file_is_made_from_stdin(tmp_path):
    made = aclog("console", "--hash-password", "User:alice", stdin=b"correct horse battery\n").ok()
    (tmp_path / "logins").write_text(made.out)
    (tmp_path / "logins").chmod(0o600)
    known = read_passwords(tmp_path / "logins")
    assert known.verify("User:alice", "correct horse battery") == "User:alice"
    assert known.verify("User:alice", "correct horse batteries") is None
    assert "horse" not in made.out
    assert aclog("console", "--hash-password", "alice", stdin=b"correct horse battery\n").code == 2
    assert aclog("console", "--hash-password", "User:alice", stdin=b"x\n").code == 2


@pytest.mark.slow(4)
def test_who_logs_in_at_a_provider_sees_his_rights_and_nothing_secret_is_written(log, tmp_path):
    audit, port = tmp_path / "audit", free_port()
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    (tmp_path / "secret").chmod(0o600)
    words = (
        "--log",
        log,
        "--listen",
        f"127.0.0.1:{port}",
        "--login",
        f"oidc:{tmp_path / 'oidc.toml'}",
        "--audit",
        audit,
    )
    with served(OidcProvider()) as provider:
        settings = f'issuer = "{provider.issuer}"\nclient_id = "{CLIENT}"\nclient_secret_file = "secret"\n'
        (tmp_path / "oidc.toml").write_text(settings)
        process = subprocess.Popen(
            [sys.executable, "-m", "aclog", "console", *map(str, words)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert "console at" in first_line(process)
            jar = CookieJar()
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
            assert "Log in with 127.0.0.1" in opened(browser, port, "/login")
            assert "alice" in opened(browser, port, "/login/start?next=/principal?name=User:alice")
            page = opened(browser, port, "/rules")
            assert "User:alice" in page
            assert "There may be more" in page
            process.send_signal(signal.SIGHUP)
            assert "read again" in process.stderr.readline()
            assert "There may be more" in opened(browser, port, "/rules")
        finally:
            process.send_signal(signal.SIGTERM)
            said = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(line["viewer"], line["path"], line["status"]) for line in lines[:2]] == [
        (None, "/login", 200),
        (None, "/login/start", 303),
    ]
    assert ("User:alice", "/login/callback", 303) in {(line["viewer"], line["path"], line["status"]) for line in lines}
    written = audit.read_text() + "".join(said)
    for secret in (SECRET, "code", "state=", *(cookie.value for cookie in jar)):
        assert secret not in written


def opened(browser: urllib.request.OpenerDirector, port: int, path: str) -> str:
    """A page, once a state was read."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Accept": "text/html"})

    def read() -> str:
        try:
            with browser.open(request, timeout=SECONDS) as reply:
                return reply.read().decode()
        except HTTPError as error:
            error.close()
            if error.code != 503:
                raise
            return ""

    return wait_until(read, "a state that was read")


@pytest.mark.slow(3)
def test_findings_come_to_be_known_while_it_serves(log, tmp_path):
    (tmp_path / "tests.yaml").write_text("tests:\n- {principal: User:alice, can: {READ: [topic:pii]}}\n")
    with ConsoleProcess("--log", log, "--tests", tmp_path / "tests.yaml") as console:
        rows = wait_until(lambda: findings(console, "tests"), "findings")
        assert rows is not None
        assert "User:alice can READ topic:pii" in rows[0]["what"]
        assert {row["kind"] for row in findings(console, "lint") or ()} <= {"lint"}


def findings(console: ConsoleProcess, kind: str) -> list[dict[str, str]] | None:
    """Those of a kind; None before they are known."""
    with urllib.request.urlopen(f"{console.url}/findings?kind={kind}&format=json", timeout=SECONDS) as reply:
        found = json.load(reply)
    return found["findings"]["rows"] if "findings" in found else None
