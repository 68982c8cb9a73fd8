"""An index in an S3 store: as one in a directory, and two writers never lose each other's accesses."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TypeAlias

import pytest
from attrs import define, evolve

from aclog import unused
from aclog.authorizer.settings import Settings
from aclog.cli.flags.accesses import AccessesFlags
from aclog.cli.flags.common import Output
from aclog.cli.flags.source import SourceFlags
from aclog.cli.index_topic import TopicFeed, update_from_topic
from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.topiclog import TopicSettings
from aclog.terminal.columns import OutputFormat
from aclog.usage.index import database, stored
from aclog.usage.index.database import FILE
from aclog.usage.index.stored import StoredIndex, index_place, reading_index, writing_index
from aclog.usage.index.usage_index import UsageIndex
from aclog.usage.window import LOST_RECORDS, UnreadCounter, UnreadSpan
from tests.cli.test_index_topic import BATCH, Records, lines
from tests.cli.test_usage_index import RULES as RULES_OF_LINES
from tests.cli.test_usage_index import written
from tests.support.builders.index_runs import DAY, PlainUse, plain_rules, run_of, tally_of
from tests.support.cli.command import Result, aclog
from tests.support.processes.object_store import object_store

pytestmark = pytest.mark.tier("test")

RULE = {
    "resourceType": "TOPIC", "resourceName": "orders", "patternType": "LITERAL", "principal": "User:a", "host": "*",
    "operation": "READ", "permissionType": "ALLOW",
}  # fmt: skip
RULES = [RULE, RULE | {"resourceName": "never"}]
ACCESS = {
    "principal": "User:a", "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC", "resourceName": "orders",
    "broker": "1",
}  # fmt: skip
KEY = f"audit/team a/usage/{FILE}"
SECONDS = 60


@define
class Store:
    """A store with one index, and what is there."""

    options: str
    objects: dict[str, bytes]
    requests: list[str]
    seen: list[str]
    """The Authorization header of each read."""
    fault: Callable[[str, str], int | tuple[int, bytes] | None] = lambda _when, _request: None

    @property
    def place(self) -> str:
        """The index, as --index names it."""
        return f"s3://audit/team a/usage{self.options}"

    def fails(self, when: str, request: str) -> int | tuple[int, bytes] | None:
        """The present fault."""
        return self.fault(when, request)

    def puts(self) -> int:
        """The number of puts of the index."""
        return sum(each.startswith("PUT") and FILE in each for each in self.requests)


@pytest.fixture(autouse=True)
def credentials(monkeypatch, tmp_path):
    """Those of no one: nothing of the machine is read."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hUsH")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    monkeypatch.setattr(stored, "_PAUSE", 0.01)
    (tmp_path / "scratch").mkdir()


@pytest.fixture
def store() -> Iterator[Store]:
    served = Store("", {}, [], [])
    with object_store(
        served.objects,
        requests=served.requests,
        seen=served.seen,
        fault=served.fails,
    ) as options:
        served.options = options
        yield served


@pytest.fixture
def log(tmp_path) -> Path:
    (tmp_path / "acls.jsonl").write_text("".join(json.dumps(each) + "\n" for each in RULES))
    return logged(tmp_path, 10, 11)


def logged(tmp_path: Path, *days: int) -> Path:
    lines = [ACCESS | {"timestamp": f"2026-11-{day:02}T{hour:02}:00:00Z"} for day in days for hour in range(24)]
    (tmp_path / "a.log").write_text("".join(json.dumps(each) + "\n" for each in lines))
    return tmp_path / "a.log"


def indexed(place: object, log: Path) -> Result:
    """Add what is new in a log."""
    words = ("--accesses", log, "--acls", log.parent / "acls.jsonl", "--index", place)
    return aclog("accesses", "index", *words, "--format", "jsonl")


def added(run: Result) -> int:
    return int(json.loads(run.ok().out)["accesses"])


def take(index: UsageIndex, name: str) -> None:
    """Add a run of an own rule and of a shared one."""
    uses = [PlainUse(time=20_000 * DAY, principal="User:a", host="h", matched=frozenset({0, 1}))]
    rules = evolve(plain_rules([name, "shared"]), is_whole=False)
    index.take(run_of(rules, uses), [tally_of(uses)])


