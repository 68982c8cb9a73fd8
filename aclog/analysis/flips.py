"""Accesses that two policies decide differently, counted by region and by row."""

from collections.abc import Iterable, Mapping

from attrs import define

from aclog.analysis.regions.principals import Principals
from aclog.analysis.regions.region import Region, Request
from aclog.analysis.rows.row import Row


@define(eq=False, kw_only=True)
class Flips:
    """Distinct accesses, and how often each occurred; immutable by convention."""

    total: int
    unread: int = 0
    """How many other accesses could not be read or decided: each may flip."""
    _by_principal: Mapping[str, list[tuple[Request, int]]]

    @staticmethod
    def of(counts: Mapping[Request, int], unread: int = 0) -> "Flips":
        """Take accesses with their numbers."""
        found: dict[str, list[tuple[Request, int]]] = {}
        for request, count in counts.items():
            found.setdefault(request.principal, []).append((request, count))
        return Flips(total=sum(counts.values()), unread=unread, by_principal=found)

    def among(self, requests: Region | Row) -> int:
        """Return how many of the accesses are in a region, or in a row."""
        of_principals = self._of(requests.principals)
        return sum(count for group in of_principals for request, count in group if request in requests)

    def _of(self, principals: Principals) -> Iterable[list[tuple[Request, int]]]:
        if principals.complement:
            return self._by_principal.values()
        return (self._by_principal[each] for each in principals.named if each in self._by_principal)
