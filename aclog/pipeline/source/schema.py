"""The schema of a metadata log as a table, in Arrow; Spark's types are derived from it."""

from collections.abc import Sequence

import pyarrow as pa

from aclog.usage.arrow.acl_structs import ACL_TYPE

TIME = pa.timestamp("us", tz="UTC")

SCRAM_TYPE = pa.struct([("name", pa.string()), ("mechanism", pa.string()), ("iterations", pa.int32())])
"""A SCRAM credential without salt and keys. A removal has no iterations."""

TOKEN_TYPE = pa.struct(
    [
        ("tokenId", pa.string()),
        ("owner", pa.string()),
        ("requester", pa.string()),
        ("renewers", pa.list_(pa.field("element", pa.string()))),
        ("issueTimestamp", TIME),
        ("expirationTimestamp", TIME),
        ("maxTimestamp", TIME),
    ]
)
"""A delegation token; its record has no HMAC. A removal only has the id."""

_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("offset", pa.int64()),
    ("batch_offset", pa.int64()),
    ("batch_end_offset", pa.int64()),
    ("leader_epoch", pa.int32()),
    ("timestamp", TIME),
    ("record_type", pa.string()),
    ("version", pa.int32()),
    ("acl", ACL_TYPE),
    ("scram", SCRAM_TYPE),
    ("token", TOKEN_TYPE),
    ("opaque", pa.binary()),
    ("damage", pa.string()),
]

LOG_SCHEMA = pa.schema(_COLUMNS)
"""One row per record; `batch_offset` is the first offset of its batch, `batch_end_offset` the one after its last, and
`timestamp` its max timestamp, null if it has none (-1).

`record_type` is the name that `aclog log dump` prints. `opaque` is the value of any other record, such as a topic's.
`damage` is only set in a row of type DAMAGED, which stands for bytes that were set aside.
"""

DAMAGED = "DAMAGED"
"""The record type of a row that stands for unreadable bytes or lost records."""


def columns_of(names: Sequence[str]) -> pa.Schema:
    """Return the schema with these columns only, in this order. Raises KeyError: an unknown column."""
    return pa.schema([LOG_SCHEMA.field(name) for name in names])


def damage_row(schema: pa.Schema, offset: int, text: str) -> pa.RecordBatch:
    """Return the row that stands for a damaged range: its first missing offset, and what is wrong and where."""
    said = {"offset": offset, "record_type": DAMAGED, "damage": text}
    return pa.RecordBatch.from_pylist([{name: said.get(name) for name in schema.names}], schema=schema)
