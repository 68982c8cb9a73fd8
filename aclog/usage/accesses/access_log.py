"""The files of an access log: their forms, their contents by digest, and what is new in them."""

import glob
import hashlib
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from datetime import UTC, timedelta, timezone, tzinfo
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, BinaryIO, Final, NamedTuple, TypeAlias, cast

import pyarrow as pa
from attrs import evolve

from aclog.authorizer.audit import Reason
from aclog.metalog.errors import ConfigError, plural
from aclog.metalog.values import frozen
from aclog.usage.accesses.access_batch import (
    APACHE,
    BEGINNING,
    TIMESTAMP,
    UTF_16,
    AccessBatch,
    AccessForm,
    form_of,
    read_kafka_lines,
)
from aclog.usage.accesses.addresses import Address, is_object_path, plain_name
from aclog.usage.accesses.avro_events import read_avro_events
from aclog.usage.accesses.brokers import broker_of_path
from aclog.usage.accesses.containers import foreign_authorizer
from aclog.usage.accesses.events import (
    lines_by_form,
    profile_of_lines,
    read_audit_events,
    read_cloudevents,
    read_json,
    read_kafka_json,
    read_ocsf,
)
from aclog.usage.accesses.globs import unlistable
from aclog.usage.accesses.layouts import Layout, Profile, stop_of
from aclog.usage.accesses.lines import (
    DAMAGED,
    LONGEST_LINE,
    PARQUET_ENDINGS,
    LinePart,
    LongLine,
    PinnedFile,
    StreamCopy,
    blocks_of,
    has_marks,
    is_text,
    line_parts,
    members_skipped,
    open_unpacked,
    packing_in,
    packing_of,
)
from aclog.usage.accesses.objects import ObjectCopies, copies_of
from aclog.usage.accesses.parquet import COLUMNS_READ, ParquetPart, Partition, parquet_parts, partition_of, read_parquet
from aclog.usage.accesses.table_formats import NEWEST, TableCopy, TableMoment, check_loose_files, copied, tables_among

# File contents, identified by digest: a renamed, compressed or copied log has the same contents.
#
# A file of lines is taken up to its last line feed. If it has grown since, its first bytes have a known length and
# digest, and only the rest is new.


ContentKey: TypeAlias = tuple[int, bytes]
"""The length and digest of bytes that were added to the index."""

_HEAD: Final = 1 << 10
_BLOCK: Final = 1 << 20


@frozen(kw_only=True)
class Content:
    """The contents of a file when it was read, decompressed; of a file of lines, all complete lines."""

    path: str
    name: str
    """The file's URI, as Spark names it."""
    length: int
    digest: bytes
    beginnings: frozenset[ContentKey]
    """The digests of its first bytes, for some lengths."""
    head: bytes
    waiting: int = 0
    """The bytes after the last line feed: a line that is still being written."""

    @property
    def key(self) -> ContentKey:
        """The key by which the content is identified."""
        return self.length, self.digest


@frozen(kw_only=True)
class Part:
    """A content whose bytes from `start` on are new, if there are any."""

    content: Content
    start: int

    @property
    def is_new(self) -> bool:
        """Whether there is new content."""
        return self.start < self.content.length


def new_parts(
    files: Sequence[tuple[str, str, int]],
    keys: AbstractSet[ContentKey],
    *,
    lines: bool,
    advance: Callable[[int, int], None],
) -> list[Part]:
    """Return the new part of each of these files: (path, name, size), of which at most `size` bytes are read.

    Without `lines`, files are compared only as a whole. Of two files with the same contents one is taken, and of a file
    that begins with the contents of another only the rest. `advance` is called with the number of bytes read and their
    total.

    Raises:
        ConfigError: a file cannot be read, or its compression is not supported.
        FileNotFoundError: a file was removed.

    """
    lengths = {length for length, _ in keys} if lines else set()
    contents, read, total = [], 0, sum(size for _, _, size in files)
    for path, name, size in files:
        advance(read, total)
        contents.append(_content(path, name, size, lengths=lengths, lines=lines))
        read += size
    return _parts_of([_beside(content, contents) for content in contents] if lines else contents, keys)


def _parts_of(contents: Sequence[Content], keys: AbstractSet[ContentKey]) -> list[Part]:
    read_keys, parts = set(keys), []
    for content in contents:
        # a copy in progress is a beginning of what is known of another file
        start = _known_length(content, keys)
        read_keys |= {beginning for beginning in content.beginnings if beginning[0] <= start}
    for content in sorted(contents, key=lambda each: each.length):
        start = _known_length(content, read_keys)
        read_keys.add(content.key)
        parts.append(Part(content=content, start=start))
    return parts


def _known_length(content: Content, keys: AbstractSet[ContentKey]) -> int:
    """Return how much of a content, from its beginning, is among others."""
    return (
        content.length if content.key in keys else max((length for length, _ in content.beginnings & keys), default=0)
    )


