"""Files of lines as pieces of work, and strict parsing of JSON objects in lines."""

import bz2
import gzip
import io
import json
import lzma
import os
import re
import tarfile
import zipfile
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile, gettempdir
from typing import IO, Any, Final, NamedTuple, Self, TypeAlias, cast
from weakref import finalize

from attrs import Factory, field

from aclog.authorizer.audit import MESSAGE, Reason
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen

# Files of lines as pieces of work, and strict parsing of JSON objects in lines.


# Files of lines as pieces of work: byte ranges of complete lines; a compressed file is one piece.


_PART: Final = 1 << 26
"""The approximate size of a piece in bytes."""
_BLOCK: Final = 1 << 23
"""How many bytes are read at once."""
LONGEST_LINE: Final = 1 << 24
"""The bytes of the longest line that is read: a damaged file may have no line end."""


class LongLine(NamedTuple):
    """A line of more than LONGEST_LINE, which is not read; it may be about an access."""

    path: str
    offset: int
    """Its first byte in the content of the file, unpacked."""

    def __str__(self) -> str:
        return f"{self.path} at offset {self.offset:,}"


class FileChangedError(ConfigError):
    """A file was truncated or replaced while it was read, as logs are that rotate."""


@frozen(kw_only=True)
class PinnedFile:
    """A file as of its listing: the name may refer to another file, or to less, later."""

    path: str
    """Its name."""
    device: int
    inode: int
    size: int
    place: str = Factory(lambda self: self.path, takes_self=True)
    """Where it is opened: of a stream, its copy."""

    @classmethod
    def of(cls, path: str, place: str | None = None) -> "PinnedFile":
        """Pin a file; `place`: where it is opened. Raises OSError: it does not exist, or cannot be read."""
        status = Path(place or path).stat()
        return cls(path=path, device=status.st_dev, inode=status.st_ino, size=status.st_size, place=place or path)

    def open(self) -> IO[bytes]:
        """Open the file.

        Raises:
            FileChangedError: the file was replaced or truncated.
            OSError: it was removed.

        """
        file = Path(self.place).open("rb")  # noqa: SIM115 - the caller closes it
        status = os.fstat(file.fileno())
        if (status.st_dev, status.st_ino) != (self.device, self.inode) or status.st_size < self.size:
            file.close()
            what = "truncated" if status.st_ino == self.inode else "replaced by another file"
            raise FileChangedError(
                f"{self.path}: {what} while it was being read: run again, or on a copy if logs are rotated often"
            )
        return file

    @property
    def packing(self) -> str | None:
        """Its packing. Raises ConfigError, OSError: as packing_of."""
        with Path(self.place).open("rb") as opened:
            return packing_in(opened, self.path)


# A stream is read several times, and by several processes: from a copy.


