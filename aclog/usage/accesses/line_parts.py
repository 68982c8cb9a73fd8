"""Files of lines as pieces of work: byte ranges of whole lines; a compressed file is one piece."""

import gzip
import os
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO, Final

from attrs import frozen

from aclog.metalog.errors import ConfigError

_PART: Final = 1 << 26
"""Bytes of a piece, about."""
_BLOCK: Final = 1 << 23
"""Bytes that are read together."""
_LINE: Final = 1 << 24
"""The longest line: a file of another kind may have none that ends."""


@frozen(kw_only=True)
class PinnedFile:
    """A file as it was when it was found: what the name holds later may be another file, or less."""

    path: str
    device: int
    inode: int
    size: int

    @classmethod
    def of(cls, path: str) -> "PinnedFile":
        """Pin a file. Raises OSError: there is none, or it may not be read."""
        found = Path(path).stat()
        return cls(path=path, device=found.st_dev, inode=found.st_ino, size=found.st_size)

    def open(self) -> IO[bytes]:
        """Open the file.

        Raises:
            ConfigError: the name holds another file by now, or the file has become shorter.
            OSError: it is gone.

        """
        file = Path(self.path).open("rb")  # noqa: SIM115 - the caller closes it
        found = os.fstat(file.fileno())
        if (found.st_dev, found.st_ino) != (self.device, self.inode) or found.st_size < self.size:
            file.close()
            what = "truncated" if found.st_ino == self.inode else "replaced by another file"
            raise ConfigError(
                f"{self.path}: {what} while it was being read: run again, or on a copy if logs are rotated often"
            )
        return file


@frozen(kw_only=True)
class LinePart:
    """The lines that begin in [start, end) of a file; of a compressed one all from `start` on, a place in its text."""

    file: PinnedFile
    start: int
    end: int
    compressed: bool = False


def line_parts(file: PinnedFile, *, only_whole: bool = False, start: int = 0, end: int | None = None) -> list[LinePart]:
    """Return the pieces of a file, or of what is between two ends of lines; a compressed file is read to its end.

    With `only_whole` a last line without line feed is left out: it may be one that is being written.

    Raises:
        ConfigError: the file has changed meanwhile.
        OSError: it is gone.

    """
    if file.path.endswith(".gz"):
        return [LinePart(file=file, start=start, end=file.size, compressed=True)]
    with file.open() as opened:
        if end is None:
            end = _last_end(opened, file.size) if only_whole else file.size
        cuts = [start]
        while cuts[-1] < end:
            cuts.append(min(_next_start(opened, cuts[-1] + _PART), end))
    return [LinePart(file=file, start=begin, end=until) for begin, until in pairwise(cuts)]


def blocks_of(part: LinePart) -> Iterator[bytes]:
    """Yield the lines of a part, whole lines together; only the last may lack its line feed.

    Raises:
        ConfigError: the file is damaged, has changed meanwhile, or has a line of over 16 MiB.
        OSError: it is gone.

    """
    with part.file.open() as opened:
        if part.compressed:
            yield from _unpacked(opened, part.start, part.file.path)
        else:
            opened.seek(part.start)
            yield from _whole_lines(_chunks(opened, part.end - part.start, part.file.path), part.file.path)


def _unpacked(opened: IO[bytes], start: int, path: str) -> Iterator[bytes]:
    try:
        with gzip.open(opened) as unpacked:
            unpacked.seek(start)
            yield from _whole_lines(iter(lambda: unpacked.read(_BLOCK), b""), path)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ConfigError(f"{path}: not a whole gzip file: {error}") from error


def _chunks(opened: IO[bytes], size: int, path: str) -> Iterator[bytes]:
    while size:
        chunk = opened.read(min(size, _BLOCK))
        if not chunk:
            raise ConfigError(f"{path}: truncated while it was being read: run again")
        size -= len(chunk)
        yield chunk


def _whole_lines(chunks: Iterator[bytes], path: str) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield rest + chunk[:cut]
            rest = chunk[cut:]
        else:
            rest += chunk
        if len(rest) > _LINE:
            raise ConfigError(f"{path}: a line of over {_LINE >> 20} MiB: not an access log")
    if rest:
        yield rest


def _next_start(opened: IO[bytes], place: int) -> int:
    """Return where the first line begins after this place; beyond the end if there is none."""
    opened.seek(place - 1)
    line = opened.readline(_LINE)
    return place - 1 + len(line) if line else place


def _last_end(opened: IO[bytes], size: int) -> int:
    """Return the end of the last whole line."""
    end = size
    while end > 0:
        start = max(end - (1 << 16), 0)
        opened.seek(start)
        cut = opened.read(end - start).rfind(b"\n")
        if cut >= 0:
            return start + cut + 1
        end = start
    return 0
