"""The files of an access log: their forms, their contents by digest, and what is new in them."""

import bz2
import glob
import gzip
import hashlib
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from datetime import tzinfo
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias, cast

from attrs import evolve, frozen

from aclog.metalog.errors import ConfigError
from aclog.usage.accesses.access_batch import AccessBatch, AccessForm, form_of, read_kafka_lines
from aclog.usage.accesses.avro_events import read_avro_events
from aclog.usage.accesses.events import lines_by_form, read_audit_events, read_cloudevents, read_json, read_ocsf
from aclog.usage.accesses.lines import LinePart, PinnedFile, blocks_of, line_parts
from aclog.usage.accesses.parquet import ParquetPart, parquet_parts, read_parquet

# File contents, identified by digest: a renamed, compressed or copied log has the same contents.
#
# A file of lines is taken up to its last line feed. If it has grown since, its first bytes have a known length and
# digest, and only the rest is new.


ContentKey: TypeAlias = tuple[int, bytes]
"""The length and digest of bytes that were added to the index."""

_HEAD: Final = 1 << 10
_BLOCK: Final = 1 << 20
_DECOMPRESSED: Final = (".gz", ".bz2")
_UNREAD: Final = (".zst", ".lz4", ".snappy", ".deflate", ".xz", ".zip")


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
    if lines:
        contents = [_beside(content, contents) for content in contents]
    read_keys, parts = set(keys), []
    for content in sorted(contents, key=lambda each: each.length):
        beginnings = content.beginnings & read_keys
        start = content.length if content.key in read_keys else max((length for length, _ in beginnings), default=0)
        read_keys.add(content.key)
        parts.append(Part(content=content, start=start))
    return parts


def is_compressed(path: str) -> bool:
    """Return whether the file is decompressed as it is read."""
    return Path(path).suffix in _DECOMPRESSED


def opened(path: str) -> BinaryIO:
    """Open a file for reading, decompressed."""
    kind = Path(path).suffix
    if kind in _DECOMPRESSED:
        file: Any = gzip.GzipFile(path, "rb") if kind == ".gz" else bz2.BZ2File(path, "rb")
        return cast("BinaryIO", file)
    return open(path, "rb")  # noqa: PTH123  # closed by the caller


def _content(path: str, name: str, size: int, *, lengths: AbstractSet[int], lines: bool) -> Content:
    if path.endswith(_UNREAD):
        raise ConfigError(f"{path}: only plain, .gz and .bz2 files are read: decompress it first")
    try:
        closed = is_compressed(path) or not lines
        end = None if is_compressed(path) else size if closed else _last_line_end(path, size)
        with opened(path) as file:
            content = _digests(_blocks(file, end), sorted(lengths))
    except FileNotFoundError:
        raise
    except (OSError, EOFError, zlib.error) as error:
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
        again = _digests(_blocks(file, content.length), sorted(lengths))
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


def _blocks(file: BinaryIO, end: int | None) -> Iterator[bytes]:
    """Yield the bytes of a file up to `end`; None: the whole file."""
    remaining = end
    while remaining is None or remaining > 0:
        block = file.read(_BLOCK if remaining is None else min(_BLOCK, remaining))
        if not block:
            return
        yield block
        remaining = None if remaining is None else remaining - len(block)


def _last_line_end(path: str, size: int) -> int:
    """Return the position after the last line feed in the first `size` bytes, 0 if there is none."""
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


# The files of an access log, split into pieces of work.


PARTS: Final = 64
"""The approximate number of pieces for the Parquet files of a log."""
_PARQUET: Final = (".parquet", ".parq", ".pq")


@frozen(kw_only=True)
class TextPart:
    """Lines of one form."""

    lines: LinePart
    form: AccessForm
    zone: tzinfo
    """The zone of times without an offset."""
    mixed: bool = True
    """Whether lines may have other forms, which are detected; False if the form was given."""


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

    @property
    def size(self) -> int:
        """The size of all files in bytes."""
        return sum(file.size for file in self.files)