@define(eq=False)
class StreamCopy:
    """A copy of a stream in a temporary file, which ends with it, or with the process."""

    place: str
    """Where this process and those that it starts can open it."""
    _file: Any = field(repr=False)

    @classmethod
    def of(cls, stream: IO[bytes], name: str) -> Self:
        """Copy a stream up to its end, in bounded memory; `name` is for errors. Raises as of_blocks.

        The last line of a text gets a line feed: nothing follows it.
        """
        return cls.of_blocks(_with_last_feed(iter(lambda: stream.read(_BLOCK), b"")), name)

    @classmethod
    def of_lines(cls, lines: Iterable[bytes], name: str) -> Self:
        """Copy lines of text, also if they begin like a packed file: a blank line comes before them, then."""
        return cls.of_blocks(_as_text(lines), name)

    @classmethod
    def of_blocks(cls, blocks: Iterable[bytes], name: str) -> Self:
        """Copy the bytes of a stream; `name` is for errors.

        Raises:
            ConfigError: it cannot be read, or the disk of temporary files is full. Other errors of it are passed on.

        """
        copy = cls._begin()
        try:
            for block in blocks:
                copy._file.write(block)
            copy._file.flush()
        except OSError as error:
            copy.close()
            raise ConfigError(
                f"{name}: cannot be copied to {gettempdir()}: {error.strerror or error}: expected room for it there, "
                "or in TMPDIR"
            ) from error
        except BaseException:
            copy.close()
            raise
        return copy

    @classmethod
    def _begin(cls) -> Self:
        file = TemporaryFile(prefix="aclog-")  # noqa: SIM115 - closed by `close`
        # without a name it ends with the process, also if that is killed
        place = f"/proc/{os.getpid()}/fd/{file.fileno()}"
        if _can_reopen(place):
            return cls(place, file)
        file.close()
        named = NamedTemporaryFile(prefix="aclog-")  # noqa: SIM115 - closed by `close`
        return cls(named.name, named)

    def __attrs_post_init__(self) -> None:
        finalize(self, self._file.close)

    def close(self) -> None:
        """Delete it."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _with_last_feed(blocks: Iterator[bytes]) -> Iterator[bytes]:
    first = last = b""
    for block in blocks:
        first, last = first or block, block
        yield block
    if first and last[-1:] != b"\n" and _packing_of_bytes(first) is None and not first.startswith(TABLES):
        yield b"\n"


def _as_text(lines: Iterable[bytes]) -> Iterator[bytes]:
    rest, beginning = iter(lines), b""
    for line in rest:
        beginning += line
        if len(beginning) > _TAR_MARK[0] + len(_TAR_MARK[1]):
            break
    while _packing_of_bytes(beginning) is not None or beginning.startswith((*TABLES, *_UTF_16)):
        beginning = b"\n" + beginning
    if beginning:
        yield beginning
    yield from rest


_UTF_16: Final = (BOM_UTF16_LE, BOM_UTF16_BE)


def _can_reopen(place: str) -> bool:
    return os.access(place, os.R_OK)


# The content of a file: whether it is text, and signs of an access in it.


_SIGNS: Final = (MESSAGE.encode(), b"is Allowed", b"is Denied", b" from host = ")
BYTES_OF_AUDIT: Final = tuple(
    separator.join(str(byte) for byte in sign.strip(b" =")).encode() for sign in _SIGNS for separator in (",", ", ")
)
"""The same as lists of bytes, as journald exports a text with control characters."""
MARKS_OF_AUDIT: Final = (*_SIGNS, b"Principal \\u003d ", *BYTES_OF_AUDIT)
"""Each line about an access has one of these, also in JSON."""
_LONGEST_MARK: Final = max(map(len, MARKS_OF_AUDIT))


ORC_MAGIC: Final = b"ORC"
"""How an ORC file begins."""
TABLES: Final = (b"PAR1", b"Obj\x01", ORC_MAGIC)
"""How files of Parquet, of Avro and of ORC begin."""
PARQUET_ENDINGS: Final = (".parquet", ".parq", ".pq")
"""How the names of Parquet files end."""


def is_text(beginning: bytes) -> bool:
    """Return whether the first bytes of a file are text, in UTF-8 except for a few damaged characters.

    NULs are of a file that was truncated while it was written.
    """
    text = beginning.replace(b"\0", b"")
    odd = getincrementaldecoder("utf-8")("replace").decode(text).count("\ufffd") + len(_CONTROLS.findall(text))
    return odd * _MOST_ODD <= len(text)


_MOST_ODD: Final = 50
"""Of so many bytes of text, one may be damaged, or a control character in a name."""
_CONTROLS: Final = re.compile(rb"[\x01-\x07\x0e-\x1a]")


def has_marks(opened: IO[bytes]) -> bool:
    """Return whether there is a sign of a message of Kafka's authorizer in the rest of a content."""
    last = b""
    while block := opened.read(_SAMPLE):
        text = last + block
        if any(mark in text for mark in MARKS_OF_AUDIT):
            return True
        if b"\0" in text and any(mark in text.replace(b"\0", b"") for mark in _SIGNS):  # in UTF-16
            return True
        last = text[-2 * _LONGEST_MARK :]
    return False


# Packed files, by their first bytes: gzip, bzip2, xz, zstd, and the members of zip and tar archives.


_PACKINGS: Final = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
)
_TAR_MARK: Final = (257, b"ustar")
_UNKNOWN_PACKINGS: Final = (".lz4", ".snappy", ".deflate", ".zst", ".7z", ".lzo", ".br", ".rar")
_SAMPLE: Final = 1 << 16


def packing_of(path: str) -> str | None:
    """Return the packing of a file by its first bytes; None for a plain file.

    Raises:
        ConfigError: its name has an ending of a packing that is not read, or of another one than its content.
        OSError: it cannot be read.

    """
    with Path(path).open("rb") as opened:
        return packing_in(opened, path)


