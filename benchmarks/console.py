"""The console on 100,000 rules: first paint, filters, and 50 viewers of a log that changes 100 times a second.

Filters are asked for at once, while the past is read and findings are looked for, and again at rest.

Viewers poll as its script does, twice a second, ask for their page when there is a new state, and type a key. Server,
viewers, the browser and the writer share the machine; times are those that clients measure.
"""

import asyncio
import itertools
import multiprocessing
import re
import statistics
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from urllib.parse import urlsplit

import uvloop
from attrs import define, field, frozen
from playwright.sync_api import sync_playwright

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, PatternType
from aclog.metalog.codec import encode_record
from aclog.metalog.filelog import open_log
from benchmarks.measurement import percentile
from benchmarks.report import Row
from tests.support.builders.acls import acl, acl_record
from tests.support.web.chromium import launch
from tests.support.web.console import ConsoleProcess

VIEWERS, CHANGES_PER_SECOND = 50, 100
PAINT_MS, FILTER_MS, SLIDER_MS, POLL_MS, PAGE_MS, KEY_MS = 200.0, 100.0, 50.0, 500.0, 150.0, 30.0
_POLL_S = 0.5
_BATCH = 1_000
_READ_S = 300
_HEADERS = "Accept: text/html\r\nAccept-Encoding: gzip\r\nSec-Fetch-Site: same-origin\r\n"
"""As browsers send them for the script of a page."""
_VERSION = re.compile(rb'"version":"([^"]*)"')
_AREAS = ("orders", "payments", "clicks", "stock", "pii", "audit", "search", "mail")
_FILTERS = {
    "rules, any text": "/rules?q=7{n}",
    "rules, a principal": "/rules?principal=team-{n}",
    "rules, all of a rule": "/rules?q={n}&operation=READ&permission=ALLOW&type=TOPIC&pattern=LITERAL",
    "names below a prefix": "/names?type=TOPIC&prefix=orders.team-{n}.",
    "a search": "/search?q=team-{n}",
    "who can, on a name": "/resource?type=TOPIC&name=orders.team-{n}.topic-1",
    "who can, on a prefix": "/resource?type=TOPIC&pattern=PREFIXED&operation=READ&name=orders.team-{n}.",
    "a principal": "/principal?name=User:team-{n}",
    "why": "/why?principal=User:team-{n}&operation=READ&name=orders.team-1.topic-1",
}
_LOOKED_AT = ("/", "/rules?q=team-7", "/names?type=TOPIC", "/principal?name=User:team-7", "/rules",
              "/resource?type=TOPIC&name=orders.team-7.topic-1")  # fmt: skip
_TYPED = (
    "t",
    "team-7",
    "orders.team-1",
    "7",
    "live.topic",
    "who%20can%20read%20orders",
    "why%20can%20team-7%20read%20o",
)


def _rule(number: int) -> StandardAcl:
    """Return one of a cluster's rules: teams that read and write topics of theirs in areas, some by prefix."""
    team, area = number // 50, _AREAS[number % len(_AREAS)]
    operation = (AclOperation.READ, AclOperation.WRITE)[number % 2]
    if number % 50 == 0:
        return acl(f"{area}.team-{team}.", f"User:team-{team}", pattern_type=PatternType.PREFIXED, operation=operation)
    return acl(f"{area}.team-{team}.topic-{number % 50}", f"User:team-{(number * 7) % 2_000}", operation=operation)


def write_log(folder: Path, rules: int) -> Path:
    """Write a log with so many rules."""
    with open_log(folder, create=True, timestamp=1) as log:
        for first in range(0, rules, _BATCH):
            numbers = range(first, min(first + _BATCH, rules))
            log.append([encode_record(acl_record(each + 1, _rule(each))) for each in numbers], timestamp=2).result(60)
    return folder


