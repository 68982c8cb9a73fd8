"""`aclog usage-index` of a topic, batch by batch: records, ends and identity are a fake's, the index is real."""

import io
import json
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from attrs import define, field

from aclog.authorizer.settings import Settings
from aclog.cli.flags.accesses import AccessesFlags
from aclog.cli.flags.common import Output
from aclog.cli.flags.source import SourceFlags
from aclog.cli.index_topic import TopicFeed, update_from_topic
from aclog.cli.index_update import IndexRuns, NothingTakenError
from aclog.metalog.topiclog import TopicId, TopicSettings
from aclog.metalog.topiclog.records import Place, Read
from aclog.terminal.columns import OutputFormat
from aclog.usage.index.usage_index import UsageIndex
from aclog.usage.window import DAY, EARLIEST, LATEST, LOST_RECORDS
from tests.cli.test_index_follow import line_of
from tests.cli.test_usage_index import RULES, written
from tests.support.cli.command import aclog

DAY_MS = DAY // 1000
BATCH = 3 * len(line_of(0)) - 3
"""Three records of line_of, also of denials."""


@define
class Records:
    """The records of a topic: by partition, the time and the value of each."""

    parts: "dict[int, list[tuple[int, str]]]"
    topic_id: str = "A"
    low: "dict[int, int]" = field(factory=dict)

    def describe(self) -> "tuple[TopicId, int]":
        return TopicId(kafka_cluster_id="C", topic_id=self.topic_id), len(self.parts)

    def bounds(self, partition: int) -> "tuple[int, int]":
        low = self.low.get(partition, 0)
        return low, low + len(self.parts[partition])

    def read(self, starts, bounds) -> "Iterator[Read]":
        for partition, (low, high) in sorted(bounds.items()):
            for offset in range(starts[partition].offset, high):
                at, line = self.parts[partition][offset - low]
                yield Read(partition, line.encode(), Place(offset + 1, 0, at))

    def remove(self, partition: int, count: int) -> None:
        """As retention does."""
        self.low[partition] = self.low.get(partition, 0) + count
        del self.parts[partition][:count]


def lines(first: int, count: int, *, at: int, text: str = "is Allowed") -> "list[tuple[int, str]]":
    return [(at, line_of(number).replace("is Allowed", text)) for number in range(first, first + count)]


@define
class Reader:
    """Reads a topic into an index."""

    records: Records
    index: UsageIndex
    acls: str
    name: str = "t"
    follow: bool = True
    form: str | None = None
    feed: TopicFeed = field(init=False)
    runs: IndexRuns = field(init=False)

    def __attrs_post_init__(self) -> None:
        topic = TopicSettings(topic=self.name, properties={"bootstrap.servers": "host:1"})
        flags = AccessesFlags(accesses=[topic.name], accesses_format=self.form)
        self.feed = TopicFeed(topic=topic, records=self.records, flags=flags, follow=self.follow, most_bytes=BATCH)
        self.runs = IndexRuns(index=self.index, settings=Settings(), configs=frozenset())

    def step(self) -> "int | None":
        """The accesses that were added."""
        run = self.feed.step(self.runs, SourceFlags(acls=self.acls).choose)
        return None if run is None else run.totals.lines

    def counted(self) -> int:
        return int(self.index.coverage().rows.sum())

    def unread(self) -> "Counter[str]":
        spans = self.index.unread(EARLIEST, LATEST).spans
        counts = Counter[str]()
        for key, span in spans.items():
            counts[str(key.reason)] += span.accesses
        return counts

    def lost_since(self) -> int:
        """The first time of the lost records, in ms since 1970."""
        spans = [span for key, span in self.index.unread(EARLIEST, LATEST).spans.items() if key.reason == LOST_RECORDS]
        return min(span.first for span in spans) // 1000


@pytest.fixture
def reader(tmp_path) -> "Iterator[object]":
    acls = written(tmp_path / "acls.jsonl", RULES)
    with UsageIndex.create(tmp_path / "index") as index:

        def made(records, **more) -> Reader:
            return Reader(records, index, str(acls), **more)

        yield made


@pytest.fixture
def now() -> int:
    return int(time.time() * 1000)


def test_all_batches_have_the_rules_from_stdin(reader, now, monkeypatch):
    stdin = io.BytesIO("".join(json.dumps(each) + "\n" for each in RULES).encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(stdin)))
    topic = reader(Records({0: lines(0, 7, at=now)}), follow=False)
    place = topic.index.database.path.parent
    update_from_topic(topic.feed, SourceFlags(acls="-"), Settings(), place, Output(form=OutputFormat.JSONL))
    assert len(topic.index.runs()) == 3
    assert int(topic.index.used(0, 60_000).matched.sum()) == 7


