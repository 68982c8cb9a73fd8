"""The `aclog log` commands: dump, verify, adopt and copy."""

import mmap
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from attrs import field
from click.exceptions import Exit

from aclog.cli.flags.common import Output, ShowSecrets
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.images import WORDS, Findings, RangeWatch, Verdict, counts, odd_rules, summary, warn_of_each
from aclog.cli.options import Argument, Group, Option
from aclog.config.node_config import NodeConfig
from aclog.config.server_properties import load_config
from aclog.metalog.batches import BatchHeader, check_crc, iter_batches, read_header, read_records
from aclog.metalog.codec import decode_record
from aclog.metalog.committed_log import LogReader
from aclog.metalog.control_records import decode_control
from aclog.metalog.errors import CheckpointError, ConfigError, DecodeError, LogError, MetadataError, noun, printable
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.file_log import SEGMENT_BYTES
from aclog.metalog.filelog.files import (
    DIRECTORY_MODE,
    PARTIAL_SUFFIX,
    CheckpointFile,
    fsync_directory,
    list_checkpoints,
    list_segments,
    log_error,
)
from aclog.metalog.filelog.files import LogEnd as MirrorLogEnd
from aclog.metalog.filelog.locks import WriterLock
from aclog.metalog.filelog.mirror import MirrorWriter, add_checkpoint, establish_start
from aclog.metalog.filelog.verify import Finding, FindingKind
from aclog.metalog.filelog.verify import verify as filelog_verify
from aclog.metalog.text_forms import Json, control_json, record_json
from aclog.metalog.topic_message import MessageBatch, read_batch
from aclog.metalog.values import define, frozen
from aclog.server.controller.activation import LOG_DIRECTORY, lock_checkpoints
from aclog.server.controller.shared import (
    IDENTITY_FILE,
    KafkaTopic,
    LogEnd,
    OtherLogError,
    SharedReader,
    TopicIdentity,
    check_installed,
    checkpoints_in,
    difference,
    read_identity,
    write_identity,
)
from aclog.server.storage import require_formatted
from aclog.snapshots.checkpoints import uncommitted_bootstrap
from aclog.snapshots.deciding_kafka import deciding_kafka
from aclog.snapshots.image import Image
from aclog.sources.choice import log_images
from aclog.sources.logs import LogSource
from aclog.terminal.columns import Column, OutputFormat, Row, json_text
from aclog.terminal.notices import BYTES, Advance, progress
from aclog.terminal.output import confirms, note, say, time_text, value_formatter

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

    from aclog.config.node_config import ClientSecurity
    from aclog.metalog.topiclog import TopicSettings


# The `aclog log` commands.


app = Group(name="log", help="Print the records of a log, verify it, copy it, or adopt it.", no_args_is_help=True)


@app.command()
def dump(
    paths: Annotated[
        list[Path],
        Argument(metavar="PATH", help="Segments, checkpoints, or directories with such files.", show_default=False),
    ],
    output: AnswerFlags,
    json: Annotated[bool, Option("--json", metavar="", help="One JSON object per record, as --format jsonl.")] = False,
    show_secrets: ShowSecrets = False,
) -> None:
    """Print every record, control records included, one per line.

    With --json each line has the keys file, offset, leaderEpoch, timestamp (ms
    since 1970), type, version and data; a record that aclog does not interpret
    has its bytes in data.base64.

    [bold]Examples[/]

      aclog log dump DIR
      aclog log dump --json DIR | jq 'select(.leaderEpoch > 3)'
    """
    from aclog.metalog.filelog.files import notices
    from aclog.terminal.output import note

    for text in [text for path in paths if path.is_dir() for text in notices(path)]:
        note(text)
    how = output.choose(json=json)
    if how.is_rows:
        how.print_rows(RECORD_COLUMNS, dump_rows(paths, show_secrets=show_secrets))
    else:
        for line in dump_text(paths, show_secrets=show_secrets):
            say(line)


@app.command()
def verify(
    directory: Annotated[
        Path, Argument(metavar="DIR", help="A directory of segments and checkpoints.", show_default=False)
    ],
    output: AnswerFlags,
) -> None:
    """Check every CRC, offset and leader epoch, replay the log, and print what is wrong and where.

    Exit code 1 for damage, 2 if all is whole but a newer Kafka wrote records
    that this aclog does not know: a node would not start on it. Also 2 if there
    is no log in DIR. Warns of every ACL that no request can create, with what
    Kafka 4.3.1 throws on it, and of every ACL that matches no principal.

    [bold]Example[/]

      aclog log verify DIR
    """
    verdict = verify_log(directory, output.choose())
    if verdict:
        raise Exit(verdict)


