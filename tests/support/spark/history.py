"""The table of a log made from metalog's own decoder, by one process: what the data source must give, too."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from attrs import frozen
from pyspark.sql import SparkSession

from aclog.authorizer.acl import code_name
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.batches import decode_batch, iter_batches
from aclog.metalog.codec import decode_record
from aclog.metalog.filelog import open_reader
from aclog.metalog.primitives import uuid_text
from aclog.metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from aclog.metalog.text_forms import record_json

_ACL = ("id", "resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")
_SCHEMA = pa.schema(
    [
        ("offset", pa.int64()),
        ("batch_offset", pa.int64()),
        ("batch_end_offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("record_type", pa.string()),
        ("acl", pa.struct([(name, pa.string()) for name in _ACL])),
        ("unknown_codes", pa.bool_()),
        ("descends", pa.bool_()),
    ]
)


def log_bytes(path):
    """All committed batches of a log directory, or the bytes of a checkpoint."""
    if Path(path).is_file():
        return Path(path).read_bytes()
    with open_reader(path) as reader:
        pieces, offset = [], reader.start_offset()
        while offset < reader.high_watermark():
            pieces.append(reader.read(offset))
            offset = [header for _, header in iter_batches(pieces[-1])][-1].end_offset
        return b"".join(pieces)


@frozen
class DecodedLog:
    """What `aclog.pipeline.history.log_table.LogTable` is for the history."""

    spark: SparkSession
    rows: pa.Table
    size: int = 0

    def frame(self, *columns):
        """Some of the columns."""
        return self.spark.createDataFrame(self.table(*columns))

    def table(self, *columns):
        """The same without Spark."""
        return self.rows.select(columns)


def decoded_log(spark, path):
    """The columns that the history needs."""
    data, top, rows = log_bytes(path), -1, []
    for position, header in iter_batches(data):
        for row in _rows(decode_batch(data, position)):
            unknown = "UNKNOWN" in list((row["acl"] or {}).values())
            rows.append(row | {"descends": header.max_timestamp < top, "unknown_codes": unknown})
        top = max(top, header.max_timestamp)
    return DecodedLog(spark, pa.Table.from_pylist(rows, schema=_SCHEMA))


def _rows(batch):
    time = (
        None
        if batch.header.max_timestamp < 0
        else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=batch.header.max_timestamp)
    )
    for record in batch.records:
        decoded = None if batch.header.is_control else decode_record(record.value)
        yield {
            "offset": batch.header.base_offset + record.offset_delta,
            "batch_offset": batch.header.base_offset,
            "batch_end_offset": batch.header.end_offset,
            "leader_epoch": batch.header.leader_epoch,
            "timestamp": time,
            "record_type": "control" if decoded is None else record_json(decoded)["type"],
            "acl": _acl(decoded),
        }


def _acl(record):
    match record:
        case AccessControlEntryRecord():
            return {
                "id": uuid_text(record.id),
                "resourceType": code_name(ResourceType, record.resource_type),
                "resourceName": record.resource_name,
                "patternType": code_name(PatternType, record.pattern_type),
                "principal": record.principal,
                "host": record.host,
                "operation": code_name(AclOperation, record.operation),
                "permissionType": code_name(AclPermissionType, record.permission_type),
            }
        case RemoveAccessControlEntryRecord():
            return {"id": uuid_text(record.id)}
    return None