def test_records_of_a_partition_that_was_not_reached_may_be_of_any_time(reader, now):
    records = Records({0: lines(0, 3, at=now), 1: lines(3, 9, at=now)})
    topic = reader(records)
    assert topic.step() == 3
    records.remove(1, 4)
    assert topic.step() == 3
    assert topic.lost_since() == 0


def test_lost_records_begin_when_the_end_was_read_and_not_at_the_time_of_a_record(reader, now):
    records = Records({0: lines(0, 2, at=now * 1000)})  # its producer takes us for ms
    topic = reader(records)
    assert topic.step() == 2
    with topic.index.database.writing() as database:  # nine days ago
        database.execute("UPDATE streams SET batch = batch - ? WHERE name LIKE '%:since'", (9 * DAY_MS,))
    records.parts[0] += lines(2, 4, at=now)
    records.remove(0, 4)
    assert topic.step() == 2
    assert now - 10 * DAY_MS <= topic.lost_since() <= int(time.time() * 1000) - 10 * DAY_MS


def test_of_a_recreated_topic_all_since_the_slowest_partition_may_be_lost(reader, now):
    records = Records({0: lines(0, 1, at=now), 1: lines(1, 9, at=now)})
    topic = reader(records)
    assert topic.step() == 3
    records.topic_id, records.parts = "B", {0: [], 1: []}
    assert topic.step() is None
    assert topic.lost_since() == 0


def test_of_a_topic_that_is_recreated_twice_the_newest_counts(reader, now):
    records = Records({0: lines(0, 2, at=now)})
    topic = reader(records)
    assert topic.step() == 2
    earlier = [each for each in topic.index.positions("") if each.endswith("since")]
    with topic.index.database.writing() as database:  # years ago
        database.execute("UPDATE streams SET batch = 1000 WHERE name = ?", earlier)
    records.topic_id, records.parts = "B", {0: lines(2, 2, at=now)}
    assert topic.step() == 2
    assert topic.lost_since() == 0
    with topic.index.database.writing() as database:
        database.execute("DELETE FROM unread")
    records.topic_id, records.parts = "C", {0: []}
    assert topic.step() is None
    assert topic.lost_since() >= now - DAY_MS


def test_places_of_an_earlier_version_have_no_time_since_when_records_are_lost(reader, now):
    records = Records({0: lines(0, 2, at=now)})
    topic = reader(records)
    assert topic.step() == 2
    with topic.index.database.writing() as database:
        database.execute("DELETE FROM streams WHERE name LIKE '%:since'")
    records.parts[0] += lines(2, 2, at=now)
    records.remove(0, 3)
    assert topic.step() == 1
    assert topic.lost_since() == 0


@pytest.mark.parametrize(
    ("text", "unread"), [("is Denied", {}), ("is Allowed by chance", {"UNREADABLE": 6})], ids=["denied", "unreadable"]
)
def test_a_full_batch_without_an_access_to_add_does_not_stop_the_reading(reader, now, text, unread):
    topic = reader(Records({0: lines(0, 6, at=now, text=text) + lines(6, 3, at=now)}))
    assert [topic.step() for _ in range(4)] == [0, 0, 3, None]
    assert (topic.counted(), topic.unread()) == (3, unread)


def test_the_last_batch_waits_and_its_unread_accesses_are_noted(reader, now):
    topic = reader(Records({0: lines(0, 2, at=now, text="is Allowed by chance")}))
    for _ in range(2):
        with pytest.raises(NothingTakenError, match="but the index notes that 2 accesses"):
            topic.step()
    assert topic.unread() == {"UNREADABLE": 2}
    topic.records.parts[0] += lines(2, 1, at=now)
    assert topic.step() == 1


def test_a_stated_format_that_may_be_wrong_skips_nothing(reader, now):
    topic = reader(Records({0: lines(0, 9, at=now)}), form="%m (%d{yyyy})%n")
    with pytest.raises(NothingTakenError):
        topic.step()
    assert topic.index.positions("") == {}
    assert topic.unread() == {}


@pytest.mark.parametrize("name", ["acc.br", "audit.pq", "audit.parquet", "acc.lz4"])
def test_a_topic_may_be_named_like_a_file_of_another_kind(reader, now, name):
    assert reader(Records({0: lines(0, 2, at=now)}), name=name).step() == 2


def test_a_topic_has_no_versions(tmp_path):
    index = "--index", tmp_path / "index"
    topic = "--accesses", "kafka://127.0.0.1:1/log"
    for follow in ((), ("--follow",)):
        refused = aclog(
            "usage-index", "--acls", written(tmp_path / "a", RULES), *topic, *index, "--version-as-of", 3, *follow
        )
        assert refused.code == 2
        assert "expected a Delta or Iceberg table: other files have no versions" in refused.complaint