def is_compressed(path: str) -> bool:
    """Return whether the file is unpacked as it is read. Raises ConfigError, OSError: as packing_of."""
    return packing_of(path) is not None


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """Open a file for reading, unpacked. Raises ConfigError, OSError: as packing_of."""
    with Path(path).open("rb") as file:
        yield cast("BinaryIO", open_unpacked(file, packing_in(file, path)))


def _content(path: str, name: str, size: int, *, lengths: AbstractSet[int], lines: bool) -> Content:
    try:
        end = None if is_compressed(path) else last_line_end(path, size) if lines else size
        with opened(path) as file:
            content = _digests(blocks_up_to(file, end), sorted(lengths))
    except FileNotFoundError:
        raise
    except DAMAGED as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    return evolve(content, path=path, name=name, waiting=0 if end is None else size - end)


def _beside(content: Content, others: Iterable[Content]) -> Content:
    """Return a content with digests at the lengths of others that have the same beginning."""
    have = {length for length, _ in content.beginnings}
    lengths = {
        other.length
        for other in others
        if 0 < other.length < content.length
        and other.length not in have
        and content.head.startswith(other.head[: min(_HEAD, other.length)])
    }
    if not lengths:
        return content
    with opened(content.path) as file:
        again = _digests(blocks_up_to(file, content.length), sorted(lengths))
    if again.key != content.key:
        raise ConfigError(f"{content.path}: changed while it was being read: run again, or on a copy")
    return evolve(content, beginnings=content.beginnings | again.beginnings)


def _digests(blocks: Iterator[bytes], lengths: Sequence[int]) -> Content:
    """Return the digest of all blocks, and of the first bytes for each of these lengths, in ascending order."""
    digest, length, head, beginnings = hashlib.sha256(), 0, b"", set()
    cuts = iter([each for each in lengths if each > 0])
    cut = next(cuts, None)
    for block in blocks:
        head += block[: _HEAD - len(head)]
        rest = memoryview(block)
        while cut is not None and cut <= length + len(rest):
            digest.update(rest[: cut - length])
            rest, length = rest[cut - length :], cut
            beginnings.add((length, digest.digest()))
            cut = next(cuts, None)
        digest.update(rest)
        length += len(rest)
    return Content(path="", name="", length=length, digest=digest.digest(), beginnings=frozenset(beginnings), head=head)


def blocks_up_to(file: IO[bytes], end: int | None) -> Iterator[bytes]:
    """Yield the bytes of a file up to `end`; None: the whole file."""
    remaining = end
    while remaining is None or remaining > 0:
        block = file.read(_BLOCK if remaining is None else min(_BLOCK, remaining))
        if not block:
            return
        yield block
        remaining = None if remaining is None else remaining - len(block)


def last_line_end(path: str, size: int) -> int:
    """Return the position after the last line feed in the first `size` bytes, 0 without one."""
    with Path(path).open("rb") as file:
        end = size
        while end > 0:
            start = max(0, end - _BLOCK)
            block = os.pread(file.fileno(), end - start, start)
            position = block.rfind(b"\n")
            if position >= 0:
                return start + position + 1
            end = start
    return 0


# Whether a table of `spark ingest --append` is complete, according to its ledger.


LEDGER: Final = "_ledger.db"
_DEPTH: Final = 3
"""Directories above a file of a table: DIR/accesses/day=2026-11-21/FILE."""


def tables_of(files: Iterable[Path]) -> list[Path]:
    """Return the directories of the tables that these files belong to, if appends made them."""
    folders = {folder.resolve() for folder in {file.parent for file in files}}
    above = {each for folder in folders for each in (folder, *folder.parents)[:_DEPTH]}
    return sorted(each for each in above if (each / LEDGER).exists())


@contextmanager
def listing(tables: Iterable[Path]) -> Iterator[None]:
    """List the files of tables in this block, with all files of each append or none.

    Raises:
        ConfigError: an append to a table is unfinished, or was made meanwhile.

    """
    before = {table: check_whole(table) for table in tables}
    yield
    for table, number in before.items():
        if check_whole(table) != number:
            raise ConfigError(f"{table}: was appended to while its files were being listed: run again")


def check_whole(out: Path) -> int:
    """Check that no append to a table is moving files, or was killed while it did.

    Return the number of the last append, 0 if the directory has no ledger.

    Raises:
        ConfigError: an append is unfinished.

    """
    path = out / LEDGER
    if not path.exists():
        return 0
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            number, placed = database.execute("SELECT coalesce(max(number), 0), min(placed) FROM appends").fetchone()
        finally:
            database.close()
    except sqlite3.Error:
        number, placed = 0, 0
    if placed == 0:
        raise ConfigError(
            f"{out}: an append is unfinished: wait for it, or, if it was killed, finish it with another "
            "`aclog spark ingest --append`"
        )
    return int(number)


