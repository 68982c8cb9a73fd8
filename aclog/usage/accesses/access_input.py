"""The files of an access log, found and cut into pieces of work."""

import glob
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Final, TypeAlias

from attrs import frozen

from aclog.metalog.errors import ConfigError
from aclog.usage.accesses.access_batch import AccessBatch
from aclog.usage.accesses.append_state import listing, tables_of
from aclog.usage.accesses.avro_events import read_avro_events
from aclog.usage.accesses.event_block import read_audit_events, read_cloudevents, read_ocsf
from aclog.usage.accesses.form import AccessForm, form_of
from aclog.usage.accesses.json_block import read_json
from aclog.usage.accesses.kafka_block import read_kafka_lines
from aclog.usage.accesses.line_parts import LinePart, PinnedFile, blocks_of, line_parts
from aclog.usage.accesses.mixed_lines import lines_by_form
from aclog.usage.accesses.parquet_parts import ParquetPart, parquet_parts
from aclog.usage.accesses.parquet_rows import read_parquet

PARTS: Final = 64
"""Pieces of work, about, that the Parquet files of a log make."""
_PARQUET: Final = (".parquet", ".parq", ".pq")


@frozen(kw_only=True)
class TextPart:
    """Lines of one form."""

    lines: LinePart
    form: AccessForm
    zone: tzinfo
    """Of times that name none."""
    mixed: bool = True
    """Whether a line may be of another form, which it tells itself; not if the form was given."""


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
    """An access log, as it was when its files were found."""

    parts: tuple[AccessPart, ...]
    files: tuple[PinnedFile, ...]

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)


def find_accesses(paths: Sequence[str], zone: tzinfo, form: AccessForm | None = None) -> AccessInput:
    """Return the log in these files, directories (with what is below them) and globs; `zone` is that of bare times.

    As everywhere in Spark, files in directories are skipped if their names begin with `.` or `_`. A directory that
    `spark ingest` made is that of its accesses, and of the lines that it rejected. A directory may hold other logs of
    text: none of their lines is an access.

    Raises:
        ConfigError: there is no such file, a file is of no known form, an append to a table has not been finished,
            or one was made meanwhile.
        OSError: a file cannot be read.

    """
    named = {str(Path(given)) for given in paths}
    with listing(tables_of(path for given in paths for path in _found(given))):
        files = [PinnedFile.of(str(path)) for given in paths for path in _found(given)]
    parquet, parts = [], list[AccessPart]()
    for file in files:
        with file.open() as opened:
            known = form or (
                AccessForm.PARQUET
                if file.path.endswith(_PARQUET)
                else form_of(opened, file.path, named=file.path in named)
            )
        if known is AccessForm.PARQUET:
            parquet.append(file.path)
        elif known is AccessForm.AVRO:
            parts.append(AvroPart(file=file, zone=zone))
        else:
            mixed = form is None
            parts += [TextPart(lines=lines, form=known, zone=zone, mixed=mixed) for lines in line_parts(file)]
    return AccessInput(
        parts=(*parts, *(TablePart(table=part, zone=zone) for part in parquet_parts(parquet, PARTS))),
        files=tuple(files),
    )


def read_part(part: AccessPart) -> Iterator[AccessBatch]:
    """Read a piece of work.

    Raises:
        ConfigError: a file is damaged, or was truncated or replaced since it was found; a column is missing.
        OSError: a file is gone.

    """
    if isinstance(part, TablePart):
        yield from read_parquet(part.table, part.zone)
    elif isinstance(part, AvroPart):
        yield from read_avro_events(part.file, part.zone)
    else:
        for block in blocks_of(part.lines):
            yield from read_lines(block, part.form, part.zone, mixed=part.mixed)


def read_lines(block: bytes, form: AccessForm, zone: tzinfo, *, mixed: bool = True) -> Iterator[AccessBatch]:
    """Read whole lines of a form; `mixed`: some may be of another one."""
    for own, lines in lines_by_form(block, form) if mixed else ((form, block),):
        yield _READERS[own](lines, zone)


_READERS: Final[Mapping[AccessForm, Callable[[bytes, tzinfo], AccessBatch]]] = {
    AccessForm.JSONL: read_json,
    AccessForm.KAFKA_LOG: read_kafka_lines,
    AccessForm.EVENTS: read_audit_events,
    AccessForm.OCSF: read_ocsf,
    AccessForm.CLOUDEVENTS: read_cloudevents,
}


def _found(given: str) -> Iterator[Path]:
    """Yield the files of a path or glob. Raises ConfigError: there are none, or one is a pipe, which is read once."""
    path = Path(given)
    if path.is_file():
        yield path
        return
    places = [path] if path.is_dir() else [Path(name) for name in sorted(glob.glob(given, recursive=True))]  # noqa: PTH207 - absolute or not
    found = [file for place in places for file in (_below(place) if place.is_dir() else [place])]
    if not found:
        raise ConfigError(
            f"{given}: no such file, or a directory without files (names with `.` or `_` in front are skipped)"
        )
    for file in found:
        if file.exists() and not file.is_file():
            raise ConfigError(
                f"{file}: not a regular file: an access log is read more than once, which a pipe cannot be: write the "
                "accesses to a file first"
            )
    yield from found


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
