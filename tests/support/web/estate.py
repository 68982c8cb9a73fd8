"""A cluster's log for the console's questions: rules of last year, one of its March, and a change of last night."""

import json
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation as Op
from aclog.authorizer.codes import AclPermissionType, PatternType, ResourceType
from aclog.metalog.codec import encode_record
from aclog.metalog.filelog import open_log
from aclog.metalog.records import FeatureLevelRecord, RemoveAccessControlEntryRecord
from tests.support.builders.acls import acl, acl_record
from tests.support.builders.week import rule_json
from tests.support.processes.waiting import SECONDS

PREFIXED, DENY = PatternType.PREFIXED, AclPermissionType.DENY
CONTRACTOR = acl("pii-customers", "User:contractor")
REPORTS = acl("orders", "User:reports")
OPEN = acl("orders", "User:*", operation=Op.WRITE)
RULES = (
    acl("orders", "User:shop", operation=Op.WRITE),
    acl("orders", "User:billing"),
    REPORTS,
    acl("payments.", "User:billing", operation=Op.ALL, pattern_type=PREFIXED),
    acl("payments.", "User:fraud", pattern_type=PREFIXED),
    acl("payments.eu", "User:fraud", "10.0.0.9", permission_type=DENY),
    acl("payments.us", "User:billing"),
    acl("pii-", "User:audit", pattern_type=PREFIXED),
    acl("pii-customers", "User:crm", permission_type=DENY),
    acl("clicks", "User:Shop", operation=Op.WRITE),
    acl("reports", "User:reports", resource_type=ResourceType.GROUP),
    acl("billing-", "User:billing", resource_type=ResourceType.GROUP, pattern_type=PREFIXED),
    acl("kafka-cluster", "User:ann", operation=Op.DESCRIBE, resource_type=ResourceType.CLUSTER),
)
"""What is there from the beginning."""


TESTS = """tests:
- name: only audit reads personal data
  who_can: {READ topic:pii-*: [User:audit]}
"""
"""Tests of the estate's rules, which pass."""
NEW_RULE = "ALLOW User:mail READ on TOPIC PREFIXED 'pii-' from *"
"""A rule with which they fail."""
PULL_REQUEST = (
    json.dumps({"action": "ADD", "rule": rule_json(acl("clicks", "User:search"))})
    + "\n"
    + json.dumps({"action": "REMOVE", "rule": rule_json(RULES[1])})
    + "\n"
)
"""A file of changes, as `aclog diff` prints them."""
_USED = (
    ("User:shop", "WRITE", "orders"),
    ("User:billing", "READ", "orders"),
    ("User:billing", "WRITE", "payments.eu"),
    ("User:fraud", "READ", "payments.us"),
    ("User:audit", "READ", "pii-customers"),
)


MARCH = "2025-03-15"
"""A day on which the contractor had access."""


def write_estate(folder: Path, now: datetime | None = None) -> Path:
    """Write the log to a folder, and return it."""
    # After yesterday 18:00 of every time in the next four hours, whatever midnights those cross.
    night = (now or datetime.now(UTC)) - timedelta(hours=2)
    year = int(MARCH[:4])
    batches = (
        (datetime(year, 1, 10, 9, tzinfo=UTC), [FeatureLevelRecord(name="metadata.version", feature_level=30)]),
        (datetime(year, 1, 10, 10, tzinfo=UTC), [added(rule) for rule in RULES]),
        (datetime(year, 3, 2, 10, tzinfo=UTC), [added(CONTRACTOR)]),
        (datetime(year, 4, 2, 10, tzinfo=UTC), [_remove(CONTRACTOR)]),
        (night, [_remove(REPORTS), added(OPEN)]),
    )
    write_batches(folder, batches)
    return folder


def write_accesses(path: Path, now: datetime | None = None) -> Path:
    """Write what the clients of the estate did on each of the last hundred days to a file, and return it."""
    now = now or datetime.now(UTC)
    with path.open("w", encoding="utf-8") as lines:
        for days in range(100, -1, -1):
            for principal, operation, topic in _USED:
                access = {
                    "timestamp": int((now - timedelta(days=days)).timestamp() * 1000), "principal": principal,
                    "host": "10.0.0.1", "operation": operation, "resourceType": "TOPIC", "resourceName": topic,
                    "decision": "ALLOWED",
                }  # fmt: skip
                lines.write(json.dumps(access) + "\n")
    return path


def write_rules(folder: Path, rules: Iterable[StandardAcl]) -> Path:
    """Write a log with these rules alone to a folder, and return it."""
    write_batches(folder, [(datetime(2026, 1, 10, 9, tzinfo=UTC), [added(rule) for rule in rules])])
    return folder


def write_batches(folder: Path, batches: Iterable[tuple[datetime, list[object]]]) -> None:
    """Write a log of batches to a folder."""
    times = [(int(when.timestamp() * 1000), records) for when, records in batches]
    with open_log(folder, create=True, timestamp=times[0][0]) as log:
        for when, records in times:
            log.append([encode_record(record) for record in records], timestamp=when).result(SECONDS)


def append(folder: Path, *, add: Iterable[StandardAcl] = (), remove: Iterable[StandardAcl] = ()) -> None:
    """Append one batch of changes to a log."""
    records = [*map(_remove, remove), *map(added, add)]
    with open_log(folder) as log:
        log.append([encode_record(each) for each in records], timestamp=time.time_ns() // 1_000_000).result(SECONDS)


def added(rule: StandardAcl) -> object:
    """Return the record that adds a rule; its id is made of the rule."""
    return acl_record(uuid5(NAMESPACE_OID, repr(rule)), rule)


def _remove(rule: StandardAcl) -> object:
    return RemoveAccessControlEntryRecord(id=uuid5(NAMESPACE_OID, repr(rule)))
