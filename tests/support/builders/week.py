"""The estate of docs/how-to/week.md, `python -m tests.support.builders.week`: a log, an access log, files of rules.

A week of November 2026 in which, on Thursday night, a change goes wrong. All of it is the same at every run.
"""

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_OID, UUID, uuid5

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation as Op
from aclog.authorizer.codes import AclPermissionType, PatternType, ResourceType
from aclog.metalog.codec import encode_record
from aclog.metalog.filelog import open_log
from aclog.metalog.records import (
    DelegationTokenRecord,
    FeatureLevelRecord,
    OpaqueRecord,
    RemoveAccessControlEntryRecord,
    UserScramCredentialRecord,
)
from tests.support.builders.acls import acl, acl_record

WEEK = Path(__file__).parents[2] / "data" / "week"
_DENY, _PREFIXED, _GROUP = AclPermissionType.DENY, PatternType.PREFIXED, ResourceType.GROUP

RULES = [
    acl("orders", "User:shop", operation=Op.WRITE),
    acl("orders", "User:billing"),
    acl("orders", "User:reports"),
    acl("payments.", "User:billing", operation=Op.ALL, pattern_type=_PREFIXED),
    acl("payments.us", "User:billing", operation=Op.READ),
    acl("payments.", "User:fraud", pattern_type=_PREFIXED),
    acl("payments.eu", "User:fraud", "10.0.0.9", permission_type=_DENY),
    acl("audit", "User:auditor"),
    acl("audit", "User:security", operation=Op.WRITE),
    acl("clicks", "User:Shop", operation=Op.WRITE),
    acl("legacy-invoices", "User:billing"),
    acl("billing-", "User:billing", resource_type=_GROUP, pattern_type=_PREFIXED),
    acl("reports", "User:reports", resource_type=_GROUP),
    acl("fraud", "User:fraud", resource_type=_GROUP),
    acl("auditor", "User:auditor", resource_type=_GROUP),
    acl("kafka-cluster", "User:ann", operation=Op.ALTER, resource_type=ResourceType.CLUSTER),
    acl("kafka-cluster", "User:ann", operation=Op.DESCRIBE, resource_type=ResourceType.CLUSTER),
]
"""What is there on Monday."""

CONTRACTOR = acl("payments.", "User:contractor", pattern_type=_PREFIXED)
OPEN = acl("orders", "User:*", operation=Op.WRITE)
TOPICS = ("orders", "payments.eu", "payments.us", "audit", "clicks")


def _time(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def _id(what: object) -> UUID:
    return uuid5(NAMESPACE_OID, str(what))


def _add(rule: StandardAcl) -> object:
    return acl_record(_id(rule), rule)


def _remove(rule: StandardAcl) -> object:
    return RemoveAccessControlEntryRecord(id=_id(rule))


def _topic(name: str, *, removed: bool = False) -> OpaqueRecord:
    # TopicRecord (key 2) and RemoveTopicRecord (key 9): frame, key, version, fields, no tagged fields.
    key, named = (9, b"") if removed else (2, bytes([len(name) + 1]) + name.encode())
    return OpaqueRecord(api_key=key, version=0, value=bytes([1, key, 0]) + named + _id(name).bytes + b"\0")


def _user(name: str) -> UserScramCredentialRecord:
    key = _id(name).bytes * 2
    return UserScramCredentialRecord(name=name, mechanism=1, salt=key, stored_key=key, server_key=key, iterations=8192)


def _token(owner: str, expires: str) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=owner,
        requester=owner,
        renewers=(),
        issue_timestamp=_time("2026-11-16T09:30"),
        max_timestamp=_time("2026-12-31T00:00"),
        expiration_timestamp=_time(expires),
        token_id=f"token-of-{owner.partition(':')[2]}",
    )


