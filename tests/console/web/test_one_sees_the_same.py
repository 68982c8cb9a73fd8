"""Who sees his own rights only sees the same, to the byte, whatever others' rules and super users are."""

import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import pairwise, product
from pathlib import Path
from types import FrameType
from urllib.parse import quote

import pytest
from attrs import evolve

from aclog.analysis.engine.host_classes import is_address
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings, parse_super_users
from aclog.cli.flags.common import AuthorizerFlags
from aclog.console.findings import Kind, LookResult
from aclog.console.login.passwords import PasswordWay
from aclog.console.pages.completion import COMPLETE_PATH
from aclog.console.pages.page import CommandLine
from aclog.console.pages.page import _short_row as short_rule_row
from aclog.console.pages.states import Console
from aclog.console.pages.views import DOWNLOADS, OWN_VIEWS, VIEWS
from aclog.console.web.app import RECEIVERS, WebConsole
from aclog.console.web.rendering import _short_row as short_html_row
from aclog.metalog.codec import encode_record
from aclog.metalog.filelog import open_log
from aclog.metalog.records import FeatureLevelRecord, OpaqueRecord, RemoveAccessControlEntryRecord
from aclog.snapshots.image import Image, Provenance
from tests.support.builders.acls import acl, acl_record, cluster_acl
from tests.support.builders.ids import uuid_of
from tests.support.processes.waiting import wait_until
from tests.support.web.asgi import Reply
from tests.support.web.browser import Browser
from tests.support.web.consoles import console_of, look
from tests.support.web.finders import HeldFinder, watched
from tests.support.web.guarded import guard_of
from tests.support.web.histories import console_on
from tests.support.web.points import HeldSource, image_of

