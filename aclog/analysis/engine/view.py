"""What the engine reads of one policy below a root: whose cells stand there, and what they cover."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from attrs import define, field

from aclog.analysis.engine.side import Coverage, Side
from aclog.analysis.estate import Cell, Estate
from aclog.analysis.policy import Policy
from aclog.analysis.regions.root import Root
from aclog.authorizer.acl import WILDCARD_PRINCIPAL
from aclog.authorizer.settings import Settings


class Cells(NamedTuple):
    """The cells of one principal that cover names of a root, sorted; those on LITERAL `*` apart."""

    named: tuple[Cell, ...] = ()
    wildcard: tuple[Cell, ...] = ()

    def hosts(self) -> Iterator[str]:
        """Yield the hosts of all."""
        return (cell.host for cell in chain(self.named, self.wildcard))


NO_CELLS = Cells()

_FEW = 16
_CELLS_PER_PRINCIPAL = 4
"""How many cells are looked at in the time that it takes to ask for those of one principal."""


@define(eq=False)
class View:
    """Reads one policy. What it caches is for one exploration."""

    settings: Settings
    _estate: Estate
    _everyone: dict[Root, Cells] = field(factory=dict, init=False)
    _coverage: dict[Root, Coverage] = field(factory=dict, init=False)

    @classmethod
    def of(cls, policy: Policy) -> "View":
        """Return the view of a policy."""
        return cls(policy.settings, policy.estate)

    def of_everyone(self, root: Root) -> Cells:
        """Return the cells of `User:*`."""
        known = self._everyone.get(root)
        if known is None:
            estate = self._estate
            has_colonless = estate.index.has_colonless
            under = estate.under(root) if has_colonless else estate.under_of(root, WILDCARD_PRINCIPAL)
            known = self._everyone[root] = Cells(
                _sorted(
                    cell for each in chain(estate.covering(root), under) for cell in estate.cells_of_everyone(each)
                ),
                _sorted(estate.cells_of_everyone(estate.wildcard(root.kind))),
            )
        return known

    def of_principal(self, root: Root, principal: str) -> Cells:
        """Return the cells of one other principal."""
        estate = self._estate
        resources = chain(estate.covering(root), estate.under_of(root, principal))
        return Cells(
            _sorted(cell for each in resources for cell in estate.cells_of(each, principal)),
            _sorted(estate.cells_of(estate.wildcard(root.kind), principal)),
        )

    def by_principal(self, root: Root) -> dict[str, Cells]:
        """Return the cells of every principal that can make a request and has some."""
        named: dict[str, list[Cell]] = {}
        wildcard: dict[str, list[Cell]] = {}
        estate = self._estate
        for resource in chain(estate.covering(root), estate.under(root)):
            for principal, cell in estate.cells(resource):
                named.setdefault(principal, []).append(cell)
        for principal, cell in estate.cells(estate.wildcard(root.kind)):
            wildcard.setdefault(principal, []).append(cell)
        return {
            principal: Cells(_sorted(named.get(principal, ())), _sorted(wildcard.get(principal, ())))
            for principal in named.keys() | wildcard.keys()
            if principal != WILDCARD_PRINCIPAL and ":" in principal
        }

    def is_narrow(self, root: Root, principals: int) -> bool:
        """Return whether it takes longer to ask for each of so many principals than to look at all cells of a root."""
        return principals > _FEW and self._estate.has_at_most(root, _CELLS_PER_PRINCIPAL * principals)

    def side(self, root: Root, own: Cells, *, is_super: bool = False) -> Side:
        """Return what decides for a principal with these cells."""
        everyone, settings = self.of_everyone(root), self.settings
        return Side(
            cells=(*everyone.named, *own.named),
            wildcard=(*everyone.wildcard, *own.wildcard),
            coverage=self._covered(root) if settings.allow_everyone else None,
            is_super=is_super,
            documented=settings.documented,
            cidr=settings.cidr,
        )

    def _covered(self, root: Root) -> Coverage:
        known = self._coverage.get(root)
        if known is None:
            estate = self._estate
            whole = any(map(estate.exists, estate.covering(root)))
            known = self._coverage[root] = Coverage(
                whole=whole,
                wildcard=estate.exists(estate.wildcard(root.kind)),
                under=() if whole else tuple((r.name, r.literal) for r in estate.under(root) if estate.exists(r)),
            )
        return known


def _sorted(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    return tuple(sorted(cells))
