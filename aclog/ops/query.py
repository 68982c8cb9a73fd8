"""SQL on the tables of a source, by DuckDB in memory: one SELECT, which reaches no file and no network.

The tables are copied into a database in memory first. Then access to anything outside is switched off and the settings
are locked, before the statement runs.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import duckdb
import pyarrow as pa

from aclog.analysis.rows.report import arrow_table
from aclog.analysis.rows.rule_tables import rules_arrow
from aclog.authorizer.acl import AclBindingFilter
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.ops.lint import Linted
from aclog.ops.tables import CHANGE_KINDS, FINDINGS, change_cells, table_of
from aclog.ops.usage import warn_of_unread
from aclog.snapshots.image import Image
from aclog.snapshots.image_file import check_mapping
from aclog.sources.choice import ChosenSource
from aclog.sources.logs import history_of
from aclog.terminal.output import note, warn
from aclog.usage.accesses.access_batch import READ_SCHEMA
from aclog.usage.accesses.access_log import AccessInput, read_part
from aclog.usage.window import UnreadAccesses

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DEFAULT_MEMORY: Final = "2GB"
_MEMORY = re.compile(r"[1-9]\d{0,5}(KB|MB|GB|KiB|MiB|GiB)", re.ASCII)
_ROWS: Final = 4096
"""Rows of a result that are held at a time."""

Rows: TypeAlias = "pa.Table | pa.RecordBatchReader"


# The tables.


@frozen(kw_only=True)
class QueriedSource:
    """A source whose tables are queried, and an access log, if there is one."""

    choice: ChosenSource
    image: Image
    linted: Callable[[], Linted]
    """Lints the source."""
    accesses: AccessInput | None = None

    def tables(self) -> Mapping[str, Callable[[], Rows]]:
        """Return what reads each table. Each raises the errors of its source."""
        return {
            "acls": self._acls,
            "changes": self._changes,
            "accesses": self._accesses,
            "findings": self._findings,
        }

    def _acls(self) -> Rows:
        columns = self.image.acls.columns(AclBindingFilter())
        assert columns is not None  # noqa: S101  # the filter names nothing
        table = rules_arrow(columns)
        check_mapping(self.image.acls)
        return table

    def _changes(self) -> Rows:
        history, end = history_of(self.choice.source), self.image.end_offset
        if history.begin.end_offset:
            warn(f"changes: the history begins at offset {history.begin.end_offset:,}: earlier changes are unknown")
        changes = (each for each in history.changes if self.choice.moment is None or each.end_offset <= end)
        return arrow_table(CHANGE_KINDS, map(change_cells, changes))

    def _accesses(self) -> Rows:
        if self.accesses is None:
            raise ConfigError("accesses: no access log is given: expected --accesses PATH")
        return pa.RecordBatchReader.from_batches(READ_SCHEMA, _batches(self.accesses))

    def _findings(self) -> Rows:
        linted = self.linted()
        if linted.not_judged is not None:
            note(linted.not_judged)
        return table_of(linted.objects(), FINDINGS).to_arrow()


def _batches(accesses: AccessInput) -> Iterator[pa.RecordBatch]:
    unread = []
    for part in accesses.parts:
        for batch in read_part(part):
            unread.append(batch.unread)
            yield batch.rows.cast(READ_SCHEMA)
    warn_of_unread(UnreadAccesses.sum_of(unread), "they are not in the table")


# The statement.


@frozen(kw_only=True)
class QueryResult:
    """The columns of a result, and its rows, which are computed as they are read."""

    columns: tuple[str, ...]
    rows: Iterator[dict[str, Any]]
    """Values of JSON by column. May raise ConfigError."""


def run_query(sql: str, tables: Mapping[str, Callable[[], Rows]], *, memory: str = DEFAULT_MEMORY) -> QueryResult:
    """Run one SELECT on those of the tables whose names occur in it.

    Raises:
        ConfigError: it is not one statement that only reads, DuckDB refuses it, or the limit of memory is reached.
        MetadataError, OSError: a table cannot be read.

    """
    if not _MEMORY.fullmatch(memory):
        raise ConfigError(f"--memory-limit {memory[:40]}: expected a size, such as 500MB or {DEFAULT_MEMORY}")
    _check(sql)
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    connection = _connected(memory)
    for name, read in tables.items():
        if name in words:
            _fill(connection, name, read())
    # From here on nothing outside of the database exists, and nothing can change that.
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    relation = _guarded(lambda: connection.sql(sql), memory)
    names = tuple(relation.columns)
    if len({name.lower() for name in names}) < len(names):
        twice = next(name for at, name in enumerate(names) if name.lower() in {each.lower() for each in names[:at]})
        raise ConfigError(f"two columns of the result are named {twice}: expected a name for each (AS)")
    if any(map(_is_text, relation.types)):
        cast = ", ".join(
            f"CAST({_quoted(name)} AS VARCHAR) AS {_quoted(name)}" if _is_text(type_) else _quoted(name)
            for name, type_ in zip(names, relation.types, strict=True)
        )
        query = relation
        relation = _guarded(lambda: query.project(cast), memory)
    reader = _guarded(lambda: relation.to_arrow_reader(_ROWS), memory)
    return QueryResult(columns=names, rows=_rows(reader, memory))


_TEXT_TYPES: Final = frozenset({"uhugeint", "bit", "bignum", "varint", "interval", "time with time zone"})
"""Types whose values Arrow or Python have no equal of."""


def _is_text(type_: Any) -> bool:
    """Return whether values of a type of DuckDB are printed as DuckDB's text: it has, or contains, one of these."""
    if type_.id in _TEXT_TYPES:
        return True
    if type_.id not in ("list", "map", "struct", "union", "array"):
        return False
    return any(_is_text(child) for name, child in type_.children if name != "size")


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _check(sql: str) -> None:
    """Raise ConfigError unless a text is one statement that only reads."""
    statements = _guarded(partial(duckdb.extract_statements, sql), "")
    kinds = [statement.type for statement in statements]
    if len(kinds) != 1 or kinds[0] not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        texts = " and ".join(kind.name for kind in kinds) or "nothing"
        raise ConfigError(f"{texts}: expected one SELECT")