def find_accesses(paths: Sequence[str], zone: tzinfo, form: AccessForm | None = None) -> AccessInput:
    """Return the log in these files, directories (recursively) and globs; `zone` applies to times without an offset.

    As in Spark, files in directories are skipped if their names begin with `.` or `_`. A directory that `spark ingest`
    made has its accesses and its rejected lines. A directory may contain other text logs, whose lines are not accesses.

    Raises:
        ConfigError: no such file, a file of unknown form, or an append to a table that is unfinished or was made
        meanwhile.
        OSError: a file cannot be read.

    """
    named = {str(Path(pattern)) for pattern in paths}
    with listing(tables_of(path for pattern in paths for path in _files_of(pattern))):
        files = [PinnedFile.of(str(path)) for pattern in paths for path in _files_of(pattern)]
    parquet, parts = [], list[AccessPart]()
    for file in files:
        with file.open() as opened:
            file_form = form or (
                AccessForm.PARQUET
                if file.path.endswith(_PARQUET)
                else form_of(opened, file.path, named=file.path in named)
            )
        if file_form is AccessForm.PARQUET:
            parquet.append(file.path)
        elif file_form is AccessForm.AVRO:
            parts.append(AvroPart(file=file, zone=zone))
        else:
            mixed = form is None
            parts += [TextPart(lines=lines, form=file_form, zone=zone, mixed=mixed) for lines in line_parts(file)]
    return AccessInput(
        parts=(*parts, *(TablePart(table=part, zone=zone) for part in parquet_parts(parquet, PARTS))),
        files=tuple(files),
    )


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
        for block in blocks_of(part.lines):
            yield from read_lines(block, part.form, part.zone, mixed=part.mixed)


def read_lines(block: bytes, form: AccessForm, zone: tzinfo, *, mixed: bool = True) -> Iterator[AccessBatch]:
    """Read complete lines of a form; `mixed`: lines may have other forms."""
    for own, lines in lines_by_form(block, form) if mixed else ((form, block),):
        yield _READERS[own](lines, zone)


_READERS: Final[Mapping[AccessForm, Callable[[bytes, tzinfo], AccessBatch]]] = {
    AccessForm.JSONL: read_json,
    AccessForm.KAFKA_LOG: read_kafka_lines,
    AccessForm.EVENTS: read_audit_events,
    AccessForm.OCSF: read_ocsf,
    AccessForm.CLOUDEVENTS: read_cloudevents,
}


def _files_of(pattern: str) -> Iterator[Path]:
    """Yield the files of a path or glob. Raises ConfigError: no files, or a pipe, which can only be read once."""
    path = Path(pattern)
    if path.is_file():
        yield path
        return
    places = [path] if path.is_dir() else [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207 - absolute or not
    files = [file for place in places for file in (_below(place) if place.is_dir() else [place])]
    if not files:
        raise ConfigError(
            f"{pattern}: no such file, or a directory without files (names that begin with `.` or `_` are skipped)"
        )
    for file in files:
        if file.exists() and not file.is_file():
            raise ConfigError(
                f"{file}: not a regular file: an access log is read several times, which a pipe does not allow: write "
                "the accesses to a file first"
            )
    yield from files


def _below(directory: Path) -> list[Path]:
    table = directory / "accesses"
    if not table.is_dir():
        table = directory if directory.name == table.name else table
    rejects = table.parent / "rejects"
    if table.is_dir() and rejects.is_dir():
        return [*_visible(table), *_visible(rejects)]
    return _visible(table if table.is_dir() else directory)


def _visible(top: Path) -> list[Path]:
    below = sorted(path for path in top.rglob("*") if path.is_file())
    return [path for path in below if not any(part.startswith((".", "_")) for part in path.relative_to(top).parts)]


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
        ConfigError: a file cannot be read, or was truncated or replaced meanwhile.
        OSError: a file was removed.

    """
    tables = {groups.path for part in log.parts if isinstance(part, TablePart) for groups in part.table.groups}
    avro = {part.file.path: part for part in log.parts if isinstance(part, AvroPart)}
    lines = [file for file in log.files if file.path not in tables | avro.keys()]
    of_lines = _new(lines, keys, advance, lines=True)
    of_tables = _new([file for file in log.files if file.path in tables | avro.keys()], keys, advance, lines=False)
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
        waiting=tuple(part.content.path for part in of_lines if part.content.waiting),
    )


def _new(files: Sequence[PinnedFile], keys: AbstractSet[ContentKey], advance: Advance, *, lines: bool) -> list[Part]:
    # the same file may be given twice; the second one has nothing new
    return new_parts([(file.path, file.path, file.size) for file in files], keys, lines=lines, advance=advance)


def _text_parts(log: AccessInput, of_lines: Sequence[Part]) -> list[TextPart]:
    of_path = {part.lines.file.path: part for part in log.parts if isinstance(part, TextPart)}
    parts = []
    for new in of_lines:
        form = of_path.get(new.content.path)
        if form is None or not new.is_new:  # an empty file is in no part
            continue
        lines = line_parts(form.lines.file, start=new.start, end=new.content.length)
        parts += [TextPart(lines=each, form=form.form, zone=form.zone, mixed=form.mixed) for each in lines]
    return parts
