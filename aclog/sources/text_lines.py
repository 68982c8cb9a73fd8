"""Lines of a file or of stdin (`-`), gzipped or not."""

import gzip
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TypeAlias, cast

from aclog.metalog.errors import ConfigError
from aclog.terminal.progress import Advance

_Reader: TypeAlias = BufferedReader | gzip.GzipFile

STDIN = "-"
_BLOCK = 1 << 20
_LONGEST = 1 << 22
"""A line of JSON with the longest names Kafka accepts (32,767 bytes each, escaped) is far shorter."""


def display_name(path: str) -> str:
    """Return the name of the file for messages."""
    return "stdin" if path == STDIN else path


def blocks(path: str, advance: Advance | None = None) -> Iterator[list[bytes]]:
    """Yield whole lines without line ends, in blocks as they arrive; gzip is detected by its first bytes.

    `advance` is called with the bytes that have been read of the file, and with its size if it is a regular one.

    Raises:
        ConfigError: a line longer than 4 MiB, or a damaged or truncated gzip file.
        OSError: the file cannot be read.

    """
    name, number = display_name(path), 0
    with _naming(name), _opened(path) as (file, raw):
        rest = b""
        report = None if advance is None else _reporter(raw, advance)
        while block := _read(file, name):
            if report is not None:
                report()
            *lines, rest = (rest + block).split(b"\n")
            if len(rest) > _LONGEST:
                raise ConfigError(f"{name}: line {number + len(lines) + 1} is longer than {_LONGEST} bytes")
            number += len(lines)
            yield lines
        if rest:
            yield [rest]


def numbered(path: str, advance: Advance | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield each line that is not blank with its number, from 1; `advance` and what it raises are those of `blocks`."""
    return numbered_lines(blocks(path, advance))


def numbered_lines(found: Iterable[list[bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield each line of some blocks that is not blank with its number, from 1."""
    number = 0
    for lines in found:
        for line in lines:
            number += 1
            if line and not line.isspace():
                yield number, line


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Add the file name to errors of read(), which do not have one."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, error.filename or name) from error


@contextmanager
def _opened(path: str) -> Iterator[tuple[_Reader, BufferedReader]]:
    """Open a file for reading what is in it, and as it is."""
    if path == STDIN:
        file = cast("BufferedReader", sys.stdin.buffer)
        yield _unzipped(file), file
        return
    with Path(path).open("rb") as file:
        yield _unzipped(file), file


def _reporter(raw: BufferedReader, advance: Advance) -> Callable[[], None]:
    """Return what reports how far a file is read; of a pipe nobody knows where it ends."""
    try:
        size = os.fstat(raw.fileno()).st_size if raw.seekable() else 0
    except OSError:  # no file of the system's
        size = 0
    return (lambda: advance(raw.tell(), size)) if size else lambda: None


def _unzipped(file: BufferedReader) -> _Reader:
    return gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == b"\x1f\x8b" else file


def _read(file: _Reader, name: str) -> bytes:
    try:
        return file.read1(_BLOCK)  # read1: return what is available, so that a line piped in is processed at once
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ConfigError(f"{name}: damaged or truncated gzip file: {error}") from error
