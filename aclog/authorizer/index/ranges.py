"""The pairs whose host is a CIDR range (KIP-1276), and which of them match many requests."""

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
from attrs import evolve, frozen

from aclog.authorizer.acl import WILDCARD_PRINCIPAL
from aclog.authorizer.cidr import AddressNumber, CidrRange, address_number, cidr_range
from aclog.authorizer.index.arrays import Int32s, expanded
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.keys import split_pair
from aclog.metalog.vectors import Int64s


@frozen(eq=False, kw_only=True)
class SubjectPairs:
    """The pairs that match some requests through a range."""

    starts: Int64s
    pairs: Int32s
    """Those of subject s are `pairs[starts[s]:starts[s + 1]]`."""
    subject_of: Int64s
    """By request."""

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

    _of_principal: Mapping[str, Sequence[tuple[CidrRange, int]]]

    @classmethod
    def of(cls, base: Base) -> Self:
        """Find them; a host with a slash that is not a range matches nobody."""
        found: dict[str, list[tuple[CidrRange, int]]] = {}
        for number in range(len(base.pairs)):
            key = base.pairs.key(number)
            if b"/" in key:
                principal, host = split_pair(key)
                parsed = cidr_range(host)
                if parsed is not None:
                    found.setdefault(principal, []).append((parsed, number))
        return cls(of_principal=found)

    def subject_pairs(
        self, principals: Sequence[str], principal_of: Int32s, hosts: Sequence[str], host_of: Int32s
    ) -> SubjectPairs:
        """Return the pairs that match each request, dictionary-encoded as in RequestCodes."""
        subjects, subject_of = np.unique(principal_of.astype(np.int64) * len(hosts) + host_of, return_inverse=True)
        addresses = [address_number(host) for host in hosts]
        everybody = [self._matching(WILDCARD_PRINCIPAL, address) for address in addresses]
        counts, pairs = np.zeros(len(subjects) + 1, np.int64), list[int]()
        for number, subject in enumerate(subjects.tolist()):
            who, where = divmod(subject, len(hosts))
            found = self._matching(principals[who], addresses[where]) + everybody[where]
            counts[number + 1] = len(found)
            pairs += found
        return SubjectPairs(starts=np.cumsum(counts), pairs=np.array(pairs, np.int32), subject_of=subject_of)

    def _matching(self, principal: str, address: AddressNumber | None) -> list[int]:
        ranges = self._of_principal.get(principal, ())
        return [pair for each, pair in ranges if each.contains_number(address)]