@app.command()
def copy(
    source: Annotated[str, Argument(metavar="FROM", help="A log: DIR or kafka://HOST:PORT/TOPIC.", show_default=False)],
    target: Annotated[
        str,
        Argument(
            metavar="TO", help="The target: DIR or kafka://HOST:PORT/TOPIC, empty or missing.", show_default=False
        ),
    ],
    command_config: Annotated[
        Path | None,
        Option(
            "--command-config",
            metavar="FILE",
            help="Client properties, as for Kafka's tools: security.protocol, sasl.*, ssl.*.",
        ),
    ] = None,
    replication_factor: Annotated[
        int,
        Option("--replication-factor", metavar="N", min=1, help="Replicas of a topic that is created."),
    ] = 3,
    checkpoint: Annotated[
        Path | None,
        Option(
            "--checkpoint",
            metavar="FILE",
            help="For a log that begins after offset 0: the checkpoint to put into the directory TO.",
        ),
    ] = None,
    until_damage: Annotated[
        bool,
        Option("--until-damage", metavar="", help="Copy the part of a topic before the damage."),
    ] = False,
) -> None:
    """Copy a log from a directory to a Kafka topic, or back: the same records at the same offsets.

    Copies everything committed at the start, reads it back, and compares it. A
    TO that is not empty is refused. Stop the writers of FROM first if they are
    to continue on TO. The copy is atomic: a topic receives the whole log or
    nothing, and a directory appears when it is complete.

    With --until-damage, a topic that readers refuse is copied up to the last whole
    batch before the damage; the batches after it are counted. Exit code 1 if
    there are any.

    [bold]Examples[/]

      aclog log copy DIR kafka://HOST:9092/__aclog_metadata
      aclog log copy kafka://HOST:9092/__aclog_metadata DIR --command-config FILE
    """
    from aclog.config.client_config import librdkafka_properties
    from aclog.sources.server_flags import client_security

    security = client_security(command_config)
    properties = librdkafka_properties(security, "" if command_config is None else f"{command_config}: ")
    client = TopicClient(properties=properties, replication_factor=replication_factor, security=security)
    if not copy_log(source, target, client, checkpoint, until_damage=until_damage):
        raise Exit(1)


@app.command()
def adopt(
    config: Annotated[Path, Argument(metavar="CONFIG", help="The controller's server.properties.", show_default=False)],
    force: Annotated[bool, Option("--force", metavar="", help="Do not ask for confirmation.")] = False,
) -> None:
    """Make a controller on a Kafka topic accept another topic as its log.

    A controller refuses a topic other than the one it has followed, and one that
    lacks records it has seen committed. This command prints the ends of both,
    asks for confirmation, and records the topic that CONFIG names now. Stop the
    controller first.

    [bold]Example[/]

      aclog log adopt server.properties
    """
    adopt_topic(config, force=force)


# Every record of a log as text or JSON (kafka-dump-log --cluster-metadata-decoder).


RecordJson: TypeAlias = dict[str, Json]


@frozen(kw_only=True)
class DumpedRecord:
    """A record: the timestamp (ms since 1970) is that of its batch, `content` is type, version and data."""

    file: str
    offset: int
    leader_epoch: int
    timestamp: int
    content: RecordJson
    position: int
    """Of its batch in the file."""


RECORD_COLUMNS = (
    Column(key="file", cut=True, spare=True),
    Column(key="offset"),
    Column(key="leaderEpoch", title="EPOCH"),
    Column(key="timestamp", spare=True, text=time_text),
    Column(key="type"),
    Column(key="version", spare=True),
    Column(key="data", flows=True),
)
"""Of a record."""


def dump_rows(paths: Sequence[Path], *, show_secrets: bool) -> Iterator[RecordJson]:
    """Yield a JSON object for each record. Raises as `dump`."""
    for record in dumped_records(paths, show_secrets=show_secrets):
        place: RecordJson = {
            "file": record.file,
            "offset": record.offset,
            "leaderEpoch": record.leader_epoch,
            "timestamp": record.timestamp,
        }
        yield {**place, **record.content}


