"""`aclog log copy`: copies a log from a directory to a Kafka topic, back, or to another directory."""

import re
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, TypeAlias

from attrs import define, field, frozen

from aclog.cli.log.directory_copy import copied_directory
from aclog.cli.log.until_damage import describe_damage, opened_until_damage
from aclog.metalog.batches import check_crc, iter_batches, read_header
from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.file_names import CheckpointFile, list_checkpoints
from aclog.metalog.log import LogReader
from aclog.metalog.topic_message import MessageBatch, read_batch
from aclog.terminal.notices import note
from aclog.terminal.output import say
from aclog.terminal.progress import Advance, progress

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

    from aclog.metalog.topiclog import TopicSettings
    from aclog.nodes.config.node_config import ClientSecurity

_READ_BYTES = 4 << 20
_KNOWN_SECONDS = 30.0
_TOPIC = re.compile(r"kafka://([^/]+)/((?!\.{1,2}$)[a-zA-Z0-9._-]{1,249})")


@frozen(kw_only=True)
class TopicClient:
    """How to reach the brokers of a topic (librdkafka properties), and the replication factor of a new topic."""

    properties: dict[str, str] = field(repr=False)
    replication_factor: int
    security: "ClientSecurity | None" = None
    """The same as aclog's own client takes it, by which the brokers are tried first; None: they are not."""


@frozen(kw_only=True)
class Copied:
    """The result of a copy: offsets, and a digest of all batches as they are in the copy."""

    start_offset: int
    end_offset: int
    batches: int
    digest: str


Place: TypeAlias = "Path | TopicSettings"


def copy_log(
    source: str, target: str, client: TopicClient, checkpoint: Path | None, *, until_damage: bool = False
) -> bool:
    """Copy everything that is committed now, read the copy again, and print what was copied.

    With `until_damage` only what stands before the first damage of a topic is copied, and the rest is described.
    Returns whether all was copied.

    Raises:
        ConfigError: an invalid address; a topic that cannot hold a log; confluent-kafka is missing.
        LogError: the target is not empty, or cannot be written; the source cannot be read; or the copy differs.
        DecodeError: the source is damaged.

    """
    origin, destination = parse_place(source, client), parse_place(target, client)
    _try_brokers((origin, destination), client)
    with (opened_until_damage if until_damage else _opened)(origin) as reader:
        checkpoints = _checkpoints(origin, checkpoint)
        if reader.high_watermark() <= reader.start_offset():
            raise LogError(f"{reader.name}: empty: nothing to copy")
        with progress(f"copying to {target}", "records") as advance:
            if isinstance(destination, Path):
                copied = _copy_to_directory(reader, destination, checkpoints, advance)
            else:
                copied = _copy_to_topic(reader, destination, advance)
    what = f"offsets {copied.start_offset} to {copied.end_offset}, {copied.batches} batches"
    say(f"{target}: {what}, read back and verified: SHA-256 {copied.digest}")
    if not isinstance(destination, Path) and copied.start_offset:
        _note_missing_checkpoints(copied.start_offset, checkpoints)
    return describe_damage(reader) if until_damage else True


def parse_place(text: str, client: TopicClient) -> Place:
    """Parse a directory, or the topic of kafka://HOST:PORT[,HOST:PORT...]/TOPIC.

    Raises:
        ConfigError: an invalid address; confluent-kafka is not installed.

    """
    if not text.startswith("kafka:"):
        return Path(text)
    found = _TOPIC.fullmatch(text)
    if found is None:
        raise ConfigError(f"{text}: expected kafka://HOST:PORT[,HOST:PORT...]/TOPIC, or a directory")
    from aclog.metalog.topiclog import TopicSettings
    from aclog.sources.server_flags import parse_servers

    servers = ",".join(map(str, parse_servers(text, found[1])))
    return TopicSettings(
        topic=found[2],
        properties={**client.properties, "bootstrap.servers": servers},
        replication_factor=client.replication_factor,
    )


def _try_brokers(places: Iterable[Place], client: TopicClient) -> None:
    from aclog.sources.other_side import check_brokers
    from aclog.sources.server_flags import parse_servers

    for place in places:
        if not isinstance(place, Path) and client.security is not None:
            servers = parse_servers(f"kafka://.../{place.topic}", place.properties["bootstrap.servers"])
            check_brokers(servers, client.security)


@contextmanager
def _opened(place: Place) -> Iterator[LogReader]:
    """Open a reader whose high-water mark is known."""
    if isinstance(place, Path):
        with open_reader(place) as directory:
            directory.high_watermark()
            for text in directory.notes:
                note(text)
            yield directory
        return
    from aclog.metalog.topiclog import TopicReader
    from aclog.metalog.topiclog.historical_reads import HistoricalReads

    with closing(HistoricalReads(place, Event())) as reads:
        reads.connect(_KNOWN_SECONDS)  # fails at once if the topic does not exist; a reader would wait for it
    with TopicReader(place) as topic:
        topic.wait_known(_KNOWN_SECONDS)
        yield topic


