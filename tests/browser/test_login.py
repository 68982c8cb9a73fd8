"""Logging in, in Chromium: with a password, at a provider, and what a page of another site can do to who is in."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.processes.node_zygote import shared_zygote
from tests.support.web.console import ConsoleProcess
from tests.support.web.estate import write_estate
from tests.support.web.logins import log_in, write_logins
from tests.support.web.oidc_provider import CLIENT, SECRET, OidcProvider, served
from tests.support.web.visitor import watched

EVIL = "http://evil.example/"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_estate(tmp_path_factory.mktemp("estate") / "log")


@pytest.fixture(scope="module")
def guarded(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ConsoleProcess, Path]]:
    """A console with a login, and its audit."""
    home = tmp_path_factory.mktemp("login")
    logins = write_logins(home / "logins", "ann", "shop")
    flags = ("--log", log, "--login", logins, "--audit", home / "audit")
    with ConsoleProcess(*flags, ready="/healthz", zygote=shared_zygote()) as started:
        yield started, home / "audit"


@pytest.mark.tier("test")
def test_a_viewer_logs_in_by_the_keyboard_and_out(browser: Browser, guarded: tuple[ConsoleProcess, Path]) -> None:
    console, _ = guarded
    with watched(browser, console.url) as context:
        page = context.new_page()
        log_in(page, f"{console.url}/rules", "shop")
        expect(page.get_by_text("You are shop")).to_be_visible()
        expect(page.locator("#answer")).to_contain_text("There may be more")
        [cookie] = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Lax", "/")
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()
        page.go_back()
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_browsers_report_nothing_of_the_policy(browser: Browser, guarded: tuple[ConsoleProcess, Path]) -> None:
    console, _ = guarded
    with watched(browser, console.url) as context:
        page = context.new_page()
        log_in(page, f"{console.url}/rules", "ann")
        for path in ("/", "/names", "/resource?type=TOPIC&name=orders", "/principal?name=User:shop", "/rules"):
            page.goto(console.url + path)
            expect(page.locator("#answer")).not_to_contain_text("There may be more")
        assert context.request.get(f"{console.url}/csp-report").json() == {"count": 0, "last": []}


def test_other_sites_change_and_read_nothing(browser: Browser, guarded: tuple[ConsoleProcess, Path]) -> None:
    console, audit = guarded
    context, before = browser.new_context(), logouts(audit)
    try:
        page = context.new_page()
        log_in(page, f"{console.url}/rules", "shop")
        evil = f"""<form method="post" action="{console.url}/logout"><button>go</button></form>
            <iframe src="{console.url}/rules"></iframe><img src="{console.url}/rules">"""
        context.route(f"{EVIL}**", lambda route: route.fulfill(body=evil, content_type="text/html"))
        attack = context.new_page()
        attack.goto(EVIL)
        told = attack.evaluate(
            "url => fetch(url, {credentials: 'include'}).then(reply => reply.text(), error => 'refused')",
            f"{console.url}/rules",
        )
        assert told == "refused"
        attack.get_by_role("button", name="go").click()
        expect(attack.locator("body")).not_to_contain_text("Log in")
        page.reload()
        expect(page.get_by_text("You are shop")).to_be_visible()
    finally:
        context.close()
    assert logouts(audit) == before


def logouts(audit: Path) -> int:
    """How many have succeeded."""
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    return sum(line["path"] == "/logout" and line["status"] == 303 for line in lines)


def test_a_viewer_logs_in_at_a_provider(browser: Browser, log: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "secret").chmod(0o600)
    with served(OidcProvider(claims={"sub": "ann"})) as provider:
        settings = f'issuer = "{provider.issuer}"\nclient_id = "{CLIENT}"\nclient_secret_file = "secret"\n'
        (tmp_path / "oidc.toml").write_text(settings)
        login = f"oidc:{tmp_path / 'oidc.toml'}"
        with ConsoleProcess("--log", log, "--login", login, ready="/healthz", zygote=shared_zygote()) as console:
            context = browser.new_context()
            try:
                page = context.new_page()
                page.goto(f"{console.url}/rules")
                page.get_by_role("button", name="Log in with 127.0.0.1").click()
                expect(page.get_by_text("You are ann")).to_be_visible()
                assert page.url == f"{console.url}/rules"
                assert len(context.cookies()) == 1
                assert context.request.get(f"{console.url}/csp-report").json()["count"] == 0
                page.go_back()
                page.reload()
                expect(page.get_by_text("You are ann")).to_be_visible()
            finally:
                context.close()