INCOMPLETE: Final = "00-incomplete"
"""How the name of the marker begins that a table of `aclog spark` in an object store has until it is complete."""

INCOMPLETE_PARTITION: Final = f"{INCOMPLETE}=1"
"""The directory that such a table has if a server of Spark Connect writes it."""


def check_complete(names: Iterable[str]) -> None:
    """Check that no file, by its path or URI, is the marker of an incomplete output. Raises ConfigError: one is."""
    for name in names:
        directory, _, last = name.rpartition("/")
        if last.startswith(f"{INCOMPLETE}.") or directory.endswith(f"/{INCOMPLETE_PARTITION}"):
            directory = directory.removesuffix(f"/{INCOMPLETE_PARTITION}")
            raise ConfigError(
                f"{directory}: the incomplete output of a job that runs, failed or was killed: expected a complete one"
            )


# The files of an access log, split into pieces of work.


PARTS: Final = 64
"""The approximate number of pieces for the Parquet files of a log."""


@frozen(kw_only=True)
class TextPart:
    """Lines of one form."""

    lines: LinePart
    form: AccessForm
    zone: tzinfo
    """The zone of times without an offset."""
    mixed: bool = True
    """Whether lines may have other forms, which are detected; False if the form was given."""
    profile: Profile = APACHE
    """The layouts of its lines."""


@frozen(kw_only=True)
class TablePart:
    """Row groups."""

    table: ParquetPart
    zone: tzinfo


@frozen(kw_only=True)
class AvroPart:
    """A whole Avro file."""

    file: PinnedFile
    zone: tzinfo


AccessPart: TypeAlias = TextPart | TablePart | AvroPart


@frozen(kw_only=True)
class AccessInput:
    """An access log as of the listing of its files."""

    parts: tuple[AccessPart, ...]
    files: tuple[PinnedFile, ...]
    skipped: tuple[str, ...] = ()
    """The files in directories that are not read, since nothing in them is an access."""
    copies: tuple[tuple[str, str], ...] = ()
    """Files with the content of another one, which is read instead: both names."""
    tables: tuple[TableCopy, ...] = ()
    """Copies of tables, which end with this object."""
    objects: tuple[ObjectCopies, ...] = ()
    """Copies of objects of a store, which end with it as well."""

    @property
    def profiles(self) -> dict[str, Profile]:
        """The layouts of each text file, by path."""
        return {part.lines.file.path: part.profile for part in self.parts if isinstance(part, TextPart)}

    @property
    def size(self) -> int:
        """The size of all files in bytes."""
        return sum(file.size for file in self.files)


STDIN: Final = "-"
NO_STREAMS: Final[Mapping[str, StreamCopy]] = MappingProxyType({})
NO_COPIES: Final[Mapping[str, ObjectCopies]] = MappingProxyType({})


def find_accesses(
    paths: Sequence[str],
    zone: tzinfo,
    form: AccessForm | None = None,
    profile: Profile | None = None,
    *,
    streams: Mapping[str, StreamCopy] = NO_STREAMS,
    moment: TableMoment = NEWEST,
    uri_copies: Mapping[str, ObjectCopies] = NO_COPIES,
) -> AccessInput:
    """Return the log in these files, directories (recursively) and globs; `zone` applies to times without an offset.

    As in Spark, files in directories are skipped if their names begin with `.` or `_`. A directory that `spark ingest`
    made has its accesses and its rejected lines. Of the other files in a directory, those with a sign of an access are
    read, and a file with several names, or with copies, packed or not, once. `profile`: the layout that the user has
    stated. `streams`: the copies of the paths that are streams. A table of Delta or Iceberg is copied as of `moment`;
    the objects of a prefix in a store are copied, and read as the files of a directory. `uri_copies`: the copies of
    paths in other stores.

    Raises:
        ConfigError: no such file, a file of unknown form, records of another authorizer, an append to a table that is
        unfinished or was made meanwhile, or a table that cannot be read, or of which a path names files.
        OSError: a file cannot be read.

    """
    paths = [path if path in uri_copies else plain_name(path) for path in paths]
    of_stores = [path for path in paths if path in uri_copies or is_object_path(path)]
    for path in of_stores:
        if path not in uri_copies:
            Address.of(path)  # first: other errors name the paths
    roots = tables_among([path for path in paths if path not in streams and path not in of_stores])
    moment.check_used(paths, roots.values())
    tables = {path: copied(root, moment, COLUMNS_READ) for path, root in roots.items()}
    objects = [uri_copies[path] if path in uri_copies else copies_of(path) for path in of_stores]
    named = {*map(str, map(Path, paths)), *map(_name_of_stream, streams), *tables}
    named |= {file.path for each in objects if not each.is_prefix for file in each.files}
    elsewhere = {*streams, *tables, *of_stores}
    places = [pattern for pattern in paths if pattern not in elsewhere]
    with listing(tables_of(path for pattern in places for path in files_of(pattern))):
        listed = [path for pattern in places for path in files_of(pattern)]
        dangling = dict.fromkeys(str(path) for path in listed if _is_dangling(path))
        pinned = [PinnedFile.of(str(path)) for path in listed if str(path) not in dangling]
    pinned += [PinnedFile.of(_name_of_stream(path), copy.place) for path, copy in streams.items()]
    pinned += [PinnedFile.of(path, table.place) for path, table in tables.items()]
    pinned += [file for each in objects for file in each.files]
    check_complete(file.path for file in pinned)
    files, copies = _without_copies(list(_distinct(pinned)), named)
    log = accesses_in(files, zone, form, profile, named=named)
    if files and not log.files:
        raise ConfigError(
            f"{', '.join(paths)[:200]}: no accesses: none of {plural(len(files), 'file')} has a message of Kafka's "
            "authorizer, or accesses in JSON lines, Parquet or Avro"
        )
    read = {file.path for file in log.files}
    return evolve(
        log,
        skipped=(*dangling, *log.skipped),
        copies=tuple(pair for pair in copies if pair[0] in read),
        tables=tuple(tables.values()),
        objects=tuple(objects),
    )