def dump_text(paths: Sequence[Path], *, show_secrets: bool) -> Iterator[str]:
    """Yield a line for each file and for each of its records. Raises as `dump`."""
    file = None
    for record in dumped_records(paths, show_secrets=show_secrets):
        if record.file != file:
            file = record.file
            yield f"Dumping {file}"
        content = record.content
        yield (
            f"offset: {record.offset} leaderEpoch: {record.leader_epoch} timestamp: {record.timestamp} "
            f"{content['type']} v{content['version']} {json_text(content['data'])}"
        )


def dumped_records(paths: Sequence[Path], *, show_secrets: bool) -> Iterator[DumpedRecord]:
    """Yield every record of these segments and checkpoints, by path, in a directory by offset.

    Raises:
        DecodeError: damage, or bytes after the last whole batch, after the records before it; with its position.
        LogError: a directory without segments and checkpoints.
        OSError: a file cannot be read.

    """
    files = [file for path in paths for file in _files(path)]
    total, done = sum(file.stat().st_size for file in files if file.is_file()), 0
    with progress("reading records", BYTES, streams=True) as advance:
        for file in files:
            for record in _dump_file(file, show_secrets=show_secrets):
                advance(done + record.position, total)
                yield record
            done += file.stat().st_size


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    paths = sorted([each.path for each in list_checkpoints(path)] + [each.path for each in list_segments(path)])
    if not paths:
        raise LogError(f"{path}: not a metadata log: it has no segments (*.log) and no checkpoints")
    return paths


def _dump_file(path: Path, *, show_secrets: bool) -> Iterator[DumpedRecord]:
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                yield from _dump_buffer(str(path), data, show_secrets=show_secrets)
            except DecodeError as error:
                raise error.at(path=str(path)) from None


def _dump_buffer(name: str, data: mmap.mmap, *, show_secrets: bool) -> Iterator[DumpedRecord]:
    end = 0
    for position, header in iter_batches(data):
        check_crc(data, position, header)
        end = position + header.size
        for offset, content in _contents(bytes(data[position:end]), position, header, show_secrets=show_secrets):
            yield DumpedRecord(
                file=name,
                offset=offset,
                leader_epoch=header.leader_epoch,
                timestamp=header.max_timestamp,
                content=content,
                position=position,
            )
    if end < len(data):
        raise DecodeError(f"{len(data) - end} bytes that are not a whole batch: truncated?", position=end)


def _contents(
    batch: bytes, position: int, header: BatchHeader, *, show_secrets: bool
) -> Iterator[tuple[int, RecordJson]]:
    """Yield each record of a batch as (offset, JSON); `position` is that of the batch in the file."""
    for record in read_records(batch, 0, header):
        offset = header.base_offset + record.offset_delta
        try:
            if header.is_control:
                yield offset, control_json(decode_control(record.key or b"", record.value))
            else:
                yield offset, record_json(decode_record(record.value), show_secrets=show_secrets)
        except DecodeError as error:
            # The position of the batch in the file is more useful than the position within the value.
            raise DecodeError(f"{error.what} (in the batch here)", position=position, offset=offset) from None


# Verification of a log directory: every batch is checked, then the log is replayed.


FINDING_COLUMNS = (
    Column(key="kind"),
    Column(key="file", cut=True),
    Column(key="position", spare=True),
    Column(key="offset"),
    Column(key="problem", flows=True),
)
"""Of a finding."""