def _connected(memory: str) -> "DuckDBPyConnection":
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": memory,
            "temp_directory": "",  # what does not fit is an error: nothing is written to a disk
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "python_enable_replacements": False,
        },
    )
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _fill(connection: "DuckDBPyConnection", name: str, rows: Rows) -> None:
    connection.register("arrow_rows", rows)
    _guarded(lambda: connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow_rows"), "")  # noqa: S608  # a name of TABLES
    connection.unregister("arrow_rows")


_ABSENT = re.compile(r"Catalog Error: Table with name (.*?) does not exist")


def _guarded(step: Callable[[], Any], memory: str) -> Any:
    """Do a step. Raises ConfigError: DuckDB refuses it, in one line."""
    try:
        return step()
    except duckdb.OutOfMemoryException:
        limit = f" of {memory}" if memory else ""
        raise ConfigError(
            f"the query needs more memory than the limit{limit}: expected a larger --memory-limit"
        ) from None
    except duckdb.Error as error:
        if absent := _ABSENT.search(str(error)):
            raise ConfigError(f"no table {absent[1][:80]!r}: expected acls, changes, accesses or findings") from None
        text, _, place = str(error).partition("\n\nLINE ")
        at = place.partition("\n")[0]
        line = f"{' '.join(text.split())}{f' (at LINE {at})' if at else ''}"
        raise ConfigError(f"{line[:600]}: expected SQL of DuckDB on acls, changes, accesses, findings") from None


def _rows(reader: pa.RecordBatchReader, memory: str) -> Iterator[dict[str, Any]]:
    while True:
        batch = _guarded(partial(_next_batch, reader), memory)
        if batch is None:
            return
        for row in _python_rows(batch):
            yield {name: _json_value(value) for name, value in row.items()}


def _python_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows of a batch. Raises ConfigError: Python has no such value."""
    try:
        return batch.to_pylist()
    except (OverflowError, ValueError):
        bad = next((name for name in batch.schema.names if not _is_python(batch.column(name))), "a column")
        raise ConfigError(
            f"{bad[:100]}: a time before the year 1, after 9999 or infinite: expected CAST({bad[:100]} AS VARCHAR)"
        ) from None


def _is_python(column: Any) -> bool:
    try:
        column.to_pylist()
    except (OverflowError, ValueError):
        return False
    return True


def _next_batch(reader: pa.RecordBatchReader) -> pa.RecordBatch | None:
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None
    except pa.ArrowException as error:  # an error of DuckDB that comes through Arrow
        raise duckdb.Error(str(error)) from error


def _json_value(value: Any) -> Any:  # noqa: PLR0911  # one line per type
    """Return a value of Arrow as one of JSON: times as ISO 8601, in UTC with a Z."""
    match value:
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case float():
            return value if isfinite(value) else str(value)
        case bytes():
            return value.hex()
        case dict():
            return {str(key): _json_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_json_value(item) for item in value]
    return value