def accesses_in(
    files: Sequence[PinnedFile],
    zone: tzinfo,
    form: AccessForm | None = None,
    profile: Profile | None = None,
    *,
    named: AbstractSet[str] = frozenset(),
) -> AccessInput:
    """Return the accesses in these files; `named` are the paths that the user names, and that are not skipped.

    Raises:
        ConfigError, OSError: as find_accesses.

    """
    check_loose_files(file.path for file in files if file.place == file.path and file.path.endswith(TABLE_ENDINGS))
    columnar, partitions, in_tables = list[PinnedFile](), list[Partition](), list[str]()
    parts, read, skipped = list[AccessPart](), list[PinnedFile](), list[str]()
    for file in files:
        examined = _examined(file, form, profile, named=file.path in named)
        if examined is None:
            skipped.append(file.path)
            continue
        read.append(file)
        file_form, file_profile = examined
        if file.packing is not None:
            skipped += (f"{file.path}:{name}" for name in _members_skipped(file))
        if file_form in TABLE_FORMS and file.place == file.path:
            in_tables.append(file.path)
        if file_form in COLUMN_FORMS:
            columnar.append(file)
            partitions.append(partition_of(file.path, named))
        elif file_form is AccessForm.AVRO:
            parts.append(AvroPart(file=file, zone=zone))
        else:
            mixed = form is None
            parts += [
                TextPart(lines=lines, form=file_form, zone=zone, mixed=mixed, profile=file_profile)
                for lines in line_parts(file)
            ]
    check_loose_files(path for path in in_tables if not path.endswith(TABLE_ENDINGS))
    names = [file.path for file in columnar]
    of_tables = parquet_parts([file.place for file in columnar], PARTS, partitions, names)
    return AccessInput(
        parts=(*parts, *(TablePart(table=part, zone=zone) for part in of_tables)),
        files=tuple(read),
        skipped=tuple(skipped),
    )


def _name_of_stream(path: str) -> str:
    return "stdin" if path == STDIN else path


def _distinct(files: Iterable[PinnedFile]) -> Iterator[PinnedFile]:
    """Yield each file once, also if it has several names or is in several paths."""
    inodes = set[tuple[int, int]]()
    for file in files:
        key = file.device, file.inode
        if key not in inodes or not file.inode:
            yield file
        inodes.add(key)


def _without_copies(
    files: Sequence[PinnedFile], named: AbstractSet[str]
) -> tuple[list[PinnedFile], list[tuple[str, str]]]:
    """Return the files without those of the same content, packed or not, and the names of each pair.

    Files whose directories have columns of an access in their names differ if these do.

    Contents are compared as a whole, but only of files with the same first bytes: those of logs differ in their times.
    A plain file is read rather than a packed one.
    """
    same_head: dict[tuple[bytes, Partition], list[PinnedFile]] = {}
    for file in files:
        same_head.setdefault((content_head(file), partition_of(file.path, named)), []).append(file)
    dropped: dict[str, str] = {}
    for (head, _), alike in same_head.items():
        if not head or len(alike) < 2:
            continue
        packed = {file.path for file in alike if file.packing is not None}
        if not packed and len({file.size for file in alike}) == len(alike):
            continue
        first_of: dict[ContentKey, str] = {}
        for file in sorted(alike, key=lambda each: each.path in packed):
            key = whole_key(file)
            if key is not None and (first := first_of.setdefault(key, file.path)) != file.path:
                dropped[file.path] = first
    return [file for file in files if file.path not in dropped], [(first, copy) for copy, first in dropped.items()]


