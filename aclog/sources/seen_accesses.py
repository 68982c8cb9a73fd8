"""Accesses as lint takes them: no row needs a time or a decision, and one that only names a principal is seen."""

from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from aclog.analysis.regions.region import Request
from aclog.authorizer.access_reject import Reason
from aclog.authorizer.audit_line_reader import access_trace
from aclog.metalog.errors import ConfigError
from aclog.metalog.json_object import parse_object, text_field
from aclog.sources.accesses import (
    COLUMNS,
    EVENT_KEYS,
    EXPECTED,
    Unread,
    access_of_object,
    access_of_row,
    audited_access,
    is_audit_line,
    is_lines,
    is_parquet,
    is_stream,
    read_accesses,
)
from aclog.sources.parquet import has_pyarrow, need_pyarrow
from aclog.sources.text_lines import display_name, numbered
from aclog.usage.accesses.json_object import SIGNS_OF_OBJECTS, object_of

_PRINCIPAL = COLUMNS[0]
_ACCESS_KEYS = frozenset({*COLUMNS, *EVENT_KEYS})
"""An object with any of them tells of an access."""


@frozen(kw_only=True)
class SeenAccesses:
    """Distinct principals that made requests, and those of the requests that are told whole."""

    principals: frozenset[str] = frozenset()
    requests: frozenset[Request] = frozenset()
    malformed: int = 0
    """Lines or rows without a principal."""
    unread: int = 0
    """Those of them that tell of an access: it may have been anybody's."""


def read_seen_accesses(path: str) -> SeenAccesses:
    """Read a log as aclog.sources.accesses does: of each row the principal, and the request if it is whole.

    In tables, in lines of JSON and of kafka-authorizer.log, a row may be a principal alone.

    Raises:
        ConfigError: there is no column of principals, a file is damaged, or no row has a principal.
        OSError: it cannot be read.

    """
    is_table = _is_table(path)
    if not is_table and (not is_lines(path) or _has_events(path)):
        found = read_accesses(path)
        return SeenAccesses(
            principals=frozenset(request.principal for request in found.counts),
            requests=frozenset(found.counts),
            malformed=found.malformed,
            unread=found.unread,
        )
    principals, requests, malformed, unread = set[str](), set[Request](), 0, 0
    for principal, request in _from_parquet(path) if is_table else _from_lines(path):
        if not isinstance(principal, str):
            malformed += 1
            unread += principal is Unread.ACCESS
            continue
        principals.add(principal)
        if request is not None:
            requests.add(request)
    if malformed and not principals:
        raise ConfigError(f"{display_name(path)}: no line has a principal: {EXPECTED}")
    return SeenAccesses(
        principals=frozenset(principals), requests=frozenset(requests), malformed=malformed, unread=unread
    )


def _is_table(path: str) -> bool:
    """Return whether a path is of Parquet; a directory is unless no file in it is."""
    return is_parquet(path) and (not Path(path).is_dir() or any(Path(path).rglob("*.parq*")))


def _has_events(path: str) -> bool:
    """Return whether the first object in a file is an event, of a known kind or not; a pipe is not looked at."""
    if is_stream(path):
        return False
    for _, line in numbered(path):
        if not is_audit_line(line):
            value = object_of(line)
            if isinstance(value, Reason):
                return False
            return not EVENT_KEYS.isdisjoint(value) or (has_pyarrow() and "logger" in value)
    return False


def _from_lines(path: str) -> Iterator[tuple[str | Unread, Request | None]]:
    for _, line in numbered(path):
        if is_audit_line(line):
            request = audited_access(line)
            yield _who_of(line) if request is None else request.principal, request
            continue
        try:
            value = parse_object(line)
            principal = text_field(value, _PRINCIPAL)
        except ConfigError:
            yield _who_of(line), None
            continue
        try:
            yield principal, access_of_object(value)
        except ConfigError:  # a principal alone, or one whose request is not told whole
            yield principal, None


def _who_of(line: bytes) -> str | Unread:
    """Return the principal of a line that cannot be read, or whether the line tells of an access."""
    trace = access_trace(line.decode(errors="replace"))
    if trace is not None:
        return trace.principal or Unread.ACCESS
    value = object_of(line)
    if isinstance(value, Reason):  # torn, perhaps
        return Unread.ACCESS if any(sign in line for sign in SIGNS_OF_OBJECTS) else Unread.OTHER
    return Unread.OTHER if value.keys().isdisjoint(_ACCESS_KEYS) else Unread.ACCESS


def _from_parquet(path: str) -> Iterator[tuple[str | Unread, Request | None]]:
    need_pyarrow(display_name(path))
    import pyarrow as pa  # here: for Parquet alone
    import pyarrow.dataset as ds

    inner = Path(path, "accesses")
    try:
        table = ds.dataset(inner if inner.is_dir() else path, format="parquet")
        there = [name for name in COLUMNS if name in table.schema.names]
        whole = len(there) == len(COLUMNS)
        for batch in table.to_batches(columns=there if whole else [_PRINCIPAL]):
            distinct = pa.Table.from_batches([batch]).group_by(batch.schema.names).aggregate([])
            for row in zip(*(distinct.column(name).to_pylist() for name in batch.schema.names), strict=True):
                yield Unread.ACCESS if row[0] is None else str(row[0]), access_of_row(row) if whole else None
    except (pa.ArrowInvalid, KeyError) as error:
        what = " ".join(str(error).split())[:200]
        raise ConfigError(f"{display_name(path)}: expected Parquet with a column {_PRINCIPAL}: {what}") from error