def verify_log(directory: Path, output: Output) -> Verdict:
    """Print every finding and a summary; return the verdict.

    Raises:
        LogError: the directory is not a log, or cannot be read.

    """
    tally = Findings()
    with progress(f"checking {directory.name}", BYTES) as advance:
        findings = list(filelog_verify(directory, advance))
    for finding in findings:
        tally.damaged |= finding.kind is FindingKind.DAMAGE
        tally.newer |= finding.kind is FindingKind.NEWER
        if finding.kind is FindingKind.NOTE:
            note(str(finding))
        elif not output.is_rows:
            say(printable(str(finding)))
    image, problem = _replay(directory, tally)
    if image is not None and (uncommitted := _uncommitted(directory, image)):
        tally.damaged = True
        findings.append(Finding(path=directory, what=uncommitted))
        if not output.is_rows:
            say(printable(str(findings[-1])))
    if problem is not None and not output.is_rows:
        say(printable(f"cannot be replayed: {problem}"))
    answer: dict[str, Any] = {
        "directory": str(directory),
        "segments": len(list_segments(directory)),
        "checkpoints": len(list_checkpoints(directory)),
    }
    failing = 0
    if image is not None:
        answer |= {"endOffset": image.end_offset, "epoch": image.epoch, **counts(image)}
        if not output.is_rows:
            numbers = ((answer[f"{word}s"], word) for word in ("segment", "checkpoint"))
            files = ", ".join(f"{number} {noun(number, word)}" for number, word in numbers)
            say(f"{directory}: {files}, end offset {image.end_offset}, epoch {image.epoch}: {summary(image)}")
        watch = RangeWatch()
        rules = odd_rules(image)
        failing = warn_of_each(watch.watch(rules, deciding_kafka(image, None)), str(directory))
        watch.report()
    if output.form is OutputFormat.TABLE:
        say(WORDS[tally.verdict])
    if output.is_rows:
        verdict = {"verdict": tally.verdict.name, "aclsKafkaThrowsOn": failing, "replayProblem": problem}
        rows = list(map(_finding_object, findings))
        output.print_answer({**verdict, **answer, "findings": rows}, FINDING_COLUMNS, rows)
        return tally.verdict
    throws = f"not damaged, but Kafka 4.3.1 throws on {failing} of its ACLs: see the warnings"
    say(throws if failing and tally.verdict is Verdict.SOUND else WORDS[tally.verdict])
    return tally.verdict


def _uncommitted(directory: Path, image: Image) -> str | None:
    try:
        return uncommitted_bootstrap(directory, image)
    except CheckpointError:  # a finding of its own
        return None


def _finding_object(finding: Finding) -> Row:
    return {
        "kind": finding.kind.name,
        "file": str(finding.path),
        "position": finding.position,
        "offset": finding.offset,
        "problem": finding.what,
    }


def _replay(directory: Path, tally: Findings) -> tuple[Image | None, str | None]:
    """Return the newest state; if the log cannot be replayed, None and the reason."""
    try:
        with progress(f"replaying {directory.name}", BYTES) as advance:
            source = LogSource(directory, note, advance, log_images())
            try:
                image = source.image()
            finally:
                source.close()
    except MetadataError as error:
        tally.add(error)
        return None, str(error)
    tally.newer |= source.left_out
    return image, None


# `aclog log adopt`: makes a controller accept the topic that its configuration names as its log.


_KNOWN_SECONDS = 30.0


def adopt_topic(path: Path, *, force: bool) -> None:
    """Show what the controller has recorded and what the topic holds; record the latter if the operator agrees.

    Raises:
        ConfigError: the file does not describe a controller on a topic; its directory is not formatted; the topic
            cannot hold a log; no answer.
        LockedError: the controller runs.
        LogError: there is no such topic, it does not hold the newest checkpoint, or no broker responds.
        DecodeError: the topic does not end in a log.

    """
    config = load_config(path)
    if config.topic is None:
        raise ConfigError(f"{path}: metadata.log.kind is not topic: there is no topic to adopt")
    check_installed()
    require_formatted(config)
    with closing(lock_checkpoints(config.metadata_log_dir / LOG_DIRECTORY)):
        _Adoption(config, KafkaTopic(settings=config.topic, node_id=config.node_id, voters=config.voter_ids)).run(force)


@define
class _Adoption:
    """One run of the command."""

    config: NodeConfig
    topic: KafkaTopic
    _home: Path = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._home = self.config.metadata_log_dir

    def run(self, force: bool) -> None:
        """See adopt_topic."""
        recorded, identity = self._recorded(), self.topic.identify()
        if identity is None:
            raise LogError(
                f"{self.topic.name}: there is no such topic: correct metadata.log.topic, or copy a log to it"
            )
        self.topic.check_settings()
        with closing(self.topic.open_reader()) as reader:
            reader.wait_known(_KNOWN_SECONDS)
            end = end_of(reader)
            say(f"recorded: {'nothing' if recorded is None else _identity_text(recorded)}")
            current = TopicIdentity(topic=identity, end=end)
            say(f"found:    {_identity_text(current)}, begins at offset {reader.start_offset()}")
            if recorded is not None:
                say(_comparison(reader, recorded, end))
            self._check_checkpoints(reader)
        question = value_formatter()(f"Adopt {self.topic.name} as this controller's log? (y/n)")
        no_answer = "no answer on stdin: nothing is adopted; use --force to adopt without confirmation"
        if not (force or confirms(question, no_answer)):
            return
        write_identity(self._home, current)
        say(f"{self._home / IDENTITY_FILE}: adopted {self.topic.name}")

    def _recorded(self) -> TopicIdentity | None:
        try:
            return read_identity(self._home)
        except OtherLogError as error:
            note(str(error))
            return None

    def _check_checkpoints(self, reader: SharedReader) -> None:
        for each in checkpoints_in(self.config.metadata_log_dir / LOG_DIRECTORY):
            wrong = difference(reader, LogEnd(end_offset=each.end_offset, epoch=each.epoch))
            if wrong is not None:
                what = f"{each.path}: not a checkpoint of {self.topic.name}: {wrong}"
                raise LogError(f"{what}: expected it to be moved away first; nothing is adopted")


