"""What must stay so that no decision of a window flips, as clauses over the ACLs that may go.

An access is judged twice: among the ACLs of its own time, where what is gone since stays as it was, and among those
that are in force now. A clause names ACLs of which one must stay. A clause with a premise holds only if the premise
stays: a DENY need not stay if every ACL that it overrules goes, too.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from aclog.metalog.vectors import Bools, Int64s
from aclog.usage.unused.access_sets import AccessSets

NO_PREMISE = -1


class KeepClause(NamedTuple):
    """One of `members` must stay if `premise` does; NO_PREMISE: in any case."""

    premise: int
    members: tuple[int, ...]


class _Counts(NamedTuple):
    """By set: its lives, those in force now, and those that may go; DENY or ALLOW."""

    all: Int64s
    present: Int64s
    may_go: Int64s


def keep_clauses(sets: AccessSets, *, present: Bools, may_go: Bools) -> set[KeepClause]:
    """Return the clauses of these sets, given by life which are in force now, and which of these may go.

    What may go was in force in the whole window, so that it is in the set of every access that it matches. What else is
    in force now stays, and may match more accesses than the sets say: the caller keeps a DENY that such an ALLOW would
    turn into an opening (openings.py).
    """
    if not len(sets):
        return set()
    owner = np.repeat(np.arange(len(sets)), np.diff(sets.starts))
    goes, now = may_go[sets.members], present[sets.members]
    denies, allows = (_counts(sets, owner, kind, now, goes) for kind in (sets.denies, ~sets.denies))
    # DENY: what stays must not be one; an ALLOW is overruled by each, at its time or now
    open_now = (denies.may_go > 0) & (denies.present == denies.may_go)
    open_then = open_now & (denies.all == denies.may_go)
    overrules = open_now & (allows.present > allows.may_go) | open_then & (allows.all > allows.may_go)
    overrules_what_may_go = open_now & ~overrules & (allows.may_go > 0)
    # ALLOW: no DENY decides, at its time or now, and no other ALLOW stays
    free_then = (denies.all == 0) & (allows.all == allows.may_go)
    free_now = (denies.present == 0) & (allows.present == allows.may_go)
    allowed = (allows.may_go > 0) & (free_then | free_now)
    found = {KeepClause(NO_PREMISE, each) for each in _members(sets, owner, overrules, sets.denies & goes)}
    found |= {KeepClause(NO_PREMISE, each) for each in _members(sets, owner, allowed, ~sets.denies & goes)}
    overruling = _members(sets, owner, overrules_what_may_go, sets.denies & goes)
    overruled = _members(sets, owner, overrules_what_may_go, ~sets.denies & goes)
    for those, whom in zip(overruling, overruled, strict=True):
        found |= {KeepClause(premise, those) for premise in whom}
    return found


def _counts(sets: AccessSets, owner: Int64s, kind: Bools, present: Bools, may_go: Bools) -> _Counts:
    count = len(sets)
    return _Counts(*(np.bincount(owner[kind & each], minlength=count) for each in (True, present, may_go)))


def _members(sets: AccessSets, owner: Int64s, chosen: Bools, wanted: Bools) -> Iterator[tuple[int, ...]]:
    """Yield the wanted members of each chosen set, none of which is without any, ascending."""
    at = np.flatnonzero(wanted & chosen[owner])
    order = at[np.lexsort((sets.members[at], owner[at]))]
    members = sets.members[order].tolist()
    starts = np.flatnonzero(np.diff(owner[order], prepend=-1)).tolist()
    for start, end in pairwise([*starts, len(members)]):
        yield tuple(members[start:end])


def presence_clauses(patterns: Int64s, lives: Int64s, may_go: Bools) -> set[KeepClause]:
    """Return the clauses that keep an ACL on each resource pattern, given by rule, of those as old as the window.

    With allow.everyone.if.no.acl.found, any ACL on a resource denies all that none allows, so that the last one may not
    go, whomever it is for. A younger one denied nothing before it came.
    """
    order = np.lexsort((lives, patterns))
    members, goes = lives[order].tolist(), may_go[order]
    starts = np.flatnonzero(np.diff(patterns[order], prepend=-1))
    if not len(starts):
        return set()
    emptied = np.logical_and.reduceat(goes, starts).tolist()
    spans = pairwise([*starts.tolist(), len(members)])
    chosen = (tuple(members[start:end]) for (start, end), empty in zip(spans, emptied, strict=True) if empty)
    return {KeepClause(NO_PREMISE, each) for each in chosen}
