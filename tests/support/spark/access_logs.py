"""Lines and files of access logs for tests."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa


def audit_text(
    *, time: str = "2026-11-21 10:00:00,123", principal: str = "User:a", host: str = "10.0.0.1", name: str = "zz"
) -> str:
    """A line of kafka-authorizer.log as Kafka 4.3.1 writes it."""
    return (
        f"[{time}] INFO Principal = {principal} is Denied operation = READ from host = {host} on resource = "
        f"Topic:LITERAL:{name} for request = Produce with resourceRefCount = 3 based on rule DefaultDeny "
        "(kafka.authorizer.logger)"
    )


def lines_of(path: Path) -> list[bytes]:
    """The lines of a file, as a line feed ends them."""
    text = path.read_bytes()
    return text.removesuffix(b"\n").split(b"\n") if text else []


def batch_of(lines: Iterable[str | bytes]) -> pa.RecordBatch:
    """Lines as Spark hands them over, with a time that is always there."""
    data = [line if isinstance(line, bytes) else line.encode() for line in lines]
    array = pa.array(data, pa.binary())
    # Spark's text need not be UTF-8: the bytes are taken for text unseen.
    values = pa.StringArray.from_buffers(len(data), *array.buffers()[1:])
    return pa.RecordBatch.from_pydict(
        {
            "value": values,
            "file": pa.array(["file:/logs/kafka-authorizer.log"] * len(data)),
            "timestamp": pa.array([datetime(2026, 11, 21, 10, tzinfo=UTC)] * len(data), pa.timestamp("us", tz="UTC")),
        }
    )