def put(place: str, name: str, error: Exception | None = None, kept: type[Exception] | tuple[()] = ()) -> None:
    """Add a run to an index, and perhaps fail then."""
    with writing_index(place, kept=kept) as index:
        take(index, name)
        if error is not None:
            raise error


def matched(place: str) -> dict[str, int]:
    """How many accesses each rule matched, by its name."""
    with reading_index(place) as index:
        used = index.used(20_000, 20_000)
        texts = index.texts(used.numbers.tolist())
    return dict(zip((text["resourceName"] for text in texts), used.matched.tolist(), strict=True))


# As in a directory.


def test_every_reader_reports_the_same_as_of_a_directory(store, log, tmp_path):
    where = tmp_path / "index"
    for days, count in (((10, 11), 48), ((10, 11, 12), 24), ((10, 11, 12), 0)):
        logged(tmp_path, *days)
        del store.requests[:]
        runs = [indexed(place, log).ok() for place in (where, store.place)]
        assert [added(run) for run in runs] == [count, count]
        assert runs[0].out == runs[1].out
        assert store.puts() == (count > 0)  # nothing new, nothing put
    assert list(store.objects) == [KEY]
    acls = ("--acls", tmp_path / "acls.jsonl")
    for command in (
        ("accesses", "unused", *acls, "--days", 1, "--format", "jsonl"),
        ("accesses", "unused", *acls, "--days", 1, "--accesses", log),
        ("accesses", "coverage", "--gap", "6h", "--format", "jsonl"),
        ("report", *acls, "--sections", "unused", "--out", tmp_path / "report.md"),
    ):
        results = []
        for place in (where, store.place):
            run = aclog(*command, "--index", place)
            text = (tmp_path / "report.md").read_text().partition("## ")[2] if command[0] == "report" else run.out
            results.append((run.code, text.replace(f"'{place}'", "INDEX").replace(str(place), "INDEX")))
            assert run.code in (0, 1), run
        assert results[0] == results[1]
    reports = [unused(tmp_path / "acls.jsonl", place, days=1) for place in (where, store.place)]
    assert list(reports[0]) == list(reports[1])
    assert {each["answer"] for each in reports[1]} == {"NEEDED", "NEVER_MATCHED"}
    assert not list((tmp_path / "scratch").iterdir())


def test_the_object_is_one_whole_database(store, log, tmp_path):
    added(indexed(store.place, log))
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / FILE).write_bytes(store.objects[KEY])
    with UsageIndex.open(tmp_path / "copy") as index:
        assert sum(run.accesses for run in index.runs()) == 48
        assert index.database.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    # a directory continues what a store has, and a store what a directory has
    assert added(indexed(tmp_path / "copy", logged(tmp_path, 10, 11, 12))) == 24
    store.objects[KEY] = (tmp_path / "copy" / FILE).read_bytes()
    assert added(indexed(store.place, logged(tmp_path, 10, 11, 12, 13))) == 24


def test_what_waits_is_noted_in_the_store(store, log):
    log.write_text("".join(json.dumps(ACCESS) + "\n" for _ in range(3)))  # without a time
    refused = indexed(store.place, log)
    assert refused.code == 2
    assert "nothing was taken, but the index notes that" in refused.complaint
    with reading_index(store.place) as index:
        assert index.unread(0, 1 << 60)


def test_no_index_names_the_command_that_makes_it(store, tmp_path):
    (tmp_path / "acls.jsonl").write_text(json.dumps(RULE))
    refused = aclog("accesses", "unused", "--acls", tmp_path / "acls.jsonl", "--index", store.place)
    expected = f"s3://audit/team a/usage: no index: no object {FILE}: expected one, which `aclog accesses index --index"
    assert refused.complaint.startswith(expected)
    assert not store.objects


