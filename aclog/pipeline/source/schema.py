"""The columns of the table that a metadata log is read as, as Arrow has them (Spark's types follow from these)."""

from collections.abc import Sequence

import pyarrow as pa

TIME = pa.timestamp("us", tz="UTC")

ACL_FIELDS = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")
"""The fields of an ACL without its id, in the order of Kafka's StandardAcl."""

ACL_TYPE = pa.struct([(name, pa.string()) for name in ("id", *ACL_FIELDS)])
"""A rule, enum names in upper case, the id in Kafka's 22 characters; of a removal the id alone."""

SCRAM_TYPE = pa.struct([("name", pa.string()), ("mechanism", pa.string()), ("iterations", pa.int32())])
"""A SCRAM credential without salt and keys; of a removal iterations are null."""

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
"""A delegation token (its record holds no HMAC); of a removal the id alone."""

_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("offset", pa.int64()),
    ("batch_offset", pa.int64()),
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
"""One row a record; `timestamp` is the batch's max timestamp, null where the log has none (-1).

`record_type` is the name that `aclog log dump` prints. `opaque` is the whole value of a record that is not interpreted.
`damage` is null but in a row of type DAMAGED, which stands for bytes that were set aside.
"""

DAMAGED = "DAMAGED"
"""The record type of a row that stands for what could not be read."""


def columns_of(names: Sequence[str]) -> pa.Schema:
    """The table with these columns only, in this order; a KeyError for a name that it does not have."""
    return pa.schema([LOG_SCHEMA.field(name) for name in names])


def damage_row(schema: pa.Schema, offset: int, text: str) -> pa.RecordBatch:
    """The one row that stands for a damaged range: the first offset that is missing, and what is wrong where."""
    said = {"offset": offset, "record_type": DAMAGED, "damage": text}
    return pa.RecordBatch.from_pylist([{name: said.get(name) for name in schema.names}], schema=schema)
