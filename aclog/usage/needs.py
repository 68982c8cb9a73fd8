"""Needs: each distinct access of a log that an ACL allows, in columns, with its count and times."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa

from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.index.layout import Int32s, changes
from aclog.authorizer.settings import Settings
from aclog.metalog.columns import Bools, Int64s
from aclog.metalog.values import frozen
from aclog.usage.decisions.access_columns import AccessColumns, parse_columns
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer
from aclog.usage.decisions.decisions import ALLOWED, REQUEST_COLUMNS, UNRESOLVED, ParsedAccess
from aclog.usage.decisions.intervals import Rules
from aclog.usage.simulation import Decided
from aclog.usage.undecided import UNDECIDED, undecided
from aclog.usage.window import UnreadAccesses

_OWNING: Mapping[int, int] = {
    ResourceType.TOPIC: AclOperation.WRITE,
    ResourceType.GROUP: AclOperation.READ,
    ResourceType.TRANSACTIONAL_ID: AclOperation.WRITE,
}
"""The operation that makes a principal an owner of a resource, by resource type."""


@frozen(kw_only=True)
class Evidence:
    """The number of accesses, and the first and the last time, in us since 1970; None if no time is known."""

    accesses: int
    first: int | None
    last: int | None

    @classmethod
    def sum_of(cls, parts: Iterable[Self]) -> Self:
        """Return the sum of several."""
        evidence = list(parts)
        if len(evidence) == 1:
            return evidence[0]
        return cls(
            accesses=sum(part.accesses for part in evidence),
            first=min((part.first for part in evidence if part.first is not None), default=None),
            last=max((part.last for part in evidence if part.last is not None), default=None),
        )


@frozen(eq=False)
class Evidences:
    """Evidence by row."""

    accesses: Int64s
    first: Int64s
    last: Int64s
    """In us since 1970; before `first` if no time is known."""

    def one(self, at: int) -> Evidence:
        """Return that of a row."""
        first, last = int(self.first[at]), int(self.last[at])
        # a first time later than the last one means that there is no time (AccessCounter.add_timeless)
        timed = first <= last
        return Evidence(accesses=int(self.accesses[at]), first=first if timed else None, last=last if timed else None)

    def take(self, rows: Int64s) -> Self:
        """Return that of some rows."""
        return type(self)(self.accesses[rows], self.first[rows], self.last[rows])

    def sums(self, starts: Int64s) -> Self:
        """Return the sum of each run of rows; `starts` is the first row of each."""
        if not len(starts):
            return self
        return type(self)(
            np.add.reduceat(self.accesses, starts),
            np.minimum.reduceat(self.first, starts),
            np.maximum.reduceat(self.last, starts),
        )

    def objects(self) -> list[Evidence]:
        """Return all as objects."""
        columns = (self.accesses.tolist(), self.first.tolist(), self.last.tolist())
        return [
            Evidence(accesses=accesses, first=first if first <= last else None, last=last if first <= last else None)
            for accesses, first, last in zip(*columns, strict=True)
        ]


@frozen(eq=False, kw_only=True)
class Needs:
    """The needs of the accesses of a log."""

    accesses: AccessColumns
    """The accesses that an ACL allows, each once, in the order of their first rows."""
    evidence: Evidences
    """Of each."""
    names: Mapping[int, Mapping[str, frozenset[str]]]
    """By resource type: the names that exist according to accesses, including denied ones, with their owners:
    principals
    that wrote to the topic or with the transactional id, or read with the group."""
    denied: int
    """The number of accesses, including repeated ones, that no ACL allows, and that need none."""
    undecided: UnreadAccesses
    """Accesses that cannot be decided, and may need any ACL of their principals."""
    decided: Decided
    """All of the log."""

    @classmethod
    def of(cls, counted: pa.Table, rules: Rules, settings: Settings, authorizer: BulkAuthorizer | None = None) -> Self:
        """Evaluate distinct accesses (COUNTED) by the last version of the ACLs. `authorizer`: as for Decided.of."""
        parsed = parse_columns([counted.column(name) for name in REQUEST_COLUMNS])
        decided = Decided.of(parsed, rules, settings, authorizer)
        (accesses, errors), codes = parsed, decided.codes
        by_rule, allowed = _allowed(codes, rules)
        unknown = undecided(counted, codes).but_of(settings.super_users)
        counts = np.asarray(counted.column("count"))
        rows = np.flatnonzero(errors == UNRESOLVED)
        ruled = by_rule[rows]
        evidence = Evidences(*(np.asarray(counted.column(name))[rows[ruled]] for name in ("count", "first", "last")))
        distinct, parts = _distinct(accesses.take(ruled), evidence)
        return cls(
            accesses=distinct,
            evidence=parts,
            names=_names_in(accesses, allowed[rows]),
            denied=int(counts[~allowed & ~np.isin(codes, UNDECIDED)].sum()),
            undecided=unknown,
            decided=decided,
        )

    @cached_property
    def by_access(self) -> Mapping[ParsedAccess, Evidence]:
        """The accesses as objects."""
        return dict(zip(self.accesses.objects(), self.evidence.objects(), strict=True))


def _distinct(accesses: AccessColumns, evidence: Evidences) -> tuple[AccessColumns, Evidences]:
    """Add up accesses that were logged in several spellings."""
    requests = accesses.requests
    what = grouped(requests.name_of.astype(np.int64) << 8 | accesses.operations)
    who = grouped(requests.principal_of.astype(np.int64) << 32 | requests.host_of)
    access_of = grouped(who << 32 | what)
    if not len(access_of) or int(access_of.max()) + 1 == len(access_of):
        return accesses, evidence
    order = np.argsort(access_of, kind="stable")
    starts = changes(access_of[order])
    return accesses.take(order[starts]), evidence.take(order).sums(starts)


def grouped(keys: Int64s) -> Int64s:
    """Return the number of each row's key, in order of their first rows."""
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    ranks: Int64s = rank[number]
    return ranks


def _allowed(codes: Int32s, rules: Rules) -> tuple[Bools, Bools]:
    """Return which accesses an ACL allows, and which are allowed at all."""
    allows = np.asarray(rules.table.column("permissionType").to_numpy()) == "ALLOW"
    by_rule = np.zeros(len(codes), np.bool_)
    by_rule[codes >= 0] = allows[codes[codes >= 0]]
    return by_rule, by_rule | np.isin(codes, list(ALLOWED))


def _names_in(accesses: AccessColumns, allowed: Bools) -> dict[int, dict[str, frozenset[str]]]:
    """Return the names of accesses by resource type, with their owners."""
    requests = accesses.requests
    owning = np.array([_OWNING.get(kind, -1) for kind in requests.types], np.int64)
    owned = allowed & (owning[requests.name_of] == accesses.operations)
    who = len(requests.principals)
    keys = np.unique(requests.name_of[owned].astype(np.int64) * who + requests.principal_of[owned])
    owners: dict[int, list[str]] = {}
    for place, principal in (divmod(key, who) for key in keys.tolist()):
        owners.setdefault(place, []).append(requests.principals[principal])
    names: dict[int, dict[str, frozenset[str]]] = {}
    for place, (kind, name) in enumerate(zip(requests.types, requests.names, strict=True)):
        names.setdefault(kind, {})[name] = frozenset(owners.get(place, ()))
    return names
