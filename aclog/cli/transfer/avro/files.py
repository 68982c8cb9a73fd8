"""Avro container files of the export schemas, streamed row by row."""

import json
from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import IO, TYPE_CHECKING, TypeAlias

from aclog.metalog.errors import ConfigError

if TYPE_CHECKING:
    from fastavro.types import Schema

Row: TypeAlias = dict[str, object]

MAGIC = b"Obj\x01"
"""The first bytes of every Avro container file."""

IMAGE, HISTORY = "aclog.ImageRow", "aclog.AclChange"
_FILES = {IMAGE: "image.avsc", HISTORY: "history.avsc"}


def load_schema(name: str) -> "Schema":
    """Return the schema of this name, from the package data."""
    text = files("aclog.cli.transfer.avro").joinpath(_FILES[name]).read_text(encoding="utf-8")
    schema: Schema = json.loads(text)
    return schema


def write_rows(file: IO[bytes], name: str, rows: Iterable[Row]) -> None:
    """Write rows of the schema of this name as a container file (deflate). Raises OSError."""
    import fastavro  # here: JSON lines are exported and imported without it

    fastavro.writer(file, fastavro.parse_schema(load_schema(name)), rows, codec="deflate")


def read_rows(file: IO[bytes], source: str) -> tuple[str, Iterator[Row]]:
    """Return the schema name of a container file, and its rows in the current version of the schema.

    Older and newer versions are converted by Avro's schema resolution.

    Raises:
        ConfigError: the file is not Avro, of another schema, or damaged; iterating the rows raises it too.

    """
    import fastavro

    try:
        name = str(fastavro.reader(file).writer_schema["name"])  # type: ignore[index, call-overload]
    except Exception as error:  # on damaged bytes fastavro raises nearly any exception
        raise ConfigError(f"{source}: not an Avro file: {_reason(error)}") from error
    if name not in _FILES:
        raise ConfigError(f"{source}: an Avro file of {name}: expected {IMAGE} or {HISTORY}")
    file.seek(0)
    return name, _rows(file, name, source)


def _rows(file: IO[bytes], name: str, source: str) -> Iterator[Row]:
    import fastavro

    number = 0
    try:
        for row in fastavro.reader(file, reader_schema=load_schema(name)):
            number += 1
            yield row  # type: ignore[misc]
    except Exception as error:  # on damaged bytes fastavro raises nearly any exception
        raise ConfigError(f"{source}: damaged or truncated after row {number}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]