def end_of(reader: LogReader) -> LogEnd:
    """Return where a log ends, and in which epoch. Raises as LogReader.read."""
    mark = reader.high_watermark()
    if mark <= reader.start_offset():
        return LogEnd(end_offset=mark, epoch=0)
    return LogEnd(end_offset=mark, epoch=read_header(reader.read(mark - 1, 1)).leader_epoch)


def _identity_text(identity: TopicIdentity) -> str:
    topic = identity.topic
    return f"topic {topic.topic_id} on Kafka {topic.kafka_cluster_id}, {identity.end}"


def _comparison(reader: SharedReader, recorded: TopicIdentity, end: LogEnd) -> str:
    """Return a sentence that compares the topic with the recorded one."""
    wrong, start = difference(reader, recorded.end), reader.start_offset()
    if start > recorded.end.end_offset:
        return f"the topic begins at offset {start}, after what was recorded: whether it held that is unknown"
    if wrong is None:
        return (
            f"the topic holds everything that was recorded, and {end.end_offset - recorded.end.end_offset} more records"
        )
    lost = recorded.end.end_offset - end.end_offset
    many = f": at least {lost} records are lost" if lost > 0 else ""
    return f"the topic does not hold what was recorded: {wrong}{many}"


# A copy of a log in a directory: written under a temporary name and renamed once it is complete and verified.


_TOGETHER_BYTES = 1 << 20


@define(eq=False)
class DirectoryCopy:
    """A log being written in a directory with a temporary name."""

    directory: Path
    _writer: MirrorWriter
    _waiting: list[bytes]
    _size: int = 0

    def append(self, batch: bytes) -> None:
        """Append the next batch.

        Raises:
            ReplayError: it does not follow the previous one.
            LogError: the disk is full or fails.

        """
        self._waiting.append(batch)
        self._size += len(batch)
        if self._size >= _TOGETHER_BYTES:
            self._write()

    def _write(self) -> None:
        if self._waiting:
            self._writer.append(b"".join(self._waiting))
        self._waiting, self._size = [], 0

    @contextmanager
    def read_again(self) -> Iterator[LogReader]:
        """Open a reader of what has been written, from disk; raises what `append` raises."""
        self._write()
        with open_reader(self.directory) as reader:
            yield reader


@contextmanager
def copied_directory(target: Path, start: int, checkpoints: Sequence[CheckpointFile]) -> Iterator[DirectoryCopy]:
    """Create a copy whose log begins at offset `start`; it is renamed to `target` if the block ends without an error.

    After an error nothing is left.

    Raises:
        LogError: `target` is not empty; the remains of a killed copy are next to it; or the disk fails.

    """
    partial = target.with_name(target.name + PARTIAL_SUFFIX)
    _check_free(target, partial)
    try:
        with _written(partial, start, checkpoints) as copy:
            yield copy
        # The caller has verified the copy inside the block; the rename publishes it, and is itself made durable.
        partial.replace(target)
        fsync_directory(target.parent)
    except OSError as error:
        raise log_error(error, target, "cannot write") from error
    finally:
        # After success the directory has been renamed, so this removes nothing.
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _written(directory: Path, start: int, checkpoints: Sequence[CheckpointFile]) -> Iterator[DirectoryCopy]:
    directory.mkdir(mode=DIRECTORY_MODE, parents=True)
    with closing(WriterLock.acquire(directory, force=False)):
        for checkpoint in checkpoints:
            add_checkpoint(directory, checkpoint)
        # The epoch of the record before the log start is unknown and does not matter: epoch 0 is below any real one.
        begin = MirrorLogEnd(end_offset=start, epoch=0)
        establish_start(directory, begin)
        with closing(MirrorWriter.open(directory, begin, segment_bytes=SEGMENT_BYTES, fsync=os.fsync)) as writer:
            yield DirectoryCopy(directory, writer, [])


