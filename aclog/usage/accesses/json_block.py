"""Accesses in JSON lines, strictly: one object a line, no column twice, nothing after the object.

Arrow parses whole blocks. What it does not take, or might take for something else, is read line by line.
"""

import io
import re
from datetime import tzinfo
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from aclog.usage.accesses.access_batch import (
    BROKER,
    LOGGED_DECISION,
    READ_COLUMNS,
    READ_SCHEMA,
    TIMESTAMP,
    AccessBatch,
)
from aclog.usage.accesses.access_times import times_of_millis, times_of_texts
from aclog.usage.accesses.event_block import batch_of, objects_of
from aclog.usage.accesses.form import AccessForm
from aclog.usage.accesses.json_object import once_each
from aclog.usage.accesses.object_rows import DECISIONS
from aclog.usage.decisions.accesses import REQUEST_COLUMNS

_NOT_AN_OBJECT: Final = re.compile(rb"^(?!\{[^\n]*\}\r?$)", re.MULTILINE)
"""A line that is not from a brace to a brace."""
_once: Final = once_each(READ_COLUMNS)
"""As Arrow, which does not see a foreign key twice."""


def read_json(block: bytes, zone: tzinfo) -> AccessBatch:
    """Read a block of lines; `zone` is that of times without an offset."""
    batch = _as_a_whole(block, zone)
    return _line_by_line(block, zone) if batch is None else batch


def _as_a_whole(block: bytes, zone: tzinfo) -> AccessBatch | None:
    """Read a block whose lines are all plain accesses; None if one of them may not be."""
    whole = block if block.endswith(b"\n") else block + b"\n"
    # with a brace at both ends of each line and as many objects as lines, each line is one object
    if _NOT_AN_OBJECT.search(whole, 0, len(whole) - 1) or not _is_utf8(block):
        return None
    # a number in one line is one in all, or the block is read line by line
    numbers = {name for name in (TIMESTAMP, BROKER) if _is_number(name, whole[: whole.index(b"\n")])}
    schema = pa.schema([(name, pa.int64() if name in numbers else pa.string()) for name in READ_COLUMNS])
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    reading = pj.ReadOptions(use_threads=False, block_size=len(whole) + 1)
    try:
        table = pj.read_json(io.BytesIO(whole), reading, options)
    except pa.ArrowInvalid:
        return None
    return _of_table(table, whole.count(b"\n"), zone)


def _is_number(name: str, line: bytes) -> bool:
    return re.search(rb'"%s"\s*:\s*-?[0-9]' % name.encode(), line) is not None


def _of_table(table: pa.Table, lines: int, zone: tzinfo) -> AccessBatch | None:
    columns: dict[str, Any] = {name: table.column(name).combine_chunks() for name in READ_COLUMNS}
    if len(table) != lines or any(columns[name].null_count for name in REQUEST_COLUMNS):
        return None
    given, decisions = columns[TIMESTAMP], pc.unique(columns[LOGGED_DECISION]).to_pylist()
    columns[TIMESTAMP] = times_of_millis(given) if given.type == pa.int64() else times_of_texts(given, zone)
    if columns[TIMESTAMP].null_count > given.null_count or not DECISIONS.issuperset(decisions):
        return None
    columns[BROKER] = columns[BROKER].cast(pa.string())
    return AccessBatch(rows=pa.record_batch([columns[name] for name in READ_COLUMNS], schema=READ_SCHEMA))


def _is_utf8(block: bytes) -> bool:
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _line_by_line(block: bytes, zone: tzinfo) -> AccessBatch:
    return batch_of(objects_of(block, _once), AccessForm.JSONL, zone)
