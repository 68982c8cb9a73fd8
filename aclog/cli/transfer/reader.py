"""Reader of exports, and of ACLs as JSON lines, row by row."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from aclog.cli.transfer.avro.files import HISTORY, IMAGE, MAGIC, Row, read_rows
from aclog.cli.transfer.json_rows import RowReader
from aclog.metalog.errors import ConfigError
from aclog.shell.rule_text import rule_object
from aclog.sources.acl_lines import rule_of_object
from aclog.sources.json_object import parse_object
from aclog.sources.text_lines import STDIN, display_name, numbered

Rows: TypeAlias = Iterator[tuple[str, Row]]
"""Rows of a schema, each with its place (file and line or row) for messages."""

_ADVICE = {IMAGE: "to import a state, leave out --history", HISTORY: "to import a history, add --history"}


@contextmanager
def open_export(path: str, schema: str) -> Iterator[Rows]:
    """Open a file of rows of the schema of this name (avro.files.IMAGE or HISTORY).

    Raises:
        ConfigError: another schema, or a damaged file; iterating the rows raises it too, with file and line.
        OSError: the file cannot be read.

    """
    if not _is_avro(path):
        yield _json_rows(path, schema)
        return
    with Path(path).open("rb") as file:
        found, rows = read_rows(file, path)
        if found != schema:
            raise ConfigError(f"{path}: an export of {found}: {_ADVICE[found]}")
        yield ((f"{path}: row {number}", row) for number, row in enumerate(rows, 1))


def _is_avro(path: str) -> bool:
    if path == STDIN or not Path(path).is_file():
        return False  # what is read of a pipe is gone
    with Path(path).open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _json_rows(path: str, schema: str) -> Rows:
    reader = RowReader(schema)
    for number, line in numbered(path):
        place = f"{display_name(path)}: line {number}"
        try:
            yield place, _row(line, reader, schema)
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}") from error


def _row(line: bytes, reader: RowReader, schema: str) -> Row:
    if line.startswith(MAGIC):
        raise ConfigError("Avro can only be read from a file, not from stdin")
    value = parse_object(line)
    if schema == IMAGE and "resourceType" in value:
        return {"acl": {**rule_object(rule_of_object(value)), "taggedFields": []}}
    return reader.row(value)