@define(eq=False)
class Client:
    """One HTTP connection that is kept."""

    host: str
    port: int
    _streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = field(default=None, init=False)

    async def get(self, path: str) -> tuple[int, bytes]:
        """Return status and body."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self.host, self.port, limit=1 << 24)
        reader, writer = self._streams
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n{_HEADERS}\r\n".encode())
        lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
        return int(lines[0].split()[1]), await reader.readexactly(length)

    async def timed(self, path: str) -> tuple[float, bytes]:
        """Return the ms until the whole answer was there, and it."""
        begun = time.monotonic()
        status, body = await self.get(path)
        if status != 200:
            raise AssertionError(f"{path}: {status} {body[:300]!r}")
        return 1000 * (time.monotonic() - begun), body

    async def close(self) -> None:
        """End the connection."""
        if self._streams is not None:
            self._streams[1].close()
            await self._streams[1].wait_closed()


def _client(console: ConsoleProcess) -> Client:
    address = urlsplit(console.url)
    return Client(address.hostname or "", address.port or 0)


@contextmanager
def changing(log: Path, rules: int, per_second: int) -> Iterator[None]:
    """Append single changes at a rate, rules that come and go, until the end of the `with`.

    By a process of its own, as nodes write: a thread of this one would hold up the clients, whose times are measured.
    """
    spawning = multiprocessing.get_context("spawn")
    started, ended = spawning.Event(), spawning.Event()
    writer = spawning.Process(target=_write, args=(log, rules, per_second, started, ended))
    writer.start()
    try:
        if not started.wait(_READ_S):
            raise AssertionError(f"{log}: nothing was written within {_READ_S} s")
        yield
    finally:
        ended.set()
        writer.join()


def _write(log: Path, rules: int, per_second: int, started: Event, ended: Event) -> None:
    with open_log(log) as opened:
        started.set()
        begun = time.monotonic()
        for number in itertools.count():
            if ended.wait(max(begun + number / per_second - time.monotonic(), 0)):
                return
            record = acl_record(rules + number + 1, acl(f"live.topic-{number}", f"User:team-{number % 2_000}"))
            opened.append([encode_record(record)], timestamp=time.time_ns() // 1_000_000)


@frozen
class Crowd:
    """What viewers waited for, in ms."""

    polls: list[float] = field(factory=list)
    pages: list[float] = field(factory=list)
    keys: list[float] = field(factory=list)


async def _watch(console: ConsoleProcess, viewers: int, seconds: float) -> Crowd:
    found, end = Crowd(), time.monotonic() + seconds

    async def view(number: int) -> None:
        client, version, path = _client(console), b"", _LOOKED_AT[number % len(_LOOKED_AT)]
        await asyncio.sleep(_POLL_S * number / viewers)
        while time.monotonic() < end:
            took, body = await client.timed("/live")
            found.polls.append(took)
            matched = _VERSION.search(body)
            assert matched is not None
            if matched[1] != version:
                version = matched[1]
                found.pages.append((await client.timed(path))[0])
            typed = _TYPED[len(found.keys) % len(_TYPED)]
            found.keys.append((await client.timed(f"/complete?q={typed}"))[0])
            await asyncio.sleep(_POLL_S)
        await client.close()

    await asyncio.gather(*(view(number) for number in range(viewers)))
    return found


def _filter_rows(when: str, found: dict[str, list[float]], *, target: float | None) -> Iterator[Row]:
    for what, took in found.items():
        yield Row(what=f"{when}, {what}: median", ours=statistics.median(took), unit="ms")
        yield Row(what=f"{when}, {what}: p99 of {len(took)}", ours=percentile(took, 0.99), unit="ms", target=target)


def _wait_while(console: ConsoleProcess, path: str, text: bytes) -> None:
    """Wait until a page no longer says that the console is at work on it, which takes turns with answering."""
    deadline = time.monotonic() + _READ_S
    while True:
        with urllib.request.urlopen(f"{console.url}{path}", timeout=_READ_S) as reply:
            if text not in reply.read():
                return
        if time.monotonic() > deadline:
            raise AssertionError(f"{path} still says {text.decode()!r}")
        time.sleep(0.5)


async def _filters(console: ConsoleProcess, each: int, first: int) -> dict[str, list[float]]:
    client, found = _client(console), {}
    for what, path in _FILTERS.items():
        found[what] = [(await client.timed(path.format(n=number)))[0] for number in range(first, first + each)]
    await client.close()
    return found


def _paints(console: ConsoleProcess, times: int) -> Iterator[float]:
    """Yield the ms until the first contentful paint of the start, each in a browser that has nothing kept."""
    with sync_playwright() as playwright:
        browser = launch(playwright)
        for _ in range(times):
            context = browser.new_context()
            page = context.new_page()
            page.goto(console.url)
            yield page.evaluate("""() => new Promise(done => new PerformanceObserver(list => {
                const found = list.getEntriesByName("first-contentful-paint");
                if (found.length) done(found[0].startTime);
            }).observe({type: "paint", buffered: true}))""")
            context.close()
        browser.close()


def _paint_row(when: str, console: ConsoleProcess, *, target: float | None) -> Row:
    paints = list(_paints(console, 9))
    what = f"{when}, first paint of the start in Chromium: median of {len(paints)}"
    return Row(what=what, ours=statistics.median(paints), unit="ms", target=target)


def run(scratch: Path, rules: int, each: int, seconds: float) -> Iterator[Row]:
    """Measure a console on `rules` rules: `each` questions of a kind, viewers for `seconds`."""
    log = write_log(scratch / "log", rules)
    with ConsoleProcess("--log", log) as console:
        yield _paint_row("at once", console, target=None)
        yield from _filter_rows("at once", asyncio.run(_filters(console, each, 10)), target=None)
        _wait_while(console, "/findings", b"being scanned")
        _wait_while(console, "/changes", b"still being read")
        yield _paint_row("at rest", console, target=PAINT_MS)
        yield from _filter_rows("at rest", asyncio.run(_filters(console, each, 10 + each)), target=FILTER_MS)
        with changing(log, rules, CHANGES_PER_SECOND):
            crowd = uvloop.run(_watch(console, VIEWERS, seconds))  # as little of the machine as can be
        about = f"{VIEWERS} viewers, {CHANGES_PER_SECOND} changes/s"
        for what, took, target in (
            ("polls", crowd.polls, POLL_MS),
            ("pages", crowd.pages, PAGE_MS),
            ("completions", crowd.keys, KEY_MS),
        ):
            yield Row(what=f"{about}: {len(took):,} {what}, median", ours=percentile(took, 0.5), unit="ms")
            yield Row(what=f"{about}: {what}, p99", ours=percentile(took, 0.99), unit="ms", target=target)
