"""States of the fixtures for tests of the shell, and a log in memory that a test can let grow."""

import gzip
import json
from functools import cache
from pathlib import Path

from attrs import define, field

from aclog.authorizer.acl import ChangePlace
from aclog.metalog.batches import build_batch, iter_batches
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import ConfigError, LogError
from aclog.shell.command import ShellState
from aclog.snapshots.applier import Applier
from aclog.snapshots.image import Image, NewerKafka

DATA = Path(__file__).parents[2] / "data"
SMALL = DATA / "kafka-4.3.1-small"
CHURN = DATA / "kafka-4.3.1-churn"


@define
class MemoryReader:
    """A LogReader over batches in memory; the end of the last batch is the high-water mark."""

    batches: list[bytes] = field(factory=list)
    name: str = "memory"
    closed: bool = False

    def append(self, *records, timestamp=1_800_000_000_000):
        values = [encode_record(record) for record in records]
        end = self.high_watermark()
        self.batches.append(build_batch(values, base_offset=end, leader_epoch=1, timestamp=timestamp))

    def start_offset(self):
        return 0

    def high_watermark(self):
        if not self.batches:
            return 0
        ((_, header),) = iter_batches(self.batches[-1])
        return header.end_offset

    def read(self, offset, max_bytes=1 << 20):
        if not 0 <= offset <= self.high_watermark():
            raise LogError(f"{self.name}: offset {offset} is out of range")
        chunk = b""
        for batch in self.batches:
            ((_, header),) = iter_batches(batch)
            if header.end_offset > offset and (not chunk or len(chunk) + len(batch) <= max_bytes):
                chunk += batch
        return chunk

    def wait(self, offset, timeout):
        return self.high_watermark() > offset

    def close(self):
        self.closed = True


@define
class FollowedLog:
    """A StateSource over a reader; the past is replayed from the start."""

    log: MemoryReader
    change_place: ChangePlace = field(factory=ChangePlace)
    applier: Applier = field(factory=lambda: Applier(newer=NewerKafka(strict=False)))

    @property
    def name(self):
        return self.log.name

    def image(self):
        while self.applier.next_offset < self.log.high_watermark():
            self.applier.apply(self.log.read(self.applier.next_offset))
        return self.applier.image

    def freshness(self):
        return None

    def image_at(self, moment):
        return replayed(self.log.batches, moment)


@define
class OneState:
    """A StateSource with nothing to follow and no past."""

    state: Image
    name: str = "fixture"
    log: None = None
    change_place: ChangePlace = field(factory=ChangePlace)

    def image(self):
        return self.state

    def freshness(self):
        return None

    def image_at(self, moment):
        raise ConfigError(f"{self.name}: as of {moment}: one state only")


def replayed(batches, end_offset):
    applier = Applier(newer=NewerKafka(strict=False))
    for batch in batches:
        if applier.next_offset >= end_offset:
            break
        applier.apply(batch)
    return applier.image


@cache
def batches_of(fixture):
    """Every batch of a fixture's log, in order."""
    batches = []
    for path in sorted((fixture / "__cluster_metadata-0").glob("*.log")):
        data = path.read_bytes()
        batches += [data[at : at + header.size] for at, header in iter_batches(data)]
    return tuple(batches)


@cache
def fixture_image(fixture, end_offset):
    return replayed(batches_of(fixture), end_offset)


def session(image, **options):
    return ShellState(source=OneState(image), **options)


def transcripts(fixture):
    """The rows of a fixture's INDEX.jsonl, each with the text that Kafka's shell printed."""
    directory = fixture / "expected" / "shell"
    rows = [json.loads(line) for line in (directory / "INDEX.jsonl").read_text("utf-8").splitlines()]
    return [{**row, "text": (directory / row["file"]).read_bytes().decode("utf-8")} for row in rows]


def expected_acls(fixture):
    path = fixture / "expected" / "acls.jsonl"
    data = path.read_bytes() if path.exists() else gzip.decompress(path.with_suffix(".jsonl.gz").read_bytes())
    return [json.loads(line) for line in data.splitlines()]


def printed(lines):
    """What a run of a command prints."""
    return "".join(line.text + "\n" for line in lines)
