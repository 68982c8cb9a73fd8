"""What costs more delays neither pages of the newest state nor another viewer."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aclog.authorizer.codes import AclOperation
from aclog.authorizer.settings import Settings
from aclog.console.login.passwords import PasswordWay
from aclog.console.pages.page import Page, Parameters
from aclog.console.pages.states import Console
from aclog.console.pages.views import VIEWS
from aclog.console.web.app import WebConsole, is_costly
from tests.support.builders.acls import acl, cluster_acl
from tests.support.processes.waiting import SECONDS
from tests.support.web.browser import Browser
from tests.support.web.consoles import console_of
from tests.support.web.guarded import guard_of
from tests.support.web.logins import PASSWORD, password_line
from tests.support.web.points import HeldSource, image_of


class Slow:
    """A view that takes until it is let go, and notes who asks."""

    def __init__(self) -> None:
        self.begun, self.let_go, self.most = threading.Semaphore(0), threading.Event(), 0
        self._running, self._lock = 0, threading.Lock()

    def __call__(self, _console: Console, asked: Parameters) -> Page:
        with self._lock:
            self._running += 1
            self.most = max(self.most, self._running)
        self.begun.release()
        assert self.let_go.wait(SECONDS)
        with self._lock:
            self._running -= 1
        return Page(path="/rules", title=f"as of {asked.word('as_of')}")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    """The page of rules at any moment of the past."""
    made, before = Slow(), VIEWS["/rules"]

    def view(console: Console, asked: Parameters) -> Page:
        return (made if asked.word("as_of") else before)(console, asked)

    monkeypatch.setitem(VIEWS, "/rules", view)  # type: ignore[arg-type]
    return made


@pytest.fixture
def source() -> HeldSource:
    return HeldSource(image_of(cluster_acl("User:admin", AclOperation.DESCRIBE), acl("orders", "User:alice")))


@pytest.fixture
def web(source: HeldSource, tmp_path: Path) -> WebConsole:
    path = tmp_path / "logins"
    path.write_text("".join(f"{password_line(f'User:{name}', PASSWORD)}\n" for name in ("admin", "root", "alice")))
    path.chmod(0o600)
    console = console_of(source, settings=Settings(super_users=frozenset({"User:root"})))
    live = console.states.live
    guard = guard_of(
        PasswordWay.read(path),
        newest=lambda: None if live.newest is None else live.newest.image,
        settings=console.states.settings,
    )
    return WebConsole(console=console, guard=guard, retry_s=0)


class Viewer:
    """One who is logged in, and asks without waiting for the answer."""

    def __init__(self, web: WebConsole, name: str) -> None:
        self._web = web
        browser = Browser(web.app())
        browser.get("/login")
        assert browser.post("/login", {"name": f"User:{name}", "password": PASSWORD}).status == 303
        self.cookie = "; ".join(f"{key}={value}" for key, value in browser.cookies.items())

    def ask(self, path: str) -> "asyncio.Task[tuple[int, dict[str, str], bytes]]":
        return asyncio.ensure_future(_get(self._web.app(), path, {"cookie": self.cookie}))


async def _get(app: Any, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    plain, _, query = path.partition("?")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": plain, "raw_path": plain.encode(), "query_string": query.encode(), "root_path": "",
        "headers": [(key.encode(), value.encode()) for key, value in {"host": "127.0.0.1", **headers}.items()],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    found = {key.decode().lower(): value.decode() for key, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(each.get("body", b"") for each in sent[1:])


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.fixture
def admin(web: WebConsole) -> Viewer:
    return Viewer(web, "admin")


@pytest.fixture
def alice(web: WebConsole) -> Viewer:
    return Viewer(web, "alice")


@pytest.mark.parametrize(
    ("path", "query", "costs_more"),
    [
        ("/rules", "", False),
        ("/rules", "as_of=7", True),
        ("/rules", "as_of=%20", False),
        ("/why", "as_of=yesterday", True),
        ("/resource", "name=x", False),
        ("/findings", "", False),
        ("/changes", "", True),
        ("/when", "", True),
        ("/draft", "", True),
        ("/draft/plan", "", True),
    ],
)
def test_what_costs_more(path: str, query: str, costs_more: bool) -> None:
    assert is_costly(path, Parameters.of(query)) is costs_more


def test_the_newest_state_is_shown_while_the_past_is_read(
    web: WebConsole, slow: Slow, admin: Viewer, alice: Viewer
) -> None:
    async def scenario() -> None:
        past = [each.ask(f"/rules?as_of={number}") for number in range(8) for each in (admin, alice)]
        await asyncio.to_thread(slow.begun.acquire)
        async with asyncio.timeout(SECONDS):
            for number in range(5):
                for each in (admin, alice):
                    status, _, body = await each.ask(f"/rules?q={number}")
                    assert (status, b"rules" in body) == (200, True)
                    assert (await each.ask("/live"))[0] == 200
        slow.let_go.set()
        statuses = [status for status, _, _ in await asyncio.gather(*past)]
        assert (statuses.count(200), statuses.count(429)) == (4, 12), "of each, the first and the last"
        assert slow.most == 2, "one of each viewer"
        assert all(headers["retry-after"] == "1" for status, headers, _ in await asyncio.gather(*past) if status == 429)
        assert web.refusals.registry.get_sample_value("aclog_web_requests_refused_total", {"reason": "past"}) == 12

    asyncio.run(scenario())


def test_a_page_of_the_past_is_made_once_for_all_who_ask(web: WebConsole, slow: Slow, alice: Viewer) -> None:
    async def scenario() -> None:
        asked = [alice.ask("/rules?as_of=7") for _ in range(5)]
        await asyncio.to_thread(slow.begun.acquire)
        slow.let_go.set()
        assert {status for status, _, _ in await asyncio.gather(*asked)} == {200}

    asyncio.run(scenario())


def test_a_page_that_its_first_asker_gave_up_is_made_for_the_next(web: WebConsole, slow: Slow, admin: Viewer) -> None:
    root = Viewer(web, "root")

    async def scenario() -> None:
        first = admin.ask("/rules?as_of=1")
        await asyncio.to_thread(slow.begun.acquire)
        waiting, same = admin.ask("/rules?as_of=2"), root.ask("/rules?as_of=2")
        await until(lambda: web._pools._turns._lines.get("User:admin"))
        newer = admin.ask("/rules?as_of=3")
        assert (await waiting)[0] == 429
        slow.let_go.set()
        assert [(await each)[0] for each in (first, same, newer)] == [200] * 3

    asyncio.run(scenario())


def test_a_viewer_has_one_thread_for_the_newest_state(
    admin: Viewer, alice: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow()

    def view(console: Console, asked: Parameters) -> Page:
        return slow(console, asked) if asked.word("q") else Page(path="/search", title="quick")

    monkeypatch.setitem(VIEWS, "/search", view)  # type: ignore[arg-type]

    async def scenario() -> None:
        many = [alice.ask(f"/search?q={number}") for number in range(8)]
        await asyncio.to_thread(slow.begun.acquire)
        async with asyncio.timeout(SECONDS):
            assert (await admin.ask("/search"))[0] == 200
        slow.let_go.set()
        assert {status for status, _, _ in await asyncio.gather(*many)} == {200}
        assert slow.most == 1

    asyncio.run(scenario())


def test_what_many_ask_of_the_past_drives_out_no_page_of_the_newest(
    slow: Slow, admin: Viewer, alice: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def view(_console: Console, asked: Parameters) -> Page:
        made.append(asked.word("q"))
        return Page(path="/search", title="made")

    monkeypatch.setitem(VIEWS, "/search", view)  # type: ignore[arg-type]
    slow.let_go.set()

    async def scenario() -> None:
        assert (await admin.ask("/search?q=mine"))[0] == 200
        for number in range(100):
            assert (await alice.ask(f"/rules?as_of={number}"))[0] == 200
            assert (await alice.ask(f"/search?q={number}"))[0] == 200
            assert (await admin.ask(f"/rules?as_of={number}"))[0] == 200
        made.clear()
        assert (await admin.ask("/search?q=mine"))[0] == 200
        assert made == []

    asyncio.run(scenario())


def test_without_a_login_all_of_a_network_are_one_viewer(source: HeldSource, slow: Slow) -> None:
    async def scenario() -> None:
        app = WebConsole(console=console_of(source), retry_s=0).app()
        past = [asyncio.ensure_future(_get(app, f"/rules?as_of={number}", {})) for number in range(4)]
        await asyncio.to_thread(slow.begun.acquire)
        async with asyncio.timeout(SECONDS):
            status, _, body = await _get(app, "/rules", {})
        assert (status, b"orders" in body) == (200, True)
        slow.let_go.set()
        statuses = [status for status, _, _ in await asyncio.gather(*past)]
        assert statuses == [200, 429, 429, 200]

    asyncio.run(scenario())