def content_head(file: PinnedFile) -> bytes:
    """Return the first bytes of a content; of a damaged one those that can be read: its reader reports it."""
    with suppress(*DAMAGED, ConfigError), file.open() as raw:
        return open_unpacked(raw, packing_in(raw, file.path)).read(_HEAD)
    return b""


def whole_key(file: PinnedFile) -> ContentKey | None:
    """Return the length and digest of a whole content; None of a damaged one: its reader reports it."""
    with suppress(*DAMAGED), file.open() as raw:
        unpacked = cast("BinaryIO", open_unpacked(raw, packing_in(raw, file.path)))
        return _digests(blocks_up_to(unpacked, None if unpacked is not raw else file.size), ()).key
    return None


def _examined(
    file: PinnedFile, form: AccessForm | None, profile: Profile | None, *, named: bool
) -> tuple[AccessForm, Profile] | None:
    """Return the form and the layouts of a file; None for a file in a directory without accesses."""
    if form in TABLE_FORMS or (form is None and file.path.endswith(PARQUET_ENDINGS)):
        return form or AccessForm.PARQUET, APACHE
    samples = _samples(file)
    beginning = samples[0]
    if not named and form is None and beginning[:2] in UTF_16 and not _has_marks(file):
        return None
    own = form or form_of(beginning, file.path)
    if own in TABLE_FORMS:
        if file.packing is not None:
            raise ConfigError(f"{file.path}: {own.value} in a packed file: unpack it first")
        return own, APACHE
    foreign = foreign_authorizer(beginning) if own in {None, AccessForm.JSONL} and form is None else None
    if foreign is not None and not _has_marks(file):
        raise ConfigError(f"{file.path}: {foreign}")
    if own is None:
        if not _has_marks(file):
            if not named:
                return None
            if not _OTHER_LOG.match(beginning.lstrip()):
                raise ConfigError(_not_a_log(file.path, named=named))
        if not is_text(beginning.lstrip(b"\0")):
            raise ConfigError(_not_a_log(file.path, named=named))
        own = AccessForm.JSONL if beginning.lstrip().startswith(b"{") else AccessForm.KAFKA_LOG
    if profile is not None:
        return own, profile if any(b" for request = " in sample for sample in samples) else profile.of_older()
    return own, profile_of(samples) if own in OF_KAFKA else APACHE


_OTHER_LOG: Final = re.compile(rb"\[\d{4}-\d{2}-\d{2}[ T]|\{")
"""Lines in Apache's layout, or objects: a log that may have no access yet."""


def _not_a_log(path: str, *, named: bool) -> str:
    where = "" if named else ": move it, or name the logs by a glob, such as 'logs/kafka-authorizer.log*'"
    return (
        f"{path}: not an access log: expected messages of Kafka's authorizer (`Principal = ... is Allowed ...`), in "
        f"text or JSON, Parquet, Avro, or JSON lines, which begin with `{{`{where}"
    )


