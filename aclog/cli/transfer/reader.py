"""Reader of exports, and of ACLs as JSON lines, row by row."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TypeAlias, TypeVar

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.rule_object import rule_of_object
from aclog.cli.transfer.avro.files import HISTORY, IMAGE, MAGIC, Row, read_rows
from aclog.cli.transfer.json_rows import RowReader
from aclog.metalog.errors import ConfigError
from aclog.metalog.json_object import parse_object
from aclog.sources.text_lines import STDIN, display_name, numbered
from aclog.terminal.progress import Advance

_T = TypeVar("_T")

Placed: TypeAlias = Iterator[tuple[str, _T]]
"""Entries of a file, each with its place (file and line or row) for messages."""

_STEP = 1024
"""Rows between two reports of progress."""

_ADVICE = {IMAGE: "to import a state, leave out --history", HISTORY: "to import a history, add --history"}


@contextmanager
def open_state(path: str, advance: Advance | None = None) -> Iterator[Placed[Row | StandardAclWithId]]:
    """Open an exported state (avro.files.IMAGE), or ACLs as JSON lines, each of which comes as an ACL.

    `advance` is called with how far the file is read, in bytes.

    Raises:
        ConfigError: another schema, or a damaged file; iterating it raises it too, with file and line.
        OSError: the file cannot be read.

    """
    if not _is_avro(path):
        reader = RowReader(IMAGE)
        yield _json_lines(
            path, lambda value: rule_of_object(value) if "resourceType" in value else reader.row(value), advance
        )
        return
    with _open_avro(path, IMAGE, advance) as rows:
        yield rows


@contextmanager
def open_history(path: str) -> Iterator[Placed[Row]]:
    """Open an exported history (avro.files.HISTORY). Raises as open_state."""
    if not _is_avro(path):
        yield _json_lines(path, RowReader(HISTORY).row)
        return
    with _open_avro(path, HISTORY) as rows:
        yield rows


@contextmanager
def _open_avro(path: str, schema: str, advance: Advance | None = None) -> Iterator[Placed[Row]]:
    with Path(path).open("rb") as file:
        found, rows = read_rows(file, path)
        if found != schema:
            raise ConfigError(f"{path}: an export of {found}: {_ADVICE[found]}")
        yield _placed_rows(file, path, rows, advance)


def _placed_rows(file: BufferedReader, path: str, rows: Iterable[Row], advance: Advance | None) -> Placed[Row]:
    size = os.fstat(file.fileno()).st_size
    for number, row in enumerate(rows, 1):
        if advance is not None and not number % _STEP:
            advance(file.tell(), size)
        yield f"{path}: row {number}", row


def _is_avro(path: str) -> bool:
    if path == STDIN or not Path(path).is_file():
        return False  # what is read of a pipe is gone
    with Path(path).open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _json_lines(path: str, entry: Callable[[dict[str, object]], _T], advance: Advance | None = None) -> Placed[_T]:
    name = display_name(path)
    for number, line in numbered(path, advance):
        place = f"{name}: line {number}"
        try:
            found = entry(_object(line))
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}") from error
        yield place, found


def _object(line: bytes) -> dict[str, object]:
    if line.startswith(MAGIC):
        raise ConfigError("Avro can only be read from a file, not from stdin")
    return parse_object(line)
