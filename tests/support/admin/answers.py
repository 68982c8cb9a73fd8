"""Responses in a form in which two servers can be compared."""

import dataclasses
import datetime as dt
import enum
import hashlib
import json
import re
import uuid
from itertools import groupby
from typing import Any

from tests.support.nodes.barrier import NAME
from tests.support.nodes.server_properties import Ports

FETCH, API_VERSIONS, DESCRIBE_SCRAM, ALTER_SCRAM = 1, 18, 50, 51
LISTED_APIS = (3, 17, 18, 29, 30, 31, 36, 48, 51, 55, 59, 60)
"""Whose versions are compared: not those of topics, which aclog has none of; not Envelope's (58), whose version 1 is
KIP-801's and aclog's; not DescribeUserScramCredentials (50), which Kafka's controllers list and never answer."""
LEFT_OUT = frozenset(
    {
        "throttle_time",
        "finalized_features_epoch",
        "zk_migration_ready",
        "leader_epoch",
        "high_watermark",
        "log_end_offset",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
        "replica_directory_id",
    }
)
"""What differs from run to run, or from server to server with good reason (throttling, which aclog does not do)."""
SORTED = frozenset(
    ("resources", "acls", "matching_acls", "brokers", "mechanisms", "nodes", "listeners", "credential_infos", "topics")
)
"""Lists whose order means nothing."""
LONG = 12
"""A run of equal entries at least this long is kept as one entry and a count."""
HUGE = 1000
"""A longer list is kept as its length and a digest."""
REQUEST = re.compile(r"Request Request\(.*\) needs ", re.DOTALL)
"""How Kafka puts its own request object into a message."""


def comparable(api_key: int, message: Any, ports: Ports) -> Any:
    """A response as JSON values."""
    fields = _plain(message, {ports.broker: "BROKER", ports.controller: "CONTROLLER"})
    if api_key == API_VERSIONS:
        return _api_versions(fields)
    if api_key == FETCH:
        return _fetch(fields)
    if api_key in (DESCRIBE_SCRAM, ALTER_SCRAM):
        fields["results"].sort(key=json.dumps)
    return fields


def _plain(value: Any, ports: dict[int, str]) -> Any:
    if dataclasses.is_dataclass(value):
        return {
            field.name: _field(field.name, getattr(value, field.name), ports)
            for field in dataclasses.fields(value)
            if field.name not in LEFT_OUT
        }
    if isinstance(value, tuple):
        return [_plain(entry, ports) for entry in value]
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, uuid.UUID | dt.timedelta | dt.datetime):
        return str(value)
    return REQUEST.sub("Request Request(...) needs ", value) if isinstance(value, str) else value


def _field(name: str, value: Any, ports: dict[int, str]) -> Any:
    plain = _plain(value, ports)
    if name == "port":
        return ports.get(plain, plain)
    if not isinstance(plain, list):
        return plain
    if name in ("resources", "matching_acls"):
        plain = [entry for entry in plain if not entry["resource_name"].startswith(NAME)]  # the script's own
    if name in SORTED:
        plain = sorted(plain, key=lambda entry: json.dumps(entry, ensure_ascii=False))
    if len(plain) > HUGE and len(short := _runs(plain)) > HUGE:
        return {"length": len(plain), "sha256": hashlib.sha256(json.dumps(short).encode()).hexdigest()}
    return _runs(plain)


def _runs(entries: list[Any]) -> list[Any]:
    """Long runs of equal entries, shortened."""
    runs: list[Any] = []
    for entry, group in groupby(entries):
        count = len(list(group))
        runs += [{"times": count, "entry": entry}] if count >= LONG else [entry] * count
    return runs


def _api_versions(fields: dict[str, Any]) -> dict[str, Any]:
    """The versions of the APIs that matter, and of the one feature that does."""
    ranges = {entry["api_key"]: [entry["min_version"], entry["max_version"]] for entry in fields["api_keys"]}
    fields["api_keys"] = {str(key): ranges[key] for key in LISTED_APIS if key in ranges}
    for name in ("supported_features", "finalized_features"):
        if fields.get(name) is not None:
            fields[name] = [entry for entry in fields[name] if entry["name"] == "metadata.version"]
    return fields


def _fetch(fields: dict[str, Any]) -> dict[str, Any]:
    """The errors, at the top and of each partition."""
    responses = [[part["error_code"] for part in topic["partitions"]] for topic in fields["responses"]]
    return {"error_code": fields.get("error_code"), "partitions": responses}