def test_an_index_without_accesses_is_named_by_its_address(store, log):
    lost = UnreadCounter()
    lost.add(None, None, LOST_RECORDS, UnreadSpan(1, 0, DAY))
    with writing_index(store.place) as index:
        index.note_lost(lost.total, [], DAY)
    refused = aclog("accesses", "unused", "--acls", log.parent / "acls.jsonl", "--index", store.place, "--days", 1)
    assert refused.complaint.startswith("s3://audit/team a/usage: no accesses yet")


def test_a_copy_without_room_is_named_by_its_address(store, monkeypatch, tmp_path):
    put(store.place, "a")
    del store.objects[KEY]

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(database, "fsync_directory", full)
    with pytest.raises(ConfigError, match=r"^s3://audit/team a/usage: cannot be created: No space left.*TMPDIR"):
        put(store.place, "a")


@pytest.mark.parametrize("content", [b"", b"text", b"SQLite format 3\0" + bytes(4080)])
def test_an_object_that_is_no_index_is_named(store, content):
    store.objects[KEY] = content
    with pytest.raises(ConfigError, match=r"^s3://audit/team a/usage: "), reading_index(store.place):
        pass


# Writers.


def test_of_two_writers_at_once_one_is_refused_and_nothing_is_lost(store):
    for is_new in (True, False):
        if not is_new:
            put(store.place, "before")
        with ExitStack() as first:
            slow = first.enter_context(writing_index(store.place))
            put(store.place, "quick")
            content = store.objects[KEY]
            take(slow, "slow")
            with pytest.raises(ConfigError, match="another process has written the index meanwhile, so that this"):
                first.close()
        assert store.objects[KEY] == content
        put(store.place, "slow")
        before = {} if is_new else {"before": 1}
        assert matched(store.place) == {"quick": 1, "slow": 1, "shared": 2 + len(before), **before}
        store.objects.clear()


def test_many_writers_at_once_lose_and_double_nothing(store):
    refusals: list[str] = []

    def write(name: str) -> None:
        """Take runs, each until it is stored, as jobs would."""
        for _ in range(4):
            is_stored = False
            while not is_stored:
                try:
                    put(store.place, name)
                    is_stored = True
                except ConfigError as error:
                    refusals.append(str(error))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, ("one", "two", "three")))
    assert matched(store.place) == {"one": 4, "two": 4, "three": 4, "shared": 12}
    assert refusals
    assert all("another process has written the index meanwhile" in refusal for refusal in refusals)
    assert list(store.objects) == [KEY]


@pytest.mark.parametrize("ignored", ["If-Match", "If-None-Match"])
def test_a_store_that_ignores_a_condition_is_refused(log, ignored):
    objects = {KEY: b"former"}
    with object_store(objects, ignored=[ignored]) as options:
        refused = indexed(f"s3://audit/team a/usage{options}", log)
    assert refused.complaint.startswith(f"s3://audit/team a/usage: the store ignores {ignored}: two writers could lose")
    assert objects == {KEY: b"former"}


def test_a_block_that_fails_or_changes_nothing_puts_nothing(store):
    with writing_index(store.place):
        pass
    with pytest.raises(ZeroDivisionError):
        put(store.place, "lost", ZeroDivisionError())
    assert not store.objects
    with pytest.raises(ZeroDivisionError):
        put(store.place, "kept", ZeroDivisionError(), ZeroDivisionError)
    assert matched(store.place) == {"kept": 1, "shared": 1}
    with writing_index(store.place) as index:
        assert index.contents_version == 0
    assert store.puts() == 1


# Batches of a topic, each with its offsets.


@define
class FailingRecords(Records):
    """The records of a topic of which the third batch cannot be read."""

    fault: Callable[[], None] = lambda: None

    def read(self, starts, bounds):
        for each in Records.read(self, starts, bounds):
            if each.place.offset == 8:
                self.fault()
            yield each


def read_topic(place: str, acls: Path, fault: Callable[[], None] = lambda: None) -> None:
    """Add three batches of three records, or fail in the third."""
    topic = TopicSettings(topic="t", properties={"bootstrap.servers": "host:1"})
    records = FailingRecords({0: lines(0, 9, at=1_795_600_000_000)}, fault=fault)
    flags = AccessesFlags(accesses=[topic.name])
    feed = TopicFeed(topic=topic, records=records, flags=flags, follow=False, most_bytes=BATCH)
    update_from_topic(feed, SourceFlags(acls=str(acls)), Settings(), place, Output(form=OutputFormat.JSONL))


