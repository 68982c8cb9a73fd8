"""Accesses of a large cluster, most of which a rule decides, and an own loop over all rules as the truth."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.codec import encode_record
from aclog.metalog.filelog import open_log
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from benchmarks import shapes

HOT = "User:hot"
BEGIN_MS = 1_790_000_000_000
_MONTH_MS = 30 * 86_400_000
_HOSTS = 1000
_BATCH = 100
_IMPLIED = {
    "DESCRIBE": {"READ", "WRITE", "DELETE", "ALTER"},
    "DESCRIBE_CONFIGS": {"ALTER_CONFIGS"},
}
"""The operations of a rule that allows which imply another one."""

Access = tuple[str, str, str, str, str]


def write_accesses(
    path: Path, acls: Sequence[StandardAcl], rows: int, *, distinct: int, files: int = 4, hot: float = 0
) -> Path:
    """Write accesses in plain Parquet files, from so many distinct ones; `hot`: the share of rows of one principal.

    With as many distinct ones as rows, each occurs once; with fewer, some occur much more often than others.
    """
    path.mkdir(parents=True)
    draw = np.random.default_rng(11)
    columns = [pa.array(column) for column in zip(*_distinct(acls, distinct, hot), strict=True)]
    shuffled = draw.permutation(distinct)
    for file in range(files):
        count = rows // files
        if distinct == rows:
            chosen = shuffled[file * count : (file + 1) * count]
        else:
            chosen = shuffled[(draw.random(count) ** 3 * distinct).astype(np.int64)]
        when = np.sort(draw.integers(BEGIN_MS, BEGIN_MS + _MONTH_MS, count)) * 1000
        texts = [column.take(pa.array(chosen)) for column in columns]
        table = pa.table([*texts, pa.array(when, pa.timestamp("us", "UTC"))], names=[*REQUEST_COLUMNS, "timestamp"])
        pq.write_table(table, path / f"{file:05d}.parquet", row_group_size=1 << 20)
    return path


def _distinct(acls: Sequence[StandardAcl], count: int, hot: float) -> Iterator[Access]:
    """Yield accesses that a rule is about (70 %), of another principal, or of a name without rules."""
    draw = np.random.default_rng(12)
    rules, others, hosts, versions = (
        draw.integers(0, size, count).tolist() for size in (len(acls), len(acls), _HOSTS, 8)
    )
    for rule, other, host, version, kind, heat in zip(
        rules, others, hosts, versions, draw.random(count).tolist(), draw.random(count).tolist(), strict=True
    ):
        acl = acls[rule]
        name = f"{acl.resource_name}.v{version}" if acl.pattern_type == PatternType.PREFIXED else acl.resource_name
        principal = acl.principal if kind < 0.7 else acls[other].principal
        if kind > 0.9:
            name = f"nowhere.{rule}"
        operation = AclOperation.DESCRIBE if acl.operation == AclOperation.READ and version == 0 else acl.operation
        yield (
            HOT if heat < hot else principal,
            f"10.0.{host // 256}.{host % 256}",
            AclOperation(operation).name,
            ResourceType(acl.resource_type).name,
            name,
        )


def with_hot(acls: Sequence[StandardAcl]) -> list[StandardAcl]:
    """Return the rules, a tenth of them those of the hot principal."""
    return [
        StandardAcl(
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            pattern_type=acl.pattern_type,
            principal=HOT if number % 10 == 0 else acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )
        for number, acl in enumerate(acls)
    ]


def decided(acls: Sequence[StandardAcl], access: Access) -> str:
    """Return ALLOWED or DENIED, by a loop over all rules that shares nothing with aclog's engine."""
    principal, host, operation, kind, name = access
    is_allowed = False
    for acl in acls:
        if acl.resource_type != ResourceType[kind] or acl.principal not in (principal, "User:*"):
            continue
        if acl.pattern_type == PatternType.PREFIXED:
            is_match = name.startswith(acl.resource_name)
        else:
            is_match = acl.resource_name in (name, "*")
        if not is_match or acl.host not in (host, "*"):
            continue
        denies = acl.permission_type == AclPermissionType.DENY
        of_rule = AclOperation(acl.operation).name
        implied = set() if denies else _IMPLIED.get(operation, set())
        if of_rule not in {"ALL", operation, *implied}:
            continue
        if denies:
            return "DENIED"
        is_allowed = True
    return "ALLOWED" if is_allowed else "DENIED"


def write_log(directory: Path, acls: Sequence[StandardAcl], changes: int = 0) -> Path:
    """Write a log that adds these rules, and then removes the oldest one and adds one in turn."""
    with open_log(directory, create=True) as log:
        values: list[bytes] = []
        for number, acl in enumerate(acls):
            values.append(encode_record(shapes.record(shapes.with_id(number, acl))))
        for number in range(changes):
            at = number // 2
            if number % 2:
                again = StandardAclWithId(id=shapes.id_of(len(acls) + at), acl=acls[at % len(acls)])
                values.append(encode_record(shapes.record(again)))
            else:
                values.append(encode_record(RemoveAccessControlEntryRecord(id=shapes.id_of(at))))
        for start in range(0, len(values), _BATCH):
            pending = log.append(values[start : start + _BATCH], timestamp=BEGIN_MS - 1_000_000 + start)
        pending.result(300)
    return directory
