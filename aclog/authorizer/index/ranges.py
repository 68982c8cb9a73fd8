"""The pairs whose host is a CIDR range (KIP-1276), and which of them match many requests."""

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
from attrs import evolve, frozen

from aclog.authorizer.acl import WILDCARD_PRINCIPAL
from aclog.authorizer.cidr import address_number, is_cidr
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.arrays import Int32s, expanded
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.keys import split_pair
from aclog.authorizer.index.masks import TYPES
from aclog.authorizer.index.range_hosts import RangeHosts
from aclog.metalog.vectors import Int64s


@frozen(eq=False, kw_only=True)
class SubjectPairs:
    """Pairs that match some requests through a range."""

    starts: Int64s
    pairs: Int32s
    """Those of subject s are `pairs[starts[s]:starts[s + 1]]`."""
    subject_of: Int64s
    """By request."""

    @classmethod
    def of(cls, pairs: Sequence[Sequence[int]], subject_of: Int64s) -> Self:
        """Return the pairs of these subjects."""
        counts = np.fromiter(map(len, pairs), np.int64, len(pairs))
        flat = np.array([pair for each in pairs for pair in each], np.int32)
        return cls(starts=np.concatenate(([0], np.cumsum(counts))), pairs=flat, subject_of=subject_of)

    def of_rows(self, rows: slice) -> Self:
        """Return those of some requests, numbered from 0."""
        return evolve(self, subject_of=self.subject_of[rows])

    def of_requests(self, request: Int64s) -> tuple[Int64s, Int32s]:
        """Return (i, pair) for each pair that matches request[i]."""
        subject = self.subject_of[request]
        at, place = expanded(self.starts[subject], self.starts[subject + 1])
        return at, self.pairs[place]


@frozen(eq=False, kw_only=True)
class RangePairs:
    """The pairs of a base whose host is a range, by principal."""

    _of_principal: Mapping[str, Mapping[str, int]]
    """By host, those included that have a slash and are no range: they match nobody."""
    _hosts: RangeHosts
    """The hosts of all of them: an address is looked up once, whoever is asked about."""

    @classmethod
    def of(cls, base: Base) -> Self:
        """Return the pairs of a base."""
        found: dict[str, dict[str, int]] = {}
        hosts = RangeHosts()
        for number in base.range_pairs:
            principal, host = split_pair(base.pairs.key(number))
            if "/" in host:
                found.setdefault(principal, {})[host] = number
        hosts.add(host for pairs in found.values() for host in pairs)
        return cls(of_principal=found, hosts=hosts)

    def subject_pairs(
        self, principals: Sequence[str], principal_of: Int32s, hosts: Sequence[str], host_of: Int32s
    ) -> list[SubjectPairs]:
        """Return the pairs that match each request, dictionary-encoded as in RequestCodes: `User:*`'s, and its own."""
        if not self._of_principal:
            return []
        containing = [self._containing(host) for host in hosts]
        found = []
        if WILDCARD_PRINCIPAL in self._of_principal:
            everybodys = [self._pairs(WILDCARD_PRINCIPAL, ranges) for ranges in containing]
            found.append(SubjectPairs.of(everybodys, host_of.astype(np.int64)))
        has_ranges = np.fromiter((who in self._of_principal for who in principals), np.bool_, len(principals))
        rows = np.flatnonzero(has_ranges[principal_of])
        if len(rows):
            numbers = principal_of[rows].astype(np.int64) * len(hosts) + host_of[rows]
            subjects, number_of = np.unique(numbers, return_inverse=True)
            parts = (divmod(subject, len(hosts)) for subject in subjects.tolist())
            own = [self._pairs(principals[who], containing[where]) for who, where in parts]
            subject_of = np.zeros(len(principal_of), np.int64)  # subject 0 has none
            subject_of[rows] = number_of + 1
            found.append(SubjectPairs.of([[], *own], subject_of))
        return found

    def _containing(self, host: str) -> frozenset[str]:
        address = address_number(host)
        return frozenset() if address is None else frozenset(self._hosts.containing(address))

    def _pairs(self, principal: str, hosts: frozenset[str]) -> list[int]:
        pairs = self._of_principal[principal]
        return sorted(pairs[host] for host in pairs.keys() & hosts)


def range_masks(index: AclIndex) -> list[int]:
    """Return the masks of all ACLs whose host is a range, or-ed, by the code of the resource type.

    What an ACL said that was removed since the base was built may still be in them.
    """
    masks = list(_base_masks(index.base))
    if index.overlay.ranges:
        for (kind, _, _), touched in index.overlay.resources():
            for (_, host), cell in touched.cells.items():
                if is_cidr(host):
                    masks[kind] |= cell.mask
    return masks


def _base_masks(base: Base) -> tuple[int, ...]:
    known = base.memo.range_masks
    if known is None:
        masks = [0] * TYPES
        pairs = [pair for pair in base.range_pairs if is_cidr(split_pair(base.pairs.key(pair))[1])]
        if pairs:
            cells = np.flatnonzero(np.isin(np.asarray(base.cell_pairs), pairs))
            resources = np.searchsorted(np.asarray(base.cell_starts), cells, side="right") - 1
            for resource, mask in zip(resources.tolist(), np.asarray(base.cell_masks)[cells].tolist(), strict=True):
                masks[base.resources.key(resource)[0]] |= mask
        known = base.memo.range_masks = tuple(masks)
    return known
