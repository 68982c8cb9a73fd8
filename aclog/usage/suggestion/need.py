"""What accesses need: each allowed one, with how often and when it was made."""

from collections.abc import Iterable, Mapping
from typing import Self

import numpy as np
import pyarrow as pa
from attrs import frozen

from aclog.authorizer.acl import AclOperation, ResourceType
from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.settings import Settings
from aclog.metalog.vectors import Bools
from aclog.usage.decisions.accesses import REQUEST_COLUMNS, Access, ParsedAccess, parse_access
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer
from aclog.usage.decisions.decision_codes import ALLOWED
from aclog.usage.decisions.rules import Rules
from aclog.usage.undecided import UNDECIDED, undecided
from aclog.usage.unread import UnreadAccesses

_OWNING: Mapping[int, int] = {
    ResourceType.TOPIC: AclOperation.WRITE,
    ResourceType.GROUP: AclOperation.READ,
    ResourceType.TRANSACTIONAL_ID: AclOperation.WRITE,
}
"""The operation by which a principal makes a resource its own, by resource type."""


@frozen(kw_only=True)
class Evidence:
    """How often something was done, and the first and the last time, in us since 1970; None if no time is known."""

    accesses: int
    first: int | None
    last: int | None

    @classmethod
    def sum_of(cls, parts: Iterable[Self]) -> Self:
        """Return the sum of several."""
        found = list(parts)
        return cls(
            accesses=sum(part.accesses for part in found),
            first=min((part.first for part in found if part.first is not None), default=None),
            last=max((part.last for part in found if part.last is not None), default=None),
        )


@frozen(kw_only=True)
class Needs:
    """What the accesses of a log need."""

    by_access: Mapping[ParsedAccess, Evidence]
    """The accesses that a rule allows."""
    names: Mapping[int, Mapping[str, frozenset[str]]]
    """By resource type: the names that exist, as far as accesses tell, denied ones too, and who made them their own:
    wrote to a topic or with a transactional id, or read with a group."""
    denied: int
    """Accesses, as often as they were made, that no rule allows, for which there is nothing to keep."""
    undecided: UnreadAccesses
    """Accesses that cannot be decided, which may need any rule of their principals."""

    @classmethod
    def of(cls, counted: pa.Table, rules: Rules, settings: Settings) -> Self:
        """Judge distinct accesses (COUNTED) by the last version of the rules."""
        columns = [counted.column(name) for name in REQUEST_COLUMNS]
        codes = BulkAuthorizer.of(rules.intervals, settings).decide(columns)
        by_rule, allowed = _allowed(codes, rules)
        unknown = undecided(counted, codes).but_of(settings.super_users)
        counts = np.asarray(counted.column("count"))
        times = (counted.column(name).to_pylist() for name in ("first", "last"))
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        found: dict[ParsedAccess, list[Evidence]] = {}
        names: dict[int, dict[str, set[str]]] = {}
        for row, ruled, is_allowed, count, first, last in zip(
            rows, by_rule.tolist(), allowed.tolist(), counts.tolist(), *times, strict=True
        ):
            access = parse_access(Access(*row))
            if not isinstance(access, ParsedAccess):
                continue
            _see(access, names, is_allowed=is_allowed)
            if ruled:
                found.setdefault(access, []).append(_evidence(count, first, last))
        return cls(
            by_access={access: Evidence.sum_of(parts) for access, parts in found.items()},
            names={kind: {name: frozenset(who) for name, who in each.items()} for kind, each in names.items()},
            denied=int(counts[~allowed & ~np.isin(codes, UNDECIDED)].sum()),
            undecided=unknown,
        )


def _allowed(codes: Int32s, rules: Rules) -> tuple[Bools, Bools]:
    """Return which accesses a rule allows, and which are allowed at all."""
    allows = np.asarray(rules.table.column("permissionType").to_numpy()) == "ALLOW"
    by_rule = np.zeros(len(codes), np.bool_)
    by_rule[codes >= 0] = allows[codes[codes >= 0]]
    return by_rule, by_rule | np.isin(codes, list(ALLOWED))


def _see(access: ParsedAccess, names: dict[int, dict[str, set[str]]], *, is_allowed: bool) -> None:
    owners = names.setdefault(access.resource_type, {}).setdefault(access.resource_name, set())
    if is_allowed and access.operation == _OWNING.get(access.resource_type):
        owners.add(access.principal)


def _evidence(count: int, first: int, last: int) -> Evidence:
    # a first time that is later than the last one stands for none (AccessCounter.add_timeless)
    known = first <= last
    return Evidence(accesses=count, first=first if known else None, last=last if known else None)
