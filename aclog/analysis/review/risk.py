"""Which rows of a change a person should read first."""

from typing import TypeAlias

from aclog.analysis.regions.names import Literal
from aclog.analysis.regions.region import Direction
from aclog.analysis.rows.row_report import ReportRow
from aclog.authorizer.acl import AclPermissionType, ResourceType, StandardAcl

_NARROW = 1 << 15
"""Longer than any name: a single name is narrower than each prefix."""

Risk: TypeAlias = tuple[bool, bool, bool, bool, int, int, int]


def risk(report: ReportRow) -> Risk:
    """Return the key by which rows are sorted, the riskiest first.

    Names that can exist, what a DENY kept or keeps from somebody, everyone, the cluster, accesses that flip, topics
    that exist, short prefixes: in this order. A guess: it decides on what is read first, not on what is told.
    """
    row = report.row
    deciding = row.before if row.directions[0] is Direction.GAINED else row.after
    return (
        not row.legal,
        not is_deny(deciding),
        not row.principals.complement,
        all(clause.resource_type != ResourceType.CLUSTER for clause in row.clauses),
        -(report.accesses or 0),
        -(report.topics or 0),
        min(
            _NARROW if isinstance(part, Literal) else len(part.prefix)
            for clause in row.clauses
            for part in clause.names
        ),
    )


def is_deny(decided: StandardAcl | str | None) -> bool:
    """Return whether a rule of DENY decided."""
    return isinstance(decided, StandardAcl) and decided.permission_type == AclPermissionType.DENY