def _batches() -> dict[str, list[object]]:
    users = ("shop", "billing", "reports", "fraud", "auditor", "security", "ann", "contractor")
    return {
        "2026-11-16T09:00": [FeatureLevelRecord(name="metadata.version", feature_level=30)],
        "2026-11-16T09:01": [_topic(name) for name in (*TOPICS, "legacy-invoices")],
        "2026-11-16T09:05": [_user(name) for name in users],
        "2026-11-16T09:10": [_add(rule) for rule in RULES],
        "2026-11-16T09:30": [_token("User:reports", "2026-11-21T09:30"), _token("User:fraud", "2026-12-20T00:00")],
        "2026-11-18T10:30": [_topic("legacy-invoices", removed=True)],
        "2026-11-19T15:00": [_add(CONTRACTOR)],
        "2026-11-19T22:40": [_remove(RULES[2]), _add(OPEN)],
        "2026-11-20T07:15": [_remove(OPEN)],
    }


def _accesses() -> Iterator[tuple[str, str, str, str, str, str]]:
    for day in range(16, 21):
        yield f"2026-11-{day} 10:00:00,000", "User:shop", "Write", "10.0.0.1", "orders", "Allowed"
        yield f"2026-11-{day} 10:00:01,000", "User:billing", "Read", "10.0.0.2", "orders", "Allowed"
        yield f"2026-11-{day} 10:00:02,000", "User:billing", "Write", "10.0.0.2", "payments.eu", "Allowed"
        yield f"2026-11-{day} 10:00:03,000", "User:fraud", "Read", "10.0.0.3", "payments.us", "Allowed"
        yield f"2026-11-{day} 10:00:04,000", "User:auditor", "Read", "10.0.0.4", "audit", "Allowed"
    yield "2026-11-19 23:00:00,000", "User:reports", "Read", "10.0.0.5", "orders", "Denied"
    yield "2026-11-20 08:00:00,000", "User:fraud", "Read", "10.0.0.9", "payments.eu", "Denied"


def _access_line(when: str, principal: str, operation: str, host: str, topic: str, answer: str) -> str:
    api = "Produce" if operation == "Write" else "Fetch"
    return (
        f"[{when}] INFO Principal = {principal} is {answer} Operation = {operation} from host = {host} on resource = "
        f"Topic:LITERAL:{topic} for request = {api} with resourceRefCount = 1 (kafka.authorizer.logger)\n"
    )


def _access_json(when: str, principal: str, operation: str, host: str, topic: str, answer: str) -> str:
    access = {
        "timestamp": _time(when.replace(",", ".")),
        "principal": principal,
        "host": host,
        "operation": operation.upper(),
        "resourceType": "TOPIC",
        "resourceName": topic,
        "decision": answer.upper(),
    }
    return json.dumps(access) + "\n"


def rule_json(rule: StandardAcl) -> dict[str, str]:
    """Return a rule as `acls list --format jsonl` prints it, without its id."""
    return {
        "resourceType": ResourceType(rule.resource_type).name,
        "resourceName": rule.resource_name,
        "patternType": PatternType(rule.pattern_type).name,
        "principal": rule.principal,
        "host": rule.host,
        "operation": Op(rule.operation).name,
        "permissionType": AclPermissionType(rule.permission_type).name,
    }


def write_week(folder: Path) -> None:
    """Write the estate to a folder."""
    batches = _batches()
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / "log", ignore_errors=True)
    with open_log(folder / "log", create=True, timestamp=_time("2026-11-16T08:59")) as log:
        for when, records in batches.items():
            log.append([encode_record(record) for record in records], timestamp=_time(when)).result(60)
    (folder / "kafka-authorizer.log").write_text("".join(_access_line(*access) for access in _accesses()))
    (folder / "topics.txt").write_text("".join(f"{name}\n" for name in TOPICS))
    (folder / "accesses.jsonl").write_text("".join(_access_json(*access) for access in _accesses()))
    remaining = [rule for rule in RULES if rule is not RULES[2]]
    for name, rules in (
        ("rules", remaining),
        ("pull-request", [*remaining, acl("payments.", "User:reports", pattern_type=_PREFIXED)]),
    ):
        lines = (json.dumps(rule_json(rule)) + "\n" for rule in [*rules, CONTRACTOR])
        (folder / f"{name}.jsonl").write_text("".join(lines))


if __name__ == "__main__":
    write_week(WEEK)
