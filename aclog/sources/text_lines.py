"""Lines of a file or of stdin (`-`), gzipped or not."""

import gzip
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TypeAlias, cast

from aclog.metalog.errors import ConfigError

_Reader: TypeAlias = BufferedReader | gzip.GzipFile

STDIN = "-"
_BLOCK = 1 << 20
_LONGEST = 1 << 22
"""A line of JSON with the longest names Kafka accepts (32,767 bytes each, escaped) is far shorter."""


def display_name(path: str) -> str:
    """Return the name of the file for messages."""
    return "stdin" if path == STDIN else path


def blocks(path: str) -> Iterator[list[bytes]]:
    """Yield whole lines without line ends, in blocks as they arrive; gzip is detected by its first bytes.

    Raises:
        ConfigError: a line longer than 4 MiB, or a damaged or truncated gzip file.
        OSError: the file cannot be read.

    """
    name, number = display_name(path), 0
    with _naming(name), _opened(path) as file:
        rest = b""
        while block := _read(file, name):
            *lines, rest = (rest + block).split(b"\n")
            if len(rest) > _LONGEST:
                raise ConfigError(f"{name}: line {number + len(lines) + 1} is longer than {_LONGEST} bytes")
            number += len(lines)
            yield lines
        if rest:
            yield [rest]


def numbered(path: str) -> Iterator[tuple[int, bytes]]:
    """Yield each line that is not blank with its number, from 1. Raises as `blocks`."""
    return numbered_lines(blocks(path))


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
def _opened(path: str) -> Iterator[_Reader]:
    if path == STDIN:
        yield _unzipped(cast("BufferedReader", sys.stdin.buffer))
        return
    with Path(path).open("rb") as file:
        yield _unzipped(file)


def _unzipped(file: BufferedReader) -> _Reader:
    return gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == b"\x1f\x8b" else file


def _read(file: _Reader, name: str) -> bytes:
    try:
        return file.read1(_BLOCK)  # read1: return what is available, so that a line piped in is processed at once
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ConfigError(f"{name}: damaged or truncated gzip file: {error}") from error