def _check_free(target: Path, partial: Path) -> None:
    try:
        inside = sorted(path.name for path in target.iterdir()) if target.exists() else []
    except OSError as error:
        raise log_error(error, target, "cannot list") from error
    if inside:
        raise LogError(f"{target}: not empty (it contains {inside[0]}): expected an empty directory, or none")
    if partial.exists():
        raise LogError(f"{partial}: left by an interrupted copy: remove it, then try again")


# The readable part of a damaged topic, for `aclog log copy --until-damage`.


@contextmanager
def opened_until_damage(place: "Path | TopicSettings") -> Iterator[LogReader]:
    """Open what can be read of a topic.

    Raises:
        ConfigError: it is a directory.
        LogError: no broker responds, or one refuses.

    """
    if isinstance(place, Path):
        what = "--until-damage: only for a log in a topic: `aclog log verify` shows where a directory is damaged"
        raise ConfigError(f"{place}: {what}")
    from aclog.metalog.topiclog.copies import salvage

    with salvage(place) as log:
        yield log


def describe_damage(reader: LogReader) -> bool:
    """Print why such a log ends, and what stands after it; return whether it is whole."""
    from aclog.metalog.topiclog.copies import SalvagedLog

    damage = reader.damage if isinstance(reader, SalvagedLog) else None
    if damage is None:
        return True
    say(f"damage: {damage.error}")
    what = "none of them has the headers of a record"
    if damage.offsets is not None:
        first, last = damage.offsets
        what = f"{damage.records} of them have the headers of records, offsets {first} to {last}"
    say(f"not copied: {damage.messages} messages, from Kafka's offset {damage.position} on; {what}")
    return False


# `aclog log copy`: copies a log from a directory to a Kafka topic, back, or to another directory.


_READ_BYTES = 4 << 20
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
    match = _TOPIC.fullmatch(text)
    if match is None:
        raise ConfigError(f"{text}: expected kafka://HOST:PORT[,HOST:PORT...]/TOPIC, or a directory")
    from aclog.metalog.topiclog import TopicSettings
    from aclog.sources.server_flags import parse_servers

    servers = ",".join(map(str, parse_servers(text, match[1])))
    return TopicSettings(
        topic=match[2],
        properties={**client.properties, "bootstrap.servers": servers},
        replication_factor=client.replication_factor,
    )


def _try_brokers(places: Iterable[Place], client: TopicClient) -> None:
    from aclog.sources.live import check_brokers
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
    from aclog.metalog.topiclog.reader import HistoricalReads

    with closing(HistoricalReads(place, Event())) as reads:
        reads.connect(_KNOWN_SECONDS)  # fails at once if the topic does not exist; a reader would wait for it
    with TopicReader(place) as topic:
        topic.wait_known(_KNOWN_SECONDS)
        yield topic


def _checkpoints(source: Place, path: Path | None) -> tuple[CheckpointFile, ...]:
    checkpoints = list_checkpoints(source) if isinstance(source, Path) else ()
    if path is None:
        return checkpoints
    named = [one for one in list_checkpoints(path.parent) if one.path.name == path.name]
    if not named:
        what = "not a finished checkpoint: expected a file such as 00000000000000000211-0000000002.checkpoint"
        raise ConfigError(f"--checkpoint {path}: {what}")
    return (*checkpoints, *named)


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
    from aclog.metalog.topiclog.copies import fill_topic

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
    digest = LogDigest()
    for batch in _batches(again, again.start_offset(), again.high_watermark()):
        digest.add(batch)
    ends = again.start_offset(), again.high_watermark()
    if ends != (start, end) or digest.text() != written.text():
        what = f"the copy holds offsets {ends[0]} to {ends[1]}, SHA-256 {digest.text()}"
        raise LogError(f"{again.name}: {what}: expected {start} to {end}, {written.text()}; do not use the copy")
    return Copied(start_offset=start, end_offset=end, batches=digest.batches, digest=digest.text())


def _note_missing_checkpoints(start: int, checkpoints: tuple[CheckpointFile, ...]) -> None:
    """Print that checkpoints are not copied to a topic: each controller keeps them in its own directory."""
    useful = [str(one.path) for one in checkpoints if one.end_offset >= start]
    which = f"such as {useful[-1]}" if useful else "but the source has none"
    what = f"the log begins at offset {start}: each controller needs a checkpoint of {start} or higher, {which}"
    note(f"{what}: copy it into each controller's metadata directory")