DENY = AclPermissionType.DENY
PASSWORD = "password"
HASH = "$argon2id$v=19$m=8,t=1,p=1$jEMj43rAEBu0OWZ282/o+Q$/GWgmwCZoBsHXh/7absn2rZtdF5BTea4C+5lio6o75E"
OWN = (
    acl("orders", "User:alice"),
    acl("orders.", "User:alice", operation=AclOperation.WRITE, pattern_type=PatternType.PREFIXED),
    acl("orders.eu", "User:alice", permission_type=DENY, operation=AclOperation.WRITE),
    acl("news", "User:*"),
    acl("news", "User:*", "10.0.0.66", permission_type=DENY),
)
ONE = (
    cluster_acl("User:admin", AclOperation.DESCRIBE),
    acl("orders", "User:bob"),
    acl("orders", "User:alicea", permission_type=DENY),
    acl("secret-plans", "User:bob", operation=AclOperation.ALL),
    acl("*", "User:carol", "10.9.9.9"),
    acl("orders", "Group:staff", pattern_type=PatternType.PREFIXED),
    acl("payroll", "User:bob", resource_type=ResourceType.GROUP),
)
OTHER = (acl("orders", "User:dave", operation=AclOperation.DELETE), *(acl(f"x{n}", "User:eve") for n in range(40)))
OTHERS = (
    "User:bob",
    "secret-plans",
    "",
    "alicea",
    "orders",
    "User:root",
    "User:*",
    "*",
    "10.9.9.9",
    "Group:staff",
    "payroll",
)
VALUES = {
    "name": ("User:alice", "secret-plans", "orders", "news", "payroll", "User:bob", "*", "x1"),
    "principal": ("User:alice", "User:bob", "User:dave", "User:*", "User:root", ""),
    "operation": ("READ", "WRITE", "ALL", "any"),
    "type": ("TOPIC", "GROUP", "CLUSTER"),
    "q": OTHERS,
    "prefix": ("", "s", "o", "x", "secret-"),
    "resource": ("", "secret-plans", "x1"),
    "host": ("", "10.9.9.9", "10.0.0.66"),
    "as_of": ("", "0", "7"),
    "pattern": ("prefixed", "literal"),
    "permission": ("DENY",),
    "first": ("0", "3", "1000"),
    "intent": ("consume", "produce"),
}  # fmt: skip
PAIRS = (("principal", "name"), ("name", "operation"), ("type", "name"), ("q", "first"), ("principal", "operation"))
COMPLETED = (
    "o", "orders", "secret", "User:", "User:b", "bob", "payroll", "x1", "who can read ", "who can read secret",
    "who can write group pay", "why can bob read o", "why can alice write orders", "what can ", "what can bob",
    "when could alice read orders", "changes since yesterday", "can",
)  # fmt: skip
STARTED = re.compile(r"\b\d{13}-(?=[0-9a-f]+\b)")
TOKEN = re.compile(r"\b[0-9a-f]{64}\b")
COOKIE = re.compile(r"(aclog-8181=)[^;]+")
GET = {"Accept": "text/html", "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


def asked() -> list[str]:
    """Queries of pages: each parameter alone, pairs of them, and whole requests."""
    single = [f"{name}={quote(value)}" for name, values in VALUES.items() for value in values]
    pairs = [f"{a}={quote(x)}&{b}={quote(y)}" for a, b in PAIRS for x, y in product(VALUES[a], VALUES[b])]
    return ["", *single, *pairs, *WHOLE]


WHOLE = [
    f"principal={quote(who)}&operation={operation}&type=TOPIC&name={quote(name)}&host={host}"
    for who, operation, name, host in product(
        ("User:alice", "User:bob"),
        ("READ", "WRITE"),
        ("orders", "secret-plans", "orders.eu", "news"),
        ("", "10.0.0.66"),
    )
]


def alice(path: Path, others: tuple, super_users: str) -> tuple[Browser, Console]:
    """Alice, and the console of these rules where she has logged in."""
    flags = AuthorizerFlags(super_users=super_users)
    settings = Settings(super_users=parse_super_users(super_users))
    image = image_of(*OWN, *others).at(Provenance(end_offset=90, epoch=1, timestamp=1_700_000_000_000))
    console = console_of(HeldSource(image), settings=settings)
    command = CommandLine(source=("--log", "d"), settings=tuple(flags.words()))
    way = PasswordWay.read(path)
    guard = guard_of(way, newest=lambda: image, settings=settings)
    return login(WebConsole(console=evolve(console, command=command), guard=guard)), console


def logged_in(path: Path, console: Console, newest: Callable[[], Image | None], settings: Settings) -> Browser:
    guard = guard_of(PasswordWay.read(path), newest=newest, settings=settings)
    return login(WebConsole(console=console, guard=guard))


def login(web: WebConsole) -> Browser:
    browser = Browser(web.app())
    browser.get("/login")
    assert browser.post("/login", {"name": "alice", "password": PASSWORD}).status == 303
    return browser


@pytest.fixture(autouse=True)
def _one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The age of a state is the same, however long a test takes."""
    monkeypatch.setattr("aclog.console.live.elapsed_seconds", lambda: 100.0)


@pytest.fixture
def logins(tmp_path: Path) -> Path:
    path = tmp_path / "logins"
    path.write_text(f"User:alice:{HASH}\n")
    path.chmod(0o600)
    return path


@pytest.mark.slow(10)
def test_one_sees_the_same(logins: Path) -> None:
    worlds = alice(logins, ONE, "User:root"), alice(logins, OTHER, "User:boss;User:chief")
    browsers, statuses = [browser for browser, _ in worlds], set()
    for page, query, form in product((*VIEWS, "/live", "/none", COMPLETE_PATH), asked(), ("", "json")):
        for _, console in worlds:
            look(console)
        statuses.add(same(browsers, "GET", f"{page}?{query}&format={form}").status)
    assert statuses == {200, 400, 403, 404}


@pytest.mark.parametrize("form", ["csv", *sorted({form for forms in DOWNLOADS.values() for form in forms}), "none"])
def test_every_format_says_the_same(logins: Path, form: str) -> None:
    browsers = [alice(logins, others, "User:root")[0] for others in (ONE, OTHER)]
    found = 0
    for page, query in product(VIEWS, ("", "name=orders&operation=READ", "name=User:alice", "q=o", "as_of=90")):
        shown = same(browsers, "GET", f"{page}?{query}&format=json")
        tables = [key for key, part in shown.json.items() if isinstance(part, dict) and "rows" in part]
        for key in (*tables, "none", ""):
            reply = same(browsers, "GET", f"{page}?{query}&format={form}&table={key}")
            found += reply.headers["content-type"].startswith("text/csv") and reply.status == 200
    assert found > 10 or form != "csv"


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH", "TRACE"])
def test_every_method_and_path_is_answered_alike(logins: Path, method: str) -> None:
    browsers = [alice(logins, others, "User:root")[0] for others in (ONE, OTHER)]
    paths = (
        *VIEWS,
        *RECEIVERS,
        "/live",
        COMPLETE_PATH,
        "/none",
        "/healthz",
        "/readyz",
        "/csp-report",
        "/login",
        "/static/none",
        "/logout",
    )
    statuses = set()
    for path, kind in product(paths, ("text/html", "application/json")):
        for body in (b"", b"add=User:bob&name=secret-plans&format=json", b"\xff{"):
            given = {
                "Accept": kind,
                "Content-Type": "application/x-www-form-urlencoded",
                "Sec-Fetch-Site": "same-origin",
            }
            statuses.add(same(browsers, method, path, body, given | {"X-CSRF-Token": "{token}"}).status)
    assert statuses & {200, 403, 405}


def test_the_live_stream_is_the_same_while_others_change(logins: Path, tmp_path: Path) -> None:
    """On two logs of one length and age: one has rules where the other has other records, and other rules."""
    hers = [acl_record(uuid_of(number), rule) for number, rule in enumerate(OWN)]
    theirs = [acl_record(uuid_of(100 + number), rule) for number, rule in enumerate((*ONE, *OTHER[:5]))]
    removals = [RemoveAccessControlEntryRecord(id=uuid_of(100 + number)) for number in range(len(theirs))]
    noise = [OpaqueRecord(api_key=20, version=0, value=b"\x01\x14\x00\x00")] * 30
    steps = [
        (hers[:3], hers[:3]),
        (theirs[:1], noise[:1]),
        (theirs[1:9], [*noise[:4], *theirs[1:5]]),
        ([hers[3]], [hers[3]]),
        (removals[1:4], noise[:3]),
        ([hers[4], removals[5]], [hers[4], noise[0]]),
    ]
    with ExitStack() as stack:
        worlds = [World(tmp_path / name, logins, stack) for name in ("one", "other")]
        browsers = [world.browser for world in worlds]
        versions = []
        for number, step in enumerate(steps):
            for world, records in zip(worlds, step, strict=True):
                world.write(records, timestamp=1_700_000_000_000 + number)
            lookout = worlds[0].console.console.lookout
            assert lookout is not None
            lookout.round()  # in one world alone: what was found in it is none of hers
            versions.append(same(browsers, "GET", "/live").json["version"])
            for text in COMPLETED:
                same(browsers, "GET", f"{COMPLETE_PATH}?q={quote(text)}")
            for page, query in product(
                OWN_VIEWS, ("", "name=orders&operation=READ&principal=User:alice", "as_of=3", "as_of=1")
            ):
                same(browsers, "GET", f"{page}?{query}")
                same(browsers, "GET", f"{page}?{query}&format=json")
    changed = [before != after for before, after in pairwise(versions)]
    assert changed == [False, False, True, False, True], "she is told when what she sees has changed"


def test_what_is_wrong_with_others_rules_is_not_told(logins: Path) -> None:
    """Errors of a source quote lines; that the deciding Kafka is unknown names hosts of rules that are ranges."""
    worlds = []
    for others, trouble in (
        ((acl("t", "User:bob", "10.9.0.0/16"),), "rules.jsonl:7: principal: bob: expected User:bob"),
        ((acl("secret-plans", "User:carol", "172.16.0.0/12"), *ONE), "cannot be read"),
    ):
        source = HeldSource(image_of(*OWN))
        settings = Settings(is_kafka_stated=False)
        console = console_of(source, settings=settings)
        browser = logged_in(logins, console, lambda source=source: source.current, settings)
        worlds.append((browser, source, console, others, trouble))
    browsers = [browser for browser, *_ in worlds]
    queries = ("", "name=orders", "as_of=0", "as_of=9", "as_of=yesterday", "as_of=x")
    assert same(browsers, "GET", "/rules").status == 200
    for _, source, console, _, trouble in worlds:
        source.trouble = trouble
        look(console)
    for page, query, form in product((*OWN_VIEWS, "/live"), queries, ("", "json")):
        same(browsers, "GET", f"{page}?{query}&format={form}")
    for _, source, console, others, _ in worlds:
        source.trouble, source.current, source.past = None, image_of(*OWN, *others), image_of(*others)
        look(console)
    for page, query, form in product((*OWN_VIEWS, "/live"), queries, ("", "json")):
        reply = same(browsers, "GET", f"{page}?{query}&format={form}")
        assert "Kafka 4.4" not in reply.text
    assert same(browsers, "GET", "/rules").status == 200


@pytest.mark.parametrize("text", COMPLETED)
def test_a_completion_has_nothing_of_others_and_is_the_same(logins: Path, text: str) -> None:
    browsers = [alice(logins, others, "User:root")[0] for others in (ONE, OTHER)]
    reply = same(browsers, "GET", f"{COMPLETE_PATH}?q={quote(text)}")
    assert reply.status == 200
    found = " ".join(each["text"] for each in reply.json["completions"] if each["kind"] != "rules")
    for word in text.split():  # what was typed comes back as a name that may exist
        found = found.replace(word, "")
    assert not [other for other in ("bob", "secret", "payroll", "carol", "dave", "x1") if other in found]


def test_a_page_takes_the_same_steps_whatever_others_rules_are(logins: Path) -> None:
    """Not by wall time, which the machine makes: by the calls of the functions that make and explain pages."""
    warm_up(alice(logins, ONE, "User:root")[0])
    browsers = [alice(logins, others, "User:root")[0] for others in (ONE, OTHER)]
    counted = 0
    for page, query in product(sorted(OWN_VIEWS), ("", *WHOLE[:12], "q=o", "name=secret-plans", "principal=User:bob")):
        for form in ("", "json"):
            calls = []
            for browser in browsers:
                with counted_calls() as found:
                    browser.get(f"{page}?{query}&format={form}")
                calls.append(found)
            assert calls[0] == calls[1], f"{page}?{query}: {calls[0] - calls[1]} {calls[1] - calls[0]}"
            counted += calls[0].total()
    assert counted > 10_000


def warm_up(browser: Browser) -> None:
    """Let the process make what it makes once, such as templates, before the calls of the first viewer are counted."""
    for page, form in product(sorted(OWN_VIEWS), ("", "json")):
        browser.get(f"{page}?{WHOLE[0]}&format={form}")


@contextmanager
def counted_calls() -> Iterator[Counter[str]]:
    """How often each function was called whose work depends on what the viewer sees alone; in new threads, too.

    The index, which decides from all rules as the cluster does, is not among them. What remembers answers for the whole
    process forgets them first: it was asked by whoever came before. Rows are kept by all that they show.
    """
    found: Counter[str] = Counter()
    for remembered in (is_address, short_rule_row, short_html_row):
        remembered.cache_clear()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and any(part in frame.f_code.co_filename for part in ("aclog/console/", "aclog/analysis/")):
            found[f"{frame.f_code.co_filename.rpartition('aclog/')[2]}:{frame.f_code.co_qualname}"] += 1

    before = sys.getprofile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield found
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]  # which typeshed lacks


def same(
    browsers: Sequence[Browser], method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = GET
) -> Reply:
    """Ask all worlds, and return the answer, which is the same of all, with its headers and cookies."""
    replies = []
    for browser in browsers:
        given = {name: value.replace("{token}", browser.token) for name, value in headers.items()}
        replies.append(browser.ask(method, path, body, given))
    one, *others = map(seen, replies)
    assert all(other == one for other in others), f"{method} {path}"
    return replies[0]


def seen(reply: Reply) -> tuple[object, ...]:
    """An answer without what is of its console's start, and of the session."""
    headers = sorted((name, plain(value)) for name, value in reply.headers.items() if name != "content-length")
    text = plain(reply.body.decode("utf-8", "surrogateescape"))
    return reply.status, headers, [plain(each) for each in reply.set_cookies], text


def plain(text: str) -> str:
    return COOKIE.sub(r"\1session", TOKEN.sub("token", STARTED.sub("version", text)))


class World:
    """A log that grows, and Alice at its console, which has a history and a lookout."""

    def __init__(self, directory: Path, logins: Path, stack: ExitStack) -> None:
        self._log = stack.enter_context(closing(open_log(directory, create=True, timestamp=0)))
        self.write(
            [FeatureLevelRecord(name="metadata.version", feature_level=30)], timestamp=1_600_000_000_000, look=False
        )
        console = stack.enter_context(console_on(directory))
        finder = HeldFinder(LookResult(items=()))
        settings, live = console.states.settings, console.states.live
        self.console = WebConsole(console=watched(console, {Kind.LINT: finder}))
        self.console.guard = guard_of(
            PasswordWay.read(logins),
            newest=lambda: None if live.newest is None else live.newest.image,
            settings=settings,
        )
        self.browser = login(self.console)

    def write(self, records: Sequence[object], *, timestamp: int, look: bool = True) -> None:
        self._log.append([encode_record(each) for each in records], timestamp=timestamp).result()
        end = self._log.end_offset()
        if look:
            live = self.console.console.states.live
            wait_until(
                lambda: live.newest is not None and live.newest.image.end_offset == end, "the console has read it"
            )