def batches_of(place: str) -> list[int]:
    with reading_index(place) as index:
        return [run.accesses for run in index.runs()]


def raising(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.fixture
def acls(tmp_path) -> Path:
    return written(tmp_path / "acls.jsonl", RULES_OF_LINES)


@pytest.mark.parametrize("error", [LogError("t: no broker responds"), OSError("no room")])
def test_batches_before_an_error_are_stored(store, acls, capsys, error):
    with pytest.raises((LogError, ConfigError), match=str(error)):
        read_topic(store.place, acls, raising(error))
    assert [json.loads(line)["accesses"] for line in capsys.readouterr().out.splitlines()] == [3, 3]
    assert (batches_of(store.place), store.puts()) == ([3, 3], 1)
    read_topic(store.place, acls)
    assert batches_of(store.place) == [3, 3, 3]


def test_a_long_run_stores_its_batches_meanwhile(store, acls, capsys, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        read_topic(store.place, acls, raising(KeyboardInterrupt()))
    assert (store.puts(), capsys.readouterr().out) == (0, "")
    monkeypatch.setattr(stored, "_INTERVAL", 0)
    with pytest.raises(KeyboardInterrupt):
        read_topic(store.place, acls, raising(KeyboardInterrupt()))
    assert (batches_of(store.place), store.puts()) == ([3, 3], 2)
    assert len(capsys.readouterr().out.splitlines()) == 2
    read_topic(store.place, acls)
    assert (batches_of(store.place), store.puts()) == ([3, 3, 3], 3)
    assert [json.loads(line)["accesses"] for line in capsys.readouterr().out.splitlines()] == [3, 0]


@pytest.mark.parametrize("interval", [0, 300])
def test_batches_that_are_not_stored_are_not_reported(store, acls, capsys, monkeypatch, interval):
    monkeypatch.setattr(stored, "_INTERVAL", interval)

    def overtaken() -> None:
        with reading_index(store.place) as index:
            before = len(index.runs())
        put(store.place, "a")
        if interval:
            raise LogError(f"t: cannot be read after {before}")

    put(store.place, "a")
    with pytest.raises(ConfigError) as caught:
        read_topic(store.place, acls, overtaken)
    overwritten = "another process has written the index meanwhile, so that this upload has changed nothing: run the"
    assert str(caught.value).count(overwritten) == 1
    if interval:
        assert str(caught.value).startswith("t: cannot be read after 1; what was added before that is not stored: s3:")
    assert [json.loads(line)["accesses"] for line in capsys.readouterr().out.splitlines()] == [3, 3] * (not interval)
    assert batches_of(store.place) == ([1, 1] if interval else [1, 3, 3, 1])


def test_a_damaged_copy_is_not_stored(store, acls, tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "_INTERVAL", 0)

    def damaged() -> None:
        (copy,) = (tmp_path / "scratch").glob(f"*/{FILE}")
        with copy.open("r+b") as file:
            file.seek(4096)
            file.write(bytes(copy.stat().st_size - 4096))
        raise LogError("t: no broker responds")

    with pytest.raises(ConfigError, match=r"^t: no broker responds; what was added before that is not stored: s3:"):
        read_topic(store.place, acls, damaged)
    assert batches_of(store.place) == [3, 3]


# Faults of the network.


Answer: TypeAlias = int | tuple[int, bytes] | None


def once(when: str, status: Answer) -> Callable[[str, str], Answer]:
    """A fault of the first put of an index."""
    done: list[str] = []

    def fault(then: str, request: str) -> Answer:
        if then != when or not request.startswith("PUT") or FILE not in request or done:
            return None
        done.append(request)
        return status

    return fault


@pytest.mark.parametrize("status", [0, 500, 503])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_put_without_a_good_response_counts_once(store, when, status):
    for count in (1, 2):
        store.fault = once(when, status)
        put(store.place, "a")
        assert matched(store.place) == {"a": count, "shared": count}
    assert store.puts() == (4 if when == "before" else 2)


def error_of(code: str, message: str = "") -> bytes:
    return f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()


def test_a_slow_upload_is_tried_again(store):
    store.fault = once("before", (400, error_of("RequestTimeout")))
    put(store.place, "a")
    assert (matched(store.place), store.puts()) == ({"a": 1, "shared": 1}, 2)


@pytest.mark.parametrize(
    ("code", "hint", "puts"),
    [
        ("RequestTimeout", ": the former index was still there: run the command again", 3),
        ("ExpiredToken", ": expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN), or", 1),
        ("InvalidToken", ": expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN), or", 1),
        ("AuthorizationHeaderMalformed", ": expected the region of the bucket (?region=REGION)", 1),
    ],
)
def test_which_requests_that_are_not_valid_are_final(store, code, hint, puts):
    store.fault = lambda when, request: (
        (400, error_of(code)) if when == "before" and request.startswith("PUT") and FILE in request else None
    )
    with pytest.raises(ConfigError) as refused:
        put(store.place, "a")
    assert f"cannot be written: HTTP status 400 ({code}){hint}" in str(refused.value)
    assert store.puts() == puts


def test_a_lost_response_before_another_writer_is_not_taken_for_a_refusal(store):
    """The put has an effect; before its writer reads the object again, another one adds to it."""
    fault = once("after", 0)

    def then_another(when: str, request: str) -> int | None:
        status = fault(when, request)
        if status is not None:
            put(store.place, "quick")
        return status

    store.fault = then_another
    with pytest.raises(ConfigError, match="another process has written the index meanwhile, perhaps after this one"):
        put(store.place, "slow")
    assert matched(store.place) == {"quick": 1, "slow": 1, "shared": 2}


def test_a_refusal_after_a_put_without_a_response_claims_no_more_than_is_known(store):
    """The first put may still arrive: that the second one is refused does not mean that nothing was changed."""
    puts: list[str] = []

    def fault(when: str, request: str) -> int | None:
        if when != "before" or not request.startswith("PUT") or FILE not in request:
            return None
        puts.append(request)
        if len(puts) == 2:
            put(store.place, "quick")
        return 0 if len(puts) == 1 else None

    store.fault = fault
    with pytest.raises(ConfigError, match="another process has written the index meanwhile, perhaps after this one"):
        put(store.place, "slow")
    assert matched(store.place) == {"quick": 1, "shared": 1}


def test_a_store_that_fails_keeps_the_former_index(store):
    put(store.place, "a")
    for status, attempts, why in ((500, 3, "HTTP status 500"), (403, 1, r"HTTP status 403 .*s3:PutObject")):
        del store.requests[:]
        store.fault = lambda when, request, status=status: (
            status if when == "before" and request.startswith("PUT") and FILE in request else None
        )
        with pytest.raises(ConfigError, match=rf"{why}.*the former index was still there"):
            put(store.place, "b")
        assert store.puts() == attempts
    del store.requests[:]
    store.fault = lambda _when, request: 0 if FILE in request and store.puts() else None
    with pytest.raises(ConfigError, match=r"what is there now is unknown .*each as a whole"):
        put(store.place, "b")
    store.fault = lambda _when, _request: None
    assert matched(store.place) == {"a": 1, "shared": 1}


def test_a_read_is_of_one_version(store, tmp_path):
    """Of an object that is replaced within a read, the client continues neither with the other one nor with less."""
    put(store.place, "a")
    first = store.objects[KEY]
    put(store.place, "b")
    second, reads = store.objects[KEY], []

    def fault(when: str, request: str) -> int | None:
        if when != "within" or FILE not in request:
            return None
        reads.append(request)
        store.objects[KEY] = second
        return 0 if len(reads) == 1 else None

    store.objects[KEY] = first
    store.fault = fault
    with pytest.raises(ConfigError, match="cannot be read: the connection broke, or the object was replaced meanwhile"):
        matched(store.place)
    assert matched(store.place) == {"a": 1, "b": 1, "shared": 2}
    reads.clear()
    assert matched(store.place) == {"a": 1, "b": 1, "shared": 2}  # the same object: the read continues
    assert len(reads) == 2


def test_what_does_not_fit_is_refused(store, tmp_path, monkeypatch):
    put(store.place, "a")
    content = store.objects[KEY]
    with monkeypatch.context() as context:
        context.setattr(stored, "_LARGEST", len(content) - 1)
        with pytest.raises(
            ConfigError, match=r"the index has [0-9,]+ bytes: expected at most [0-9,]+, which a store takes"
        ):
            put(store.place, "b")
    with monkeypatch.context() as context:
        context.setattr(stored, "private_directory", lambda: str(tmp_path / "gone"))
        with pytest.raises(ConfigError, match=r"^s3://audit/team a/usage: cannot be copied to .*scratch: .*TMPDIR"):
            matched(store.place)
    assert store.objects[KEY] == content


def test_a_write_ahead_log_that_stays_is_never_left_out(store, monkeypatch):
    """As of a full disk, on which SQLite cannot move its commits into the database."""
    close = UsageIndex.close

    def leaving(index: UsageIndex) -> None:
        close(index)
        Path(f"{index.database.path}-wal").write_bytes(b"commits")

    monkeypatch.setattr(UsageIndex, "close", leaving)
    with pytest.raises(ConfigError, match=r"not complete without its write-ahead log: .*nothing was written"):
        put(store.place, "a")
    assert not store.objects


# Kills.


@pytest.mark.process
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_writer_leaves_one_of_two_whole_indexes(store, log, tmp_path, when):
    put(store.place, "a")
    processes: list[subprocess.Popen[bytes]] = []

    def kill(then: str, request: str) -> int | None:
        if then == when and request.startswith("PUT") and FILE in request:
            processes[0].send_signal(signal.SIGKILL)
            processes[0].wait(SECONDS)
            return 0
        return None

    store.fault = kill
    words = ("--accesses", log, "--acls", tmp_path / "acls.jsonl", "--index", store.place)
    processes.append(subprocess.Popen([sys.executable, "-m", "aclog", "accesses", "index", *map(str, words)]))
    assert processes[0].wait(SECONDS) == -signal.SIGKILL
    store.fault = lambda _when, _request: None
    with reading_index(store.place) as index:
        assert len(index.runs()) == (1 if when == "before" else 2)
    assert added(indexed(store.place, log)) == (48 if when == "before" else 0)
    with reading_index(store.place) as index:
        assert sum(run.accesses for run in index.runs()) == 1 + 48


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_command_leaves_no_copies(store, log, tmp_path, number):
    put(store.place, "a")
    store.objects["audit/logs/a.log"] = log.read_bytes()
    processes: list[subprocess.Popen[str]] = []
    copies: list[str] = []

    def stop(when: str, request: str) -> None:
        if when == "before" and request.startswith("PUT") and FILE in request:
            copies.extend(path.name for path in (tmp_path / "temporary").rglob("*"))
            processes[0].send_signal(number)

    store.fault = stop
    (tmp_path / "temporary").mkdir()
    places = (f"s3://audit/logs{store.options}", "--index", store.place)
    words = ("accesses", "index", "--acls", tmp_path / "acls.jsonl", "--accesses", *places)
    environment = os.environ | {"TMPDIR": str(tmp_path / "temporary"), "AWS_EC2_METADATA_DISABLED": "true"}
    # under nohup, which ignores SIGHUP, a command would ignore it as well
    command = f"import signal; signal.signal({number:d}, signal.SIG_DFL); from aclog.__main__ import main; main()"
    processes.append(
        subprocess.Popen(
            [sys.executable, "-c", command, *map(str, words)], env=environment, stderr=subprocess.PIPE, text=True
        )
    )
    _, complaint = processes[0].communicate(timeout=SECONDS)
    assert {FILE, "0"} <= set(copies)
    assert list((tmp_path / "temporary").iterdir()) == []
    assert (processes[0].returncode, complaint.splitlines()[-1]) == (130, "aclog: interrupted")


# Addresses and credentials.


def test_follow_and_other_stores_are_refused(store, log):
    words = ("accesses", "index", "--accesses", log, "--acls", log.parent / "acls.jsonl")
    refused = aclog(*words, "--index", store.place, "--follow")
    assert "s3://audit/team a/usage: expected a directory of this machine: --follow adds a batch" in refused.complaint
    for scheme in ("gs", "hdfs", "kafka", "http", "S3"):
        for command in (words, ("accesses", "coverage"), ("report", *words[4:], "--out", log.parent / "x.md")):
            refused = aclog(*command, "--index", f"{scheme}://id:hUsH@bucket/usage")
            expected = (
                f"an index in a store of {scheme.lower()}: is not supported: expected a directory of this machine"
            )
            assert expected in refused.complaint
            assert "hUsH" not in refused.err
    assert not store.requests
    with pytest.raises(ConfigError, match="lost slashes"):
        index_place(Path("s3://audit/usage"))
    assert index_place("file:///var/lib/usage") == Path("/var/lib/usage")
    assert index_place("usage") == index_place(Path("usage")) == Path("usage")
    assert index_place("s3a://audit/usage/") == StoredIndex(bucket="audit", prefix="usage")


@pytest.mark.parametrize(
    "place",
    [
        "s3://AKIAX:ab/hUsHcd@bucket/x",
        "s3://AKIAX:hUsH@bucket/x",
        "s3://hUsH@bucket/x",
        "s3://bucket/x?access_key=AKIAX&secret_key=hUsH",
        "s3://bucket/x?region=hUsH",
        "s3://bucket/x?hUsH=1",
        "s3://bucket/x?endpoint_override=AKIAX:hUsH@host:1&scheme=http",
        "s3://bucket/x?endpoint_override=host/hUsH",
        "s3://bucket/x?scheme=ftp",
        "s3://bucket/x?region=a&region=b",
        "s3://",
        "s3://../x",
        "s3://b/x",
        "s3://bucket/a/../x",
        "s3://bucket/a//x",
        "s3://bucket/./x",
        "s3://bucket//x",
        "s3://bucket/a\nx",
        "s3://bucket/\udcff",
        "s3://bucket/*",
        f"s3://bucket/x/{FILE}",
    ],
)
def test_addresses_that_are_refused(place):
    with pytest.raises(ConfigError, match="expected") as refused:
        index_place(place)
    assert not any(part in str(refused.value) for part in ("AKIAX", "hUsH"))


@pytest.mark.parametrize("prefix", ["", "a/b", "a b", "a+b", "a%20b", "ü", "a#b", "a\\b", "..a", "x@y:1"])
def test_each_prefix_is_its_own_key(store, prefix):
    place = f"s3://audit/{prefix}{store.options}"
    with writing_index(place) as index:
        take(index, "a")
    assert list(store.objects) == [f"audit/{prefix}/{FILE}".replace("//", "/")]
    assert matched(place) == {"a": 1, "shared": 1}


def test_no_message_has_credentials(store, log, monkeypatch):
    """A store's response may repeat the id of a key; so may the client's error."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "tOkEn")
    runs = [indexed(store.place, log).ok()]
    for status in (0, 301, 400, 401, 403, 404, 409, 412, 500):
        for command in ("PUT", "GET", "DELETE"):
            store.fault = lambda when, request, status=status, command=command: (
                status if when == "before" and request.startswith(command) else None
            )
            runs.append(indexed(store.place, logged(log.parent, 10, 11, status % 7 + 12)))
            assert runs[-1].code in (0, 2)
    store.fault = lambda _when, _request: None
    runs += [indexed("s3://audit/usage?endpoint_override=127.0.0.1:9&scheme=http", log)]
    runs += [indexed(store.place.replace("scheme=http", "scheme=https"), log)]
    assert "no connection to the store" in runs[-1].complaint
    for name, value in (("AWS_SKIP_SIGNATURE", "hUsH"), ("AWS_SERVER_SIDE_ENCRYPTION", "hUsH")):
        with monkeypatch.context() as context:
            context.setenv(name, value)
            runs.append(indexed(store.place, log))
            assert "the variables of the AWS SDK (AWS_*) are not valid" in runs[-1].complaint
    for run in runs:
        assert not any(part in run.out + run.err for part in ("AKIAID", "hUsH", "tOkEn"))


def test_no_traceback_has_credentials(store, monkeypatch):
    """A response of a refused signature repeats what was signed, which has the token of a session."""
    put(store.place, "a")
    answer = (403, error_of("SignatureDoesNotMatch", "GET\nx-amz-security-token:tOkEn\nAKIAID"))

    def refused(then: str, command: str, name: str = "") -> Callable[[str, str], Answer]:
        return lambda when, request: (
            answer if when == then and request.startswith(command) and name in request else None
        )

    def read() -> None:
        with reading_index(store.place):
            pass

    def write() -> None:
        put(store.place, "b")

    steps = [(read, "GET", ""), (write, "PUT", "probe"), (write, "DELETE", "probe"), (write, "PUT", FILE)]
    for run, command, name in steps:
        store.fault = refused("before", command, name)
        assert_no_secret(run)
    store.fault = lambda _when, _request: None
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "tOkEn")
    assert_no_secret(read)


def assert_no_secret(run: Callable[[], None]) -> None:
    with pytest.raises(ConfigError) as caught:
        run()
    printed = "".join(traceback.format_exception(caught.value))
    assert not any(part in printed for part in ("AKIAID", "hUsH", "tOkEn"))


def test_without_obstore_the_extra_is_named(store, log, monkeypatch):
    monkeypatch.setattr(stored, "find_spec", lambda _: None)
    refused = indexed(store.place, log)
    assert refused.complaint.startswith("no module obstore: an index in a store needs it: ")
    assert "s3" in refused.complaint
    refused = indexed("abfss://logs@account1.dfs.core.windows.net/usage", log)
    assert "azure" in refused.complaint


class Roles(BaseHTTPRequestHandler):
    """What serves the credentials of a role: a container's agent, or a machine's metadata."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_PUT(self) -> None:
        """Begin a session of a machine's metadata."""
        self._answer(b"token")

    def do_GET(self) -> None:
        """Answer with the credentials of a container or a machine."""
        if self.path.endswith("/security-credentials/"):
            self._answer(b"role")
            return
        who = "OFMACHINE" if "/security-credentials/" in self.path else self.headers.get("Authorization", "")
        keys = {"AccessKeyId": who, "SecretAccessKey": "s", "Token": "t", "Code": "Success", "Type": "AWS-HMAC"}
        self._answer(json.dumps(keys | dict.fromkeys(("Expiration", "LastUpdated"), "2099-01-01T00:00:00Z")).encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def roles() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Roles)
    serving = Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def test_where_credentials_are_found(store, roles, tmp_path, monkeypatch):
    """As docs/usage.md states: in variables, of a container, of a machine; not in the files of profiles."""
    put(store.place, "a")
    (tmp_path / "token").write_text("OFCONTAINER")
    (tmp_path / "profiles").write_text("[default]\naws_access_key_id = OFPROFILE\naws_secret_access_key = s\n")
    container = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{roles}/credentials",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token"),
    }
    found = []
    for variables in ({}, container, {"AWS_METADATA_ENDPOINT": roles}):
        with monkeypatch.context() as context:
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY") if variables else ():
                context.delenv(name)
            for name, value in variables.items():
                context.setenv(name, value)
            del store.seen[:]
            assert matched(store.place) == {"a": 1, "shared": 1}
            found += [each.partition("Credential=")[2].partition("/")[0] for each in store.seen]
    assert found == ["AKIAID", "OFCONTAINER", "OFMACHINE"]
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "profiles"))
    with pytest.raises(
        ConfigError, match=r"no credentials: expected AWS_ACCESS_KEY_ID .*files of profiles are not read"
    ):
        matched(store.place)


def test_the_endpoint_of_a_variable_is_used_unless_the_address_has_one(store, monkeypatch):
    put(store.place, "a")
    port = re.search(r":(\d+)", store.options)
    assert port is not None
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port[1]}")
    assert matched("s3://audit/team a/usage") == {"a": 1, "shared": 1}
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    assert matched(store.place) == {"a": 1, "shared": 1}
