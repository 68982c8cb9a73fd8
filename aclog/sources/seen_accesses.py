"""Accesses as lint takes them: no row needs a time or a decision, and one that only names a principal is seen."""

from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from aclog.analysis.regions.region import Request
from aclog.metalog.errors import ConfigError
from aclog.metalog.json_object import parse_object, text_field
from aclog.sources.accesses import (
    COLUMNS,
    EXPECTED,
    access_of_object,
    access_of_row,
    audited_access,
    is_audit_line,
    is_parquet,
)
from aclog.sources.parquet import need_pyarrow
from aclog.sources.text_lines import display_name, numbered

_PRINCIPAL = COLUMNS[0]


@frozen(kw_only=True)
class SeenAccesses:
    """Distinct principals that made requests, and those of the requests that are told whole."""

    principals: frozenset[str] = frozenset()
    requests: frozenset[Request] = frozenset()
    malformed: int = 0
    """Lines or rows without a principal."""


def read_seen_accesses(path: str) -> SeenAccesses:
    """Read Parquet or lines, as aclog.sources.accesses: of each row the principal, and the request if it is whole.

    Raises:
        ConfigError: there is no column of principals, a file is damaged, or no row has a principal.
        OSError: it cannot be read.

    """
    principals, requests, malformed = set[str](), set[Request](), 0
    for principal, request in _from_parquet(path) if is_parquet(path) else _from_lines(path):
        if principal is None:
            malformed += 1
            continue
        principals.add(principal)
        if request is not None:
            requests.add(request)
    if malformed and not principals:
        raise ConfigError(f"{display_name(path)}: no line has a principal: {EXPECTED}")
    return SeenAccesses(principals=frozenset(principals), requests=frozenset(requests), malformed=malformed)


def _from_lines(path: str) -> Iterator[tuple[str | None, Request | None]]:
    for _, line in numbered(path):
        if is_audit_line(line):
            request = audited_access(line)
            yield None if request is None else request.principal, request
            continue
        try:
            value = parse_object(line)
            principal = text_field(value, _PRINCIPAL)
        except ConfigError:
            yield None, None
            continue
        try:
            yield principal, access_of_object(value)
        except ConfigError:  # a principal alone, or one whose request is not told whole
            yield principal, None


def _from_parquet(path: str) -> Iterator[tuple[str | None, Request | None]]:
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
                yield None if row[0] is None else str(row[0]), access_of_row(row) if whole else None
    except (pa.ArrowInvalid, KeyError) as error:
        what = " ".join(str(error).split())[:200]
        raise ConfigError(f"{display_name(path)}: expected Parquet with a column {_PRINCIPAL}: {what}") from error
