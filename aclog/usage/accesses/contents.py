"""What files hold, known by digest: a log that was renamed, compressed or copied holds what it held before.

A file of lines is taken up to its last line feed. It may have grown since it was taken: its first bytes then have a
known length and digest, and only the rest is new.
"""

import bz2
import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias, cast

from attrs import evolve, frozen

from aclog.metalog.errors import ConfigError

Known: TypeAlias = tuple[int, bytes]
"""The length and digest of bytes that were taken."""

_HEAD: Final = 1 << 10
_BLOCK: Final = 1 << 20
_DECOMPRESSED: Final = (".gz", ".bz2")
_UNREAD: Final = (".zst", ".lz4", ".snappy", ".deflate", ".xz", ".zip")


@frozen(kw_only=True)
class Content:
    """What a file held when it was read, decompressed; of a file of lines, all whole lines."""

    path: str
    name: str
    """The file's URI, as Spark names it."""
    length: int
    digest: bytes
    beginnings: frozenset[Known]
    """The digests of its first bytes, for some lengths."""
    head: bytes
    waiting: int = 0
    """The bytes after the last line feed: a line that is still being written."""

    @property
    def known(self) -> Known:
        """By what it is known again."""
        return self.length, self.digest


@frozen(kw_only=True)
class Part:
    """A content whose bytes from `start` on are new; none are if that is its length."""

    content: Content
    start: int

    @property
    def is_new(self) -> bool:
        """Whether there is anything to take."""
        return self.start < self.content.length


def new_parts(
    files: Sequence[tuple[str, str, int]],
    known: AbstractSet[Known],
    *,
    lines: bool,
    advance: Callable[[int, int], None],
) -> list[Part]:
    """Return what is new in each of these files: (path, name, size), of which no more than the size is read.

    Without `lines`, files are only known as a whole. Two files that hold the same are taken once, and of one that
    begins with another only the rest. `advance` is called with the bytes that are looked through, and their number.

    Raises:
        ConfigError: a file cannot be read, or is compressed in a way that is not supported.
        FileNotFoundError: a file is gone.

    """
    lengths = {length for length, _ in known} if lines else set()
    contents, read, total = [], 0, sum(size for _, _, size in files)
    for path, name, size in files:
        advance(read, total)
        contents.append(_content(path, name, size, lengths=lengths, lines=lines))
        read += size
    if lines:
        contents = [_beside(content, contents) for content in contents]
    taken, parts = set(known), []
    for content in sorted(contents, key=lambda each: each.length):
        found = content.beginnings & taken
        start = content.length if content.known in taken else max((length for length, _ in found), default=0)
        taken.add(content.known)
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
    return open(path, "rb")  # noqa: PTH123  # closed by who opens it


def _content(path: str, name: str, size: int, *, lengths: AbstractSet[int], lines: bool) -> Content:
    if path.endswith(_UNREAD):
        raise ConfigError(f"{path}: only plain, .gz and .bz2 files are read: decompress it first")
    try:
        closed = is_compressed(path) or not lines
        end = None if is_compressed(path) else size if closed else _last_line_end(path, size)
        with opened(path) as file:
            found = _digests(_blocks(file, end), sorted(lengths))
    except FileNotFoundError:
        raise
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    return evolve(found, path=path, name=name, waiting=0 if end is None else size - end)


def _beside(content: Content, others: Iterable[Content]) -> Content:
    """Return a content with its digest at the lengths of others that begin as it does."""
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
    if again.known != content.known:
        raise ConfigError(f"{content.path}: changed while it was being read: run again, or on a copy")
    return evolve(content, beginnings=content.beginnings | again.beginnings)


def _digests(blocks: Iterator[bytes], lengths: Sequence[int]) -> Content:
    """Return the digest of all blocks, and of the first bytes for each of these lengths, in ascending order."""
    digest, length, head, beginnings = hashlib.sha256(), 0, b"", set()
    wanted = iter([each for each in lengths if each > 0])
    cut = next(wanted, None)
    for block in blocks:
        head += block[: _HEAD - len(head)]
        rest = memoryview(block)
        while cut is not None and cut <= length + len(rest):
            digest.update(rest[: cut - length])
            rest, length = rest[cut - length :], cut
            beginnings.add((length, digest.digest()))
            cut = next(wanted, None)
        digest.update(rest)
        length += len(rest)
    return Content(path="", name="", length=length, digest=digest.digest(), beginnings=frozenset(beginnings), head=head)


def _blocks(file: BinaryIO, end: int | None) -> Iterator[bytes]:
    """Yield the bytes of a file up to `end`; None is all of it."""
    left = end
    while left is None or left > 0:
        block = file.read(_BLOCK if left is None else min(_BLOCK, left))
        if not block:
            return
        yield block
        left = None if left is None else left - len(block)


def _last_line_end(path: str, size: int) -> int:
    """Return the position after the last line feed in the first `size` bytes, 0 if there is none."""
    with Path(path).open("rb") as file:
        end = size
        while end > 0:
            start = max(0, end - _BLOCK)
            block = os.pread(file.fileno(), end - start, start)
            found = block.rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0
