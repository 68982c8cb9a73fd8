"""One browser and one console a module; each test has a context of its own, in which nothing may go wrong."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

from tests.support.processes.node_zygote import shared_zygote
from tests.support.web.chromium import launch
from tests.support.web.console import ConsoleProcess
from tests.support.web.estate import TESTS, write_accesses, write_estate
from tests.support.web.visitor import Hands, Visitor, watched


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    """What drives browsers; while it is open, its thread has a running event loop."""
    with sync_playwright() as opened:
        yield opened


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """Chromium."""
    opened = launch(playwright)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    """A console of the estate, which nobody changes, once it has looked for all findings."""
    home = tmp_path_factory.mktemp("estate")
    (home / "tests.yaml").write_text(TESTS, encoding="utf-8")
    log, accesses = write_estate(home / "log"), write_accesses(home / "accesses.jsonl")
    with ConsoleProcess(
        "--log", log, "--accesses", accesses, "--tests", home / "tests.yaml", zygote=shared_zygote()
    ) as started:
        started.wait_for("/findings?kind=unused", "User:Shop")
        started.wait_for("/findings?kind=new", "User:*")
        started.wait_for("/changes", "2 rule changes")
        yield started


@pytest.fixture
def visit(browser: Browser, console: ConsoleProcess) -> Iterator[Callable[..., Visitor]]:
    """Open a tab at the console, with the hands that are given."""
    opened = []

    def new(hands: Hands = Hands.MOUSE, **options: object) -> Visitor:
        around = watched(browser, console.url, java_script_enabled=hands is not Hands.PLAIN, **options)
        context = around.__enter__()
        opened.append(around)
        return Visitor(context.new_page(), console.url, hands)

    yield new
    for around in opened:
        around.__exit__(None, None, None)
