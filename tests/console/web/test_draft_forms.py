"""Drafts that are sent by a form: where they lead, with and without a script, and what is refused."""

import pytest

from aclog.console.pages.page import Parameters
from aclog.console.web.app import WebConsole
from tests.support.builders.acls import acl
from tests.support.web.browser import Browser
from tests.support.web.consoles import console_of
from tests.support.web.guarded import guard_of
from tests.support.web.points import HeldSource, image_of

SHOP = "+ ALLOW User:shop READ on TOPIC PREFIXED ord from *"


@pytest.fixture
def browser() -> Browser:
    console = console_of(HeldSource(image_of(acl("orders", "User:alice"))))
    found = Browser(WebConsole(console=console, guard=guard_of(None)).app())
    found.get("/draft")
    return found


def test_a_small_draft_is_in_its_address(browser: Browser) -> None:
    reply = browser.post("/draft", {"rules": f"{SHOP}\r\n# é<>&\r\n"})
    assert reply.status == 303
    there = reply.headers["location"]
    assert Parameters.of(there.partition("?")[2]).text("rules") == f"{SHOP}\n# é<>&\n"
    page = browser.get(there).text
    assert "User:shop" in page
    assert "# é&lt;&gt;&amp;" in page


def test_a_large_one_is_kept(browser: Browser) -> None:
    text = "\n".join(f"ALLOW User:u{number} READ on TOPIC t" for number in range(500))
    there = browser.post("/draft", {"rules": text}).headers["location"]
    assert there.startswith("/draft?id=")
    assert "500 rules to add" in browser.get(there).text
    saved = browser.get(f"{there}&format=change")
    assert saved.headers["content-disposition"] == 'attachment; filename="change.jsonl"'
    assert len(saved.body.splitlines()) == 500
    assert "draft not found" in browser.get("/draft?id=none").text


def _multipart(browser: Browser, **parts: bytes) -> tuple[bytes, dict[str, str]]:
    lines = [b'--xx\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n' + browser.token.encode()]
    for name, content in parts.items():
        file = b'; filename="a.jsonl"' if name == "file" else b""
        lines.append(
            b'--xx\r\nContent-Disposition: form-data; name="' + name.encode() + b'"' + file + b"\r\n\r\n" + content
        )
    headers = {"Content-Type": "multipart/form-data; boundary=xx", "Origin": f"http://{browser.host}"}
    return b"\r\n".join((*lines, b"--xx--\r\n")), headers


def test_a_file_is_opened_without_a_script(browser: Browser) -> None:
    body, headers = _multipart(browser, rules=b"typed", file=SHOP.encode())
    reply = browser.ask("POST", "/draft", body, headers)
    assert Parameters.of(reply.headers["location"].partition("?")[2]).text("rules") == SHOP
    body, headers = _multipart(browser, rules=b"typed", file=b"")
    assert browser.ask("POST", "/draft", body, headers).headers["location"] == "/draft?rules=typed"
    body, headers = _multipart(browser, file=b"\xff")
    reply = browser.ask("POST", "/draft", body, headers)
    assert (reply.status, "not UTF-8" in reply.text) == (400, True)


def test_two_megabytes_pass_and_more_do_not(browser: Browser) -> None:
    for text, status in ((b"#" * 1_999_999, 303), (b"#" * 2_000_001, 413), (b"#" * 9_000_000, 413)):
        body, headers = _multipart(browser, rules=text)
        assert browser.ask("POST", "/draft", body, headers).status == status


def test_what_a_client_needs_is_appended(browser: Browser) -> None:
    fields = {"do": "append", "intent": "consume", "principal": "User:shop", "topic": "ord*, x", "group": "g"}
    there = browser.post("/draft", {"rules": SHOP, **fields}).headers["location"]
    lines = Parameters.of(there.partition("?")[2]).text("rules").splitlines()
    assert lines == [
        SHOP,
        "+ ALLOW User:shop READ on TOPIC LITERAL 'x' from *",
        "+ ALLOW User:shop READ on GROUP LITERAL 'g' from *",
    ]
    scripted = browser.post("/draft", {"rules": SHOP, **fields}, HX_Request="true")
    assert (scripted.status, scripted.headers["hx-redirect"]) == (200, there)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"intent": "consume", "principal": "User:a", "topic": "t"}, "missing --group: expected every resource"),
        ({"intent": "consume", "principal": "a", "topic": "t", "group": "g"}, "expected TYPE:NAME"),
        ({"intent": "guess", "principal": "User:a"}, "expected one of produce"),
        ({"intent": "produce", "principal": "User:alice", "topic": ""}, "no resource named"),
    ],
)
def test_what_cannot_be_appended_says_why_and_loses_nothing(browser: Browser, fields: dict[str, str], why: str) -> None:
    reply = browser.post("/draft", {"rules": SHOP, "do": "append", **fields})
    assert reply.status == 400
    assert why in reply.text
    assert "READ on TOPIC PREFIXED ord from *" in reply.text
    assert fields["principal"] in reply.text


def test_what_is_no_text_is_refused(browser: Browser) -> None:
    reply = browser.get("/draft?rules=%ED%A0%80")
    assert (reply.status, "not a Unicode character" in reply.text) == (400, True)


def test_what_comes_from_elsewhere_is_refused(browser: Browser) -> None:
    assert browser.post("/draft", {"rules": SHOP, "csrf_token": "x"}).status == 403
    assert browser.post("/draft", {"rules": SHOP}, Origin="http://evil.example").status == 403
    assert browser.post("/draft", {"rules": SHOP}, Sec_Fetch_Site="cross-site").status == 403
    assert browser.post("/rules", {"rules": SHOP}).status == 405
