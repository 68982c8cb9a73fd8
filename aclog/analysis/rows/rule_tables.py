"""The ACLs of an index as an Arrow table or a data frame, made of its columns: no object per ACL."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aclog.analysis.rows.report import Kind, arrow_table, arrow_types, pandas_frame, pandas_module, pyarrow_module
from aclog.authorizer.acl import StandardAclWithId, rule_fields
from aclog.authorizer.index.rule_columns import RuleColumns, TextColumn
from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import uuid_text

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

RULE_KINDS = dict.fromkeys(
    ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType", "id"), Kind.TEXT
)
"""The columns of ACLs."""

_CHUNK = 1 << 16
"""Rows of one chunk: Arrow's text has at most 2 GiB, and a name or a principal at most 32 KiB."""


def rule_cells(rule: StandardAclWithId) -> Sequence[str | None]:
    """Return the cells of an ACL under RULE_KINDS."""
    return (*rule_fields(rule), None if rule.id is None else uuid_text(rule.id))


def rules_arrow(columns: RuleColumns) -> "pa.Table":
    """Return ACLs as an Arrow table with the columns RULE_KINDS.

    Raises:
        ConfigError: pyarrow is not installed.
        DecodeError: a text in the index is not UTF-8.

    """
    arrow = pyarrow_module()
    arrays = [_texts(column) for column in columns.fields]
    schema = arrow.schema(arrow_types(RULE_KINDS))
    batches = []
    size = len(columns.fields[0].numbers)
    for low in range(0, size, _CHUNK):
        high = min(low + _CHUNK, size)
        texts = [
            array.take(arrow.array(column.numbers[low:high])).cast(arrow.string())
            for array, column in zip(arrays, columns.fields, strict=True)
        ]
        batches.append(arrow.record_batch([*texts, _ids(columns, low, high)], schema=schema))
    table: pa.Table = arrow.Table.from_batches(batches, schema=schema)
    if columns.added:
        table = arrow.concat_tables([table, arrow_table(RULE_KINDS, map(rule_cells, columns.added))])
    return table


def rules_pandas(columns: RuleColumns) -> "pd.DataFrame":
    """Return the same as a data frame. Raises ConfigError: pandas is not installed."""
    pd = pandas_module()
    frame = pd.DataFrame(dict(zip(RULE_KINDS, _objects(columns), strict=True)), columns=list(RULE_KINDS))
    if not columns.added:
        return frame
    return pd.concat([frame, pandas_frame(RULE_KINDS, map(rule_cells, columns.added))], ignore_index=True)


def rule_rows(columns: RuleColumns) -> list[tuple[str | None, ...]]:
    """Return the cells of each ACL, as rule_cells."""
    rows = list(zip(*(column.tolist() for column in _objects(columns)), strict=True))
    return rows + [tuple(rule_cells(rule)) for rule in columns.added]


def _objects(columns: RuleColumns) -> Iterator[Any]:
    """Yield arrays of objects: the columns RULE_KINDS of the ACLs in columns."""
    for column in columns.fields:
        yield np.array([text.decode() for text in column.texts.values()], object)[column.numbers]
    if columns.ids is None:
        yield np.full(len(columns.fields[0].numbers), None, object)
    else:
        yield columns.ids.view(f"S{columns.ids.shape[1]}").ravel().astype(str).astype(object)


def _texts(column: TextColumn) -> Any:
    pa = pyarrow_module()
    texts = column.texts
    array = pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(texts.offsets), pa.py_buffer(texts.data))
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise DecodeError("a name in the index is not UTF-8") from error
    return array


def _ids(columns: RuleColumns, low: int, high: int) -> Any:
    pa = pyarrow_module()
    if columns.ids is None:
        return pa.nulls(high - low, pa.string())
    ids = columns.ids[low:high]
    offsets = np.arange(len(ids) + 1, dtype=np.int32) * np.int32(ids.shape[1])
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(ids.reshape(-1)))
