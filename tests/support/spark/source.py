"""What the table of a log must hold, said from `aclog log dump --json` alone; and the pure reader, without Spark."""

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pyarrow as pa

from aclog.authorizer.acl import code_name
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.cli.log import dump_rows
from aclog.metalog.batches import decode_batch, iter_batches
from aclog.pipeline.source.directory import Query, plan, read_options, read_range
from aclog.pipeline.source.rows import LOG_SCHEMA, RowSelection
from aclog.terminal.columns import json_text

DATA = Path(__file__).parents[2] / "data"
LOGS = tuple(sorted(DATA.glob("kafka-*/__cluster_metadata-0")))
CHECKPOINTS = tuple(sorted(DATA.glob("kafka-*/__cluster_metadata-0/*.checkpoint")))
_NAMES = ("resourceType", "patternType", "operation", "permissionType")
_KINDS = dict(zip(_NAMES, (ResourceType, PatternType, AclOperation, AclPermissionType), strict=True))
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_INTERPRETED = ("ACCESS_CONTROL", "SCRAM", "TOKEN", "FEATURE_LEVEL", "NO_OP", "_TRANSACTION_RECORD", "BROKER")


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[dict]:
    """Rows as dictionaries."""
    return [row for batch in batches for row in batch.to_pylist()]


def read_rows(
    path: Path, selection: RowSelection | None = None, schema: pa.Schema = LOG_SCHEMA, **options: object
) -> list[dict]:
    """The rows of a path by the planner and the reader, as Spark would call them."""
    parsed = read_options({"path": str(path)} | {name: str(value) for name, value in options.items()})
    query = Query(selection=selection or RowSelection(), schema=schema, set_aside=parsed.set_aside)
    return [row for place in plan(parsed, query.selection) for row in rows_of(read_range(place, query))]


def expected_rows(paths: Iterable[Path]) -> list[dict]:
    """What the table must hold of these files, in their order."""
    rows = (
        (_row(json.loads(line), bounds), path) for path in paths for bounds in [_bounds(path)] for line in dumped(path)
    )
    return [row | _of_broker(row, path) for row, path in rows]


def dumped(path: Path) -> Iterator[str]:
    """The lines of `aclog log dump --json`."""
    return map(json_text, dump_rows([path], show_secrets=False))


def segments(directory: Path) -> list[Path]:
    """The segments of a log."""
    return sorted(directory.glob("*.log"))


def _bounds(path: Path) -> dict[int, tuple[int, int]]:
    by_offset = {}
    for _, header in iter_batches(path.read_bytes()):
        bounds = (header.base_offset, header.end_offset)
        by_offset |= dict.fromkeys(range(*bounds), bounds)
    return by_offset


@cache
def _values(path: Path) -> dict[int, bytes]:
    data = path.read_bytes()
    batches = (decode_batch(data, position) for position, _ in iter_batches(data))
    return {batch.header.base_offset + each.offset_delta: each.value for batch in batches for each in batch.records}


def _of_broker(row: dict, path: Path) -> dict:
    """A record of a broker is shown as its bytes, though it is decoded."""
    return {"opaque": _values(path)[row["offset"]]} if "BROKER" in row["record_type"] else {}


def _row(record: dict, bounds: dict[int, tuple[int, int]]) -> dict:
    kind, data = record["type"], record["data"]
    row = {
        "offset": record["offset"],
        "batch_offset": bounds[record["offset"]][0],
        "batch_end_offset": bounds[record["offset"]][1],
        "leader_epoch": record["leaderEpoch"],
        "timestamp": time_of(record["timestamp"]),
        "record_type": kind,
        "version": record["version"],
        "acl": _acl(data) if "ACCESS_CONTROL" in kind else None,
        "scram": _scram(data) if "SCRAM" in kind else None,
        "token": _token(data) if "TOKEN" in kind else None,
        "opaque": None,
        "damage": None,
    }
    if kind.isupper() and not kind.startswith("UNKNOWN_-") and not any(each in kind for each in _INTERPRETED):
        row["opaque"] = None if data["base64"] == "***" else b64decode(data["base64"])
    return row


def _acl(data: dict) -> dict:
    names = ("id", "resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")
    row = dict.fromkeys(names) | data
    return row | {name: code_name(_KINDS[name], data[name]) for name in _NAMES if name in data}


def _scram(data: dict) -> dict:
    return {
        "name": data["name"],
        "mechanism": _MECHANISMS.get(data["mechanism"], "UNKNOWN"),
        "iterations": data.get("iterations"),
    }


def _token(data: dict) -> dict:
    texts = {name: data.get(name) for name in ("tokenId", "owner", "requester", "renewers")}
    times = ("issueTimestamp", "expirationTimestamp", "maxTimestamp")
    return texts | {name: time_of(data.get(name, -1)) for name in times}


def time_of(millis: int) -> datetime | None:
    """A timestamp of the table."""
    return None if millis == -1 else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)