def _checkpoints(source: Place, given: Path | None) -> tuple[CheckpointFile, ...]:
    found = list_checkpoints(source) if isinstance(source, Path) else ()
    if given is None:
        return found
    named = [one for one in list_checkpoints(given.parent) if one.path.name == given.name]
    if not named:
        what = "not a finished checkpoint: expected a file such as 00000000000000000211-0000000002.checkpoint"
        raise ConfigError(f"--checkpoint {given}: {what}")
    return (*found, *named)


def _copy_to_directory(
    reader: LogReader, target: Path, checkpoints: tuple[CheckpointFile, ...], advance: Advance
) -> Copied:
    start, end = reader.start_offset(), reader.high_watermark()
    needed = [one for one in checkpoints if one.end_offset >= start] if start else []
    if start and not needed:
        what = f"the log begins at offset {start} and needs a checkpoint with end offset {start} or higher"
        raise LogError(f"{reader.name}: {what}: expected --checkpoint FILE")
    with copied_directory(target, start, needed) as copy:
        written = LogDigest()
        for batch in _batches(reader, start, end, advance):
            written.add(batch)
            copy.append(batch)
        with copy.read_again() as again:
            return _verified(again, start, end, written)


def _copy_to_topic(reader: LogReader, settings: "TopicSettings", advance: Advance) -> Copied:
    from aclog.metalog.topiclog import ensure_topic
    from aclog.metalog.topiclog.bulk_copy import fill_topic

    start, end = reader.start_offset(), reader.high_watermark()
    ensure_topic(settings)
    written = LogDigest()
    # One transaction for the whole log: a topic gets all of it or none.
    fill_topic(settings, _as_stored_in_topic(_batches(reader, start, end, advance), written))
    if written.changed:
        note(f"{written.changed} batches differ in bytes: records, offsets, epochs and times are the same")
    with _opened(settings) as again:
        again.wait(end - 1, _KNOWN_SECONDS)  # a commit is acknowledged shortly before read_committed readers see it
        return _verified(again, start, end, written)


@define(eq=False)
class LogDigest:
    """A digest over batches in order."""

    batches: int = field(default=0, init=False)
    changed: int = field(default=0, init=False)
    """Number of batches whose bytes differ between source and copy."""
    _hash: "Hash" = field(factory=sha256, init=False)

    def add(self, batch: bytes) -> None:
        """Add the next batch."""
        self.batches += 1
        self._hash.update(batch)

    def text(self) -> str:
        """Return the digest in hexadecimal."""
        return self._hash.hexdigest()


def _batches(reader: LogReader, start: int, end: int, advance: Advance | None = None) -> Iterator[bytes]:
    """Yield each batch in this range of offsets, its CRC checked."""
    offset = start
    while offset < end:
        data = reader.read(offset, _READ_BYTES)
        for position, header in iter_batches(data):
            check_crc(data, position, header)
            if header.base_offset >= end:
                return
            yield data[position : position + header.size]
            offset = header.end_offset
        if advance is not None:
            advance(offset - start, end - start)


def _as_stored_in_topic(batches: Iterator[bytes], digest: LogDigest) -> Iterator[MessageBatch]:
    """Yield what a topic stores of the batches, and compute the digest over these as they are rebuilt from it."""
    for batch in batches:
        # A topic stores records, not batch bytes: header fields such as producer ids are not kept. The copy is compared
        # with what a reader of the topic will rebuild.
        stored = read_batch(batch, 0, read_header(batch))
        carried = stored.encode()
        digest.changed += carried != batch
        digest.add(carried)
        yield stored


def _verified(again: LogReader, start: int, end: int, written: LogDigest) -> Copied:
    """Read the copy again, and compare its offsets and its digest."""
    found = LogDigest()
    for batch in _batches(again, again.start_offset(), again.high_watermark()):
        found.add(batch)
    ends = again.start_offset(), again.high_watermark()
    if ends != (start, end) or found.text() != written.text():
        what = f"the copy holds offsets {ends[0]} to {ends[1]}, SHA-256 {found.text()}"
        raise LogError(f"{again.name}: {what}: expected {start} to {end}, {written.text()}; do not use the copy")
    return Copied(start_offset=start, end_offset=end, batches=found.batches, digest=found.text())


def _note_missing_checkpoints(start: int, checkpoints: tuple[CheckpointFile, ...]) -> None:
    """Print that checkpoints are not copied to a topic: each controller keeps them in its own directory."""
    useful = [str(one.path) for one in checkpoints if one.end_offset >= start]
    which = f"such as {useful[-1]}" if useful else "but the source has none"
    what = f"the log begins at offset {start}: each controller needs a checkpoint of {start} or higher, {which}"
    note(f"{what}: copy it into each controller's metadata directory")