def _samples(file: PinnedFile) -> list[bytes]:
    """Return parts of a file's content: the first bytes, and of a large plain file also complete lines further on."""
    with file.open() as raw:
        packing = packing_in(raw, file.path)
        samples = [_beginning(raw, packing)]
        if packing is None:
            for start in sorted({file.size // 2, file.size - BEGINNING}):
                if start > BEGINNING:
                    raw.seek(start)
                    samples.append(raw.read(BEGINNING).partition(b"\n")[2].rpartition(b"\n")[0])
    return samples


def _beginning(raw: IO[bytes], packing: str | None) -> bytes:
    """Return the first bytes of a file's content, of a damaged file those before the damage: its reader reports it."""
    beginning = b""
    with suppress(*DAMAGED):
        unpacked = open_unpacked(raw, packing)
        while len(beginning) < BEGINNING and (data := unpacked.read(min(BEGINNING - len(beginning), 1 << 12))):
            beginning += data
    return beginning


def _has_marks(file: PinnedFile) -> bool:
    """Return whether there is a sign of a message of Kafka's authorizer anywhere in a file."""
    try:
        with file.open() as raw:
            packing = packing_in(raw, file.path)
            return has_marks(open_unpacked(raw, packing))
    except DAMAGED as error:
        raise ConfigError(f"{file.path}: not a complete {packing or 'plain'} file: {error}") from error


def _members_skipped(file: PinnedFile) -> list[str]:
    """Return the members of an archive that are not read; of a damaged one none: its reader reports it."""
    with suppress(*DAMAGED), file.open() as raw:
        return members_skipped(raw, packing_in(raw, file.path))
    return []


def profile_of(samples: Iterable[bytes]) -> Profile:
    """Return the layouts of a file by parts of its content: an upgrade may have changed them."""
    layouts = list[Layout]()
    for sample in samples:
        layouts += [each for each in profile_of_lines(sample.split(b"\n")).layouts if each not in layouts]
    return Profile(layouts=tuple(layouts))


def read_part(part: AccessPart) -> Iterator[AccessBatch]:
    """Read a piece of work.

    Raises:
        ConfigError: a file is damaged, or was truncated or replaced since the listing; a column is missing.
        OSError: a file was removed.

    """
    if isinstance(part, TablePart):
        yield from read_parquet(part.table, part.zone)
    elif isinstance(part, AvroPart):
        yield from read_avro_events(part.file, part.zone)
    else:
        file = part.lines.file
        broker = broker_of_path(file.path) if file.place == file.path or is_object_path(file.path) else None
        batches = (batch for block in blocks_of(part.lines) for batch in _batches_of(block, part))
        for each in _with_neighbours(batches) if part.form in OF_KAFKA else batches:
            yield evolve(each, unread=each.unread.on_broker(broker)) if each.unread else each


def _batches_of(block: bytes | LongLine, part: TextPart) -> Iterator[AccessBatch]:
    if isinstance(block, LongLine):
        yield AccessBatch.of_long_line(block)
    else:
        yield from read_lines(block, part.form, part.zone, mixed=part.mixed, profile=part.profile)


def _with_neighbours(batches: Iterator[AccessBatch]) -> Iterator[AccessBatch]:
    """Yield batches of lines in their order, in which unread lines have the times of lines in the next ones."""
    pending, latest = next(batches, None), None
    while pending is not None:
        following = next(batches, None)
        earliest = None if following is None or not pending.unread else _ends(following)[0]
        if pending.long_lines:
            yield AccessBatch.of_long_line(pending.long_lines[0], latest, earliest)
        elif pending.unread:
            yield evolve(pending, unread=pending.unread.after(latest).before(earliest))
        else:
            yield pending
        latest, pending = _ends(pending)[1] or latest, following


def _ends(batch: AccessBatch) -> tuple[int | None, int | None]:
    """Return the first and the last time of a batch, in the order of its lines."""
    times: Any = batch.rows.column(TIMESTAMP)
    if not len(times):
        return None, None
    return times[0].cast(pa.int64()).as_py(), times[-1].cast(pa.int64()).as_py()


def read_lines(
    block: bytes, form: AccessForm, zone: tzinfo, *, mixed: bool = True, profile: Profile = APACHE
) -> Iterator[AccessBatch]:
    """Read complete lines of a form; `mixed`: lines may have other forms. `profile` has the layouts of text."""
    for own, lines in lines_by_form(block, form) if mixed else ((form, block),):
        if own is AccessForm.KAFKA_LOG:
            yield read_kafka_lines(lines, zone, profile)
        elif own is AccessForm.KAFKA_JSON:
            yield read_kafka_json(lines, zone, profile)
        else:
            yield _READERS[own](lines, zone)


_SAMPLE: Final = 1 << 16
"""Bytes of a file whose times show whether they state their zone."""
_SAMPLED_FILES: Final = 16


def has_local_times(log: AccessInput) -> bool:
    """Return whether the times of a text file depend on the zone of times without an offset, by some lines of a few.

    Raises:
        ConfigError, OSError: as read_part.

    """
    parts = [part for part in log.parts if isinstance(part, TextPart) and not part.lines.start]
    return any(map(_is_local, parts[:_SAMPLED_FILES]))


def _is_local(part: TextPart) -> bool:
    block = next((each for each in blocks_of(part.lines) if isinstance(each, bytes)), b"")
    lines = block[: block.rfind(b"\n", 0, _SAMPLE) + 1] or block
    in_utc, elsewhere = (
        [
            batch.rows.column(TIMESTAMP).to_pylist()
            for batch in read_lines(lines, part.form, zone, mixed=part.mixed, profile=part.profile)
        ]
        for zone in (UTC, timezone(timedelta(hours=1)))
    )
    return in_utc != elsewhere


class UnreadLine(NamedTuple):
    """A line with an access that could not be read."""

    path: str
    line: int
    """From 1, in the file."""
    column: int | None
    """From 1: where it differs from a readable line; None if that is not known, as of JSON."""
    expected: str
    """What a readable line has there."""
    reason: Reason
    text: str


def explain_unread(log: AccessInput, most: int) -> list[UnreadLine]:
    """Return the first lines of text with an access that could not be read, at most so many.

    Raises:
        ConfigError, OSError: as read_part.

    """
    return list(islice(_explained(log), most))


def _explained(log: AccessInput) -> Iterator[UnreadLine]:
    before = Counter[str]()  # the lines of each file before the next block: its parts are in order
    for part in log.parts:
        if not isinstance(part, TextPart):
            continue
        path = part.lines.file.path
        for block in blocks_of(part.lines):
            first = before[path] + 1
            if isinstance(block, LongLine):
                before[path] += 1
                limit = f"a line of at most {LONGEST_LINE >> 20} MiB"
                yield UnreadLine(path, first, None, limit, Reason.TOO_LONG, f"at offset {block.offset:,}")
                continue
            before[path] += block.count(b"\n")
            if not _is_unread(block, part, mixed=part.mixed):
                continue
            numbered = [(number, line) for number, line in enumerate(block.split(b"\n"), first) if line]
            for number, line in _unread_lines(numbered, part):
                text = line.decode(errors="replace").rstrip("\r\n")
                column, expected = None, f"an access ({part.form})"
                if part.form in OF_KAFKA:
                    column, expected = stop_of(text, part.profile)
                yield UnreadLine(path, number, column, expected, _reason(line, part), text)


COLUMN_FORMS: Final = frozenset((AccessForm.PARQUET, AccessForm.ORC))
TABLE_FORMS: Final = COLUMN_FORMS | {AccessForm.AVRO}
"""Forms of the data in tables of Delta, Iceberg and Hudi."""
TABLE_ENDINGS: Final = (*PARQUET_ENDINGS, ".orc", ".avro")
OF_KAFKA: Final = frozenset((AccessForm.KAFKA_LOG, AccessForm.KAFKA_JSON))
"""Forms whose lines have a layout."""


def _unread_lines(lines: list[tuple[int, bytes]], part: TextPart) -> Iterator[tuple[int, bytes]]:
    """Yield the numbered lines with unread accesses, in their order; of lines without any, all are read only once."""
    if not _is_unread(b"\n".join(line for _, line in lines), part):
        return
    if len(lines) == 1:
        yield lines[0]
        return
    half = len(lines) // 2
    yield from _unread_lines(lines[:half], part)
    yield from _unread_lines(lines[half:], part)


def _is_unread(block: bytes, part: TextPart, *, mixed: bool = True) -> bool:
    return any(batch.unread for batch in read_lines(block, part.form, part.zone, mixed=mixed, profile=part.profile))


def _reason(line: bytes, part: TextPart) -> Reason:
    batches = list(read_lines(line, part.form, part.zone, profile=part.profile))
    return next((reason for batch in batches for reason in batch.rejects), Reason.UNREADABLE)


_READERS: Final[Mapping[AccessForm, Callable[[bytes, tzinfo], AccessBatch]]] = {
    AccessForm.JSONL: read_json,
    AccessForm.EVENTS: read_audit_events,
    AccessForm.OCSF: read_ocsf,
    AccessForm.CLOUDEVENTS: read_cloudevents,
}


def files_of(pattern: str) -> Iterator[Path]:
    """Yield the files of a path or glob.

    Raises:
        ConfigError: no files, or a pipe, which can only be read once.
        OSError: a directory cannot be listed.

    """
    files = listed(pattern, _fail)
    if not files:
        raise ConfigError(
            f"{pattern}: no such file, or a directory without files (names that begin with `.` or `_` are skipped)"
        )
    for file in files:
        if is_irregular(file):
            raise ConfigError(
                f"{file}: not a regular file: an access log is read several times, which a pipe does not allow: write "
                "the accesses to a file first, or pass them on stdin (-)"
            )
    yield from files


OnError: TypeAlias = Callable[[OSError], None]
"""Called with the error of a directory that cannot be listed, or of a file that cannot be examined."""


def _fail(error: OSError) -> None:
    raise error


def listed(pattern: str, on_error: OnError) -> list[Path]:
    """Return the files of a path or glob; those that it names itself may be no regular files."""
    path = Path(pattern)
    if path.is_file():
        return [path]
    if path.is_dir():
        return _below(path, on_error)
    for error in unlistable(pattern):
        on_error(error)
    places = [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207 - absolute or not
    return [file for place in places for file in (_below(place, on_error) if place.is_dir() else [place])]


def is_irregular(path: Path) -> bool:
    """Return whether there is something else than a regular file, such as a pipe."""
    return path.exists() and not path.is_file()


def _below(directory: Path, on_error: OnError) -> list[Path]:
    table = directory / "accesses"
    if not table.is_dir():
        table = directory if directory.name == table.name else table
    rejects = table.parent / "rejects"
    if table.is_dir() and rejects.is_dir():
        return [*_visible(table, on_error), *_visible(rejects, on_error)]
    return _visible(table if table.is_dir() else directory, on_error)


def _visible(top: Path, on_error: OnError) -> list[Path]:
    """Return the files below a directory and below the directories that links in it name, and links to no file."""
    below, inodes = list[Path](), set[tuple[int, int]]()
    for directory, folders, names in os.walk(top, onerror=on_error, followlinks=True):
        status = os.stat(directory)  # noqa: PTH116 - its result is a key
        if (status.st_dev, status.st_ino) in inodes:  # a link to a directory above, or to another one below
            folders.clear()
            continue
        inodes.add((status.st_dev, status.st_ino))
        folders[:] = sorted(each for each in folders if not each.startswith((".", "_")))
        for path in (Path(directory, name) for name in names if not name.startswith((".", "_"))):
            try:
                if path.is_file() or _is_dangling(path):
                    below.append(path)
            except OSError as error:
                on_error(error)
    return sorted(below)


def _is_dangling(path: Path) -> bool:
    return path.is_symlink() and not path.exists()


# The new part of an access log: a file is counted once, even after it was renamed or compressed.


Advance: TypeAlias = Callable[[int, int], None]
"""Called with the number of bytes read and their total."""


@frozen(kw_only=True)
class NewAccesses:
    """The new part of a log."""

    input: AccessInput
    contents: tuple[Part, ...]
    """The new content of each file."""
    files: int
    """The number of files."""
    waiting: tuple[str, ...]
    """The files that end in a line without line feed, which is not taken until it is complete."""

    @property
    def grown(self) -> int:
        """The number of files with a known beginning."""
        return sum(part.start > 0 for part in self.contents)


def only_new(log: AccessInput, keys: AbstractSet[ContentKey], advance: Advance) -> NewAccesses:
    """Return the new part of a log; `keys` are the lengths and digests of the contents in the index.

    Raises:
        ConfigError: a file cannot be read, or was truncated or replaced meanwhile; or not only its content counts.
        OSError: a file was removed.

    """
    copies = {part.place for part in log.tables}
    check_no_tables([file.path for file in log.files if file.place in copies])
    groups = [each for part in log.parts if isinstance(part, TablePart) for each in part.table.groups]
    if of_directories := [each for each in groups if each.partition]:
        raise ConfigError(
            f"{of_directories[0].path}: an index identifies files by their content, and column "
            f"{of_directories[0].partition[0][0]!r} is in the name of a directory: expected it in the files"
        )
    return new_accesses(log, *contents_of(log, keys, advance))


def check_no_tables(tables: Iterable[str]) -> None:
    """Raise ConfigError if there are tables of Delta or Iceberg, by their paths: an index cannot take them."""
    for path in tables:
        raise ConfigError(
            f"{path}: a table, which rewrites its files, and an index counts each file once: expected access logs that "
            "only grow, or `aclog accesses usage` for the table"
        )


def contents_of(log: AccessInput, keys: AbstractSet[ContentKey], advance: Advance) -> tuple[list[Part], list[Part]]:
    """Return the contents of the files of lines, and those of tables and Avro files. Raises as only_new."""
    tables = {groups.path for part in log.parts if isinstance(part, TablePart) for groups in part.table.groups}
    tables |= {part.file.place for part in log.parts if isinstance(part, AvroPart)}
    lines = [file for file in log.files if file.place not in tables]
    of_lines = _new(lines, keys, advance, lines=True)
    return of_lines, _new([file for file in log.files if file.place in tables], keys, advance, lines=False)


def new_accesses(log: AccessInput, of_lines: Sequence[Part], of_tables: Sequence[Part]) -> NewAccesses:
    """Return the new part of a log with these contents."""
    avro = {part.file.place: part for part in log.parts if isinstance(part, AvroPart)}
    parts: list[AccessPart] = [*_text_parts(log, of_lines)]
    whole = [part.content.path for part in of_tables if part.is_new]
    parts += (avro[path] for path in whole if path in avro)
    for zone in {part.zone for part in log.parts if isinstance(part, TablePart)}:
        paths = [path for path in whole if path not in avro]
        parts += (TablePart(table=part, zone=zone) for part in parquet_parts(paths, PARTS))
    return NewAccesses(
        input=AccessInput(parts=tuple(parts), files=log.files),
        contents=tuple(part for part in (*of_lines, *of_tables) if part.is_new),
        files=len(log.files),
        waiting=tuple(part.content.name for part in of_lines if part.content.waiting),
    )


def _new(files: Sequence[PinnedFile], keys: AbstractSet[ContentKey], advance: Advance, *, lines: bool) -> list[Part]:
    # the same file may be given twice; the second one has nothing new
    return new_parts([(file.place, file.path, file.size) for file in files], keys, lines=lines, advance=advance)


def _text_parts(log: AccessInput, of_lines: Sequence[Part]) -> list[TextPart]:
    of_path = {part.lines.file.place: part for part in log.parts if isinstance(part, TextPart)}
    parts = []
    for new in of_lines:
        form = of_path.get(new.content.path)
        if form is None or not new.is_new:  # an empty file is in no part
            continue
        lines = line_parts(form.lines.file, start=new.start, end=new.content.length)
        parts += [evolve(form, lines=each) for each in lines]
    return parts