def packing_in(opened: IO[bytes], path: str) -> str | None:
    """Return the packing of an open file, which is then at its start; `path` is its name. Raises as packing_of."""
    beginning = opened.read(_TAR_MARK[0] + len(_TAR_MARK[1]))
    opened.seek(0)
    packing = _packing_of_bytes(beginning)
    if packing is None and path.endswith(_UNKNOWN_PACKINGS) and beginning:
        raise ConfigError(f"{path}: neither plain nor packed by gzip, bzip2, xz, zstd, zip or tar: decompress it first")
    return packing


def _packing_of_bytes(beginning: bytes) -> str | None:
    if beginning.startswith(_TAR_MARK[1], _TAR_MARK[0]):
        return "tar"
    return next((name for magic, name in _PACKINGS if beginning.startswith(magic)), None)


def open_unpacked(opened: IO[bytes], packing: str | None) -> IO[bytes]:
    """Return the unpacked content of an open file; of an archive, the content of its members one after another.

    Members may be packed themselves. Reading raises one of DAMAGED if a member cannot be read, or if it is no text, but
    has a sign of an access.
    """
    if packing is None:
        return opened
    if packing in {"zip", "tar"}:
        return _reader(_Members(_members_of(opened, packing, list[str](), 0)))
    stream = _decompressed(opened, packing)
    if _packing_of_bytes(stream.peek(_SAMPLE)) == "tar":
        return _reader(_Members(_members_of(stream, "tar", list[str](), 0)))
    return stream


def members_skipped(opened: IO[bytes], packing: str | None) -> list[str]:
    """Return the names of the members of an archive that are not read, since they are no text."""
    names, archive = list[str](), packing
    if packing not in {"zip", "tar", None}:
        opened = stream = _decompressed(opened, str(packing))
        archive = _packing_of_bytes(stream.peek(_SAMPLE))
    if archive in {"zip", "tar"}:
        for _ in _members_of(opened, str(archive), names, 0):
            pass
    return names


def _decompressed(opened: IO[bytes], packing: str) -> io.BufferedReader:
    if packing == "gzip":
        return _reader(gzip.GzipFile(fileobj=opened, mode="rb"))
    if packing == "bz2":
        return _reader(bz2.BZ2File(opened))
    if packing == "xz":
        return _reader(lzma.LZMAFile(opened))
    import pyarrow as pa  # noqa: PLC0415 - only zstd takes it

    stream = pa.CompressedInputStream(pa.PythonFile(cast("Any", opened), mode="r"), "zstd")
    return _reader(_Members(iter([stream])))


def _reader(stream: Any) -> io.BufferedReader:
    return io.BufferedReader(stream, _SAMPLE)


_DEEPEST: Final = 3
"""Packings of a member, one in another."""


def _members_of(opened: IO[bytes], packing: str, skipped: list[str], depth: int) -> Iterator[IO[bytes]]:
    """Yield the text members of an archive, unpacked and in order, and add the names of the others to `skipped`."""
    for name, member in _zip_members(opened) if packing == "zip" else _tar_members(opened):
        content, inner = _reader(member), depth
        while (own := _packing_of_bytes(content.peek(_SAMPLE))) not in {None, "zip", "tar"}:
            inner += 1
            if inner > _DEEPEST:
                break
            content = _decompressed(content, str(own))
        if inner >= _DEEPEST or (own == "zip" and not content.seekable()):
            raise tarfile.ReadError(f"member {name}: packed in a packed file: unpack it first")
        if own in {"zip", "tar"}:
            yield from _members_of(content, str(own), skipped, inner + 1)
        elif content.peek(_SAMPLE).startswith(TABLES):
            raise tarfile.ReadError(f"member {name}: Parquet, Avro or ORC in a packed file: unpack it first")
        elif is_text(content.peek(_SAMPLE)):
            yield content
        elif has_marks(content):
            raise tarfile.ReadError(f"member {name}: messages of Kafka's authorizer in a file that is no text")
        else:
            skipped.append(name)


def _zip_members(opened: IO[bytes]) -> Iterator[tuple[str, Any]]:
    with zipfile.ZipFile(opened) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            try:
                member = archive.open(info)
            except RuntimeError as error:  # encrypted, or packed by an unknown method
                raise zipfile.BadZipFile(f"member {info.filename}: {error}: unpack it first") from error
            with member:
                yield info.filename, member


class _TarHeader(tarfile.TarInfo):
    """A header of a tar archive; tarfile itself takes a damaged one for the end of the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_TarHeader":
        """Return the header of a block. Raises ReadError: it is damaged, or missing."""
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if len(buf) == tarfile.BLOCKSIZE and not any(buf):  # the end
                raise
            raise tarfile.ReadError(f"a damaged header, or no end: {error}") from error


def _tar_members(opened: IO[bytes]) -> Iterator[tuple[str, Any]]:
    with tarfile.open(fileobj=opened, mode="r|", tarinfo=_TarHeader) as archive:
        for info in archive:
            member = archive.extractfile(info) if info.isfile() else None
            if member is not None:
                yield info.name, member
        rest: Any = archive.fileobj
        while block := rest.read(_SAMPLE):
            if any(block):
                raise tarfile.ReadError("more data after its end, such as another archive: split it first")


class _Members(io.RawIOBase):
    """The content of several files, each of which ends with a line feed."""

    def __init__(self, members: Iterator[Any]) -> None:
        self._members = members
        self._member: Any = None
        self._last = b"\n"

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; 0 at the end."""
        while True:
            if self._member is None:
                self._member = next(self._members, None)
                if self._member is None:
                    return 0
            data = self._member.read(len(buffer))
            if data:
                self._last = data[-1:]
                buffer[: len(data)] = data
                return len(data)
            self._member = None
            if self._last != b"\n":
                self._last = b"\n"
                buffer[:1] = b"\n"
                return 1


DAMAGED: Final = (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, OSError, ValueError)
"""The errors of a packed file that is damaged."""


@frozen(kw_only=True)
class LinePart:
    """The lines that begin in [start, end) of a file; of a compressed file, all lines from `start` of its text on."""

    file: PinnedFile
    start: int
    end: int
    compressed: bool = False


def line_parts(file: PinnedFile, *, start: int = 0, end: int | None = None) -> list[LinePart]:
    """Return the pieces of a file, or of a range between two line ends; a compressed file is read to its end.

    Raises:
        ConfigError: the file was changed meanwhile.
        OSError: it was removed.

    """
    if file.packing is not None:
        return [LinePart(file=file, start=start, end=file.size, compressed=True)]
    with file.open() as opened:
        if end is None:
            end = file.size
        cuts = [start]
        while cuts[-1] < end:
            cuts.append(min(_next_start(opened, cuts[-1] + _PART), end))
    return [LinePart(file=file, start=begin, end=until) for begin, until in pairwise(cuts)]


def blocks_of(part: LinePart) -> Iterator[bytes | LongLine]:
    """Yield the lines of a part in blocks of complete lines; only the last one may have no line feed.

    A line that is too long comes by itself, without its bytes. Memory is bounded for lines of any length.

    Raises:
        ConfigError: the file is damaged, or was changed meanwhile.
        OSError: it was removed.

    """
    with part.file.open() as opened:
        if part.compressed:
            yield from _unpacked(opened, part.start, part.file.path)
        else:
            opened.seek(part.start)
            chunks = _chunks(opened, part.end - part.start, part.file.path)
            yield from _whole_lines(chunks, part.file.path, part.start)


def _unpacked(opened: IO[bytes], start: int, path: str) -> Iterator[bytes | LongLine]:
    chunks = _unpacked_chunks(opened, start, path, packing_in(opened, path))
    yield from _whole_lines(chunks, path, start)


def _unpacked_chunks(opened: IO[bytes], start: int, path: str, packing: str | None) -> Iterator[bytes]:
    try:
        unpacked = open_unpacked(opened, packing)
        skip(unpacked, start)
        yield from iter(lambda: unpacked.read(_BLOCK), b"")
    except DAMAGED as error:
        raise ConfigError(f"{path}: not a complete {packing} file: {error}") from error


def skip(opened: IO[bytes], count: int) -> None:
    """Read so many bytes of a stream, and discard them."""
    while count > 0 and (data := opened.read(min(count, _BLOCK))):
        count -= len(data)


def _chunks(opened: IO[bytes], size: int, path: str) -> Iterator[bytes]:
    while size:
        chunk = opened.read(min(size, _BLOCK))
        if not chunk:
            raise ConfigError(f"{path}: truncated while it was being read: run again")
        size -= len(chunk)
        yield chunk


def _whole_lines(chunks: Iterator[bytes], path: str, start: int) -> Iterator[bytes | LongLine]:
    """Yield the lines of a content from `start` on: the bytes of a line that is too long are passed over."""
    rest, place, is_long = b"", start, False  # the beginning of a line, where it is, and whether it is too long
    end = start
    for chunk in chunks:
        first, cut = chunk.find(b"\n") + 1, chunk.rfind(b"\n") + 1
        end += len(chunk)
        if cut:
            lines = rest + chunk[:cut]
            if is_long or len(rest) + first > LONGEST_LINE:
                yield LongLine(path, place)
                lines, is_long = chunk[first:cut], False
            if lines:
                yield lines
            rest = chunk[cut:]
            place = end - len(rest)
        elif not is_long:
            rest += chunk
        if rest[:1] == b"\0":  # a log that was truncated while it was written may begin with any number of them
            rest = b"\0" + rest.lstrip(b"\0")
        if len(rest) > LONGEST_LINE:
            rest, is_long = b"", True
    if is_long:
        yield LongLine(path, place)
    elif rest:
        yield rest


def _next_start(opened: IO[bytes], place: int) -> int:
    """Return the start of the first line after this position; beyond the end if no line follows."""
    opened.seek(place - 1)
    end = place - 1
    while line := opened.readline(_BLOCK):  # in pieces: it may have any length
        end += len(line)
        if line.endswith(b"\n"):
            break
    return max(end, place)


# Strict parsing of a JSON object in a line: no duplicate key, nothing after the object; and access by path.


JsonObject: TypeAlias = dict[str, Any]

SIGNS_OF_OBJECTS: Final = (b'"', b"{", b"}")
"""Every part of an object's line has one of these, even if it is torn."""
_BLANK: Final = re.compile(rb"\s*")
BRACED_TEXT: Final = re.compile(rb"^[ \t]*\{[^\"\n]*Principal = ", re.MULTILINE)
"""A line of text with a message, which begins with a brace, but is no object: those have a quotation mark before it."""


def once(pairs: list[tuple[str, object]]) -> JsonObject:
    """Return an object of these keys and values. Raises ValueError: a key occurs twice."""
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("duplicate key")
    return value


def once_each(names: Collection[str]) -> Callable[[list[tuple[str, object]]], JsonObject]:
    """Return a function that makes an object of keys and values, and raises ValueError if one of these keys repeats."""

    def built(pairs: list[tuple[str, object]]) -> JsonObject:
        """Return the object."""
        value = dict(pairs)
        if len(value) != len(pairs):
            keys = [key for key, _ in pairs]
            if any(keys.count(name) > 1 for name in names):
                raise ValueError("duplicate key")
        return value

    return built


def object_of(line: bytes, build: Callable[[list[tuple[str, object]]], JsonObject] = once) -> "JsonObject | Reason":
    """Return the object in a line, or the reason why it has none; `build` makes it from its keys and values.

    A byte order mark and NULs before it, of a file that was truncated while it was written, are ignored.
    """
    if _BLANK.fullmatch(line):
        return Reason.BLANK
    if line[:1] in {b"\0", BOM_UTF8[:1]}:
        line = line.lstrip(b"\0").removeprefix(BOM_UTF8).lstrip(b"\0")
    try:
        value = json.loads(line.decode(), object_pairs_hook=build)
    except UnicodeDecodeError:
        return Reason.NOT_UTF8
    except (ValueError, RecursionError):
        return Reason.MALFORMED
    return value if isinstance(value, dict) else Reason.MALFORMED


def at(value: object, *path: str | int) -> Any:
    """Return the value at a path of keys and list positions, or None."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def text_at(value: object, *path: str | int) -> str | None:
    """Return the text at a path; None without one, or if UTF-8 cannot encode it."""
    text = at(value, *path)
    if not isinstance(text, str):
        return None
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return None
    return text


def number_at(value: object, *path: str | int) -> int | None:
    """Return the integer at a path, or None."""
    number = at(value, *path)
    return number if isinstance(number, int) and not isinstance(number, bool) else None
