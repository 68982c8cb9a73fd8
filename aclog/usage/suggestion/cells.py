"""What was used, gathered into cells: one principal, operation and host pattern on one name."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from attrs import define, field

from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL, AclOperation, ResourceType
from aclog.usage.suggestion.present_rules import Names, PresentRules, allows, names_of
from aclog.usage.suggestion.suggested_rule import Times
from aclog.usage.suggestion.used_access import UsedAccess

EVERYBODY: Final = 0.5
"""The share of known principals that must have used a name for a rule for everybody to stay one."""
_FEWEST: Final = 5
"""Fewer known principals than this are never everybody."""


class Group(NamedTuple):
    """What one rule can be about, but for the names."""

    principal: str
    resource_type: ResourceType
    operation: AclOperation
    host: str
    """As rules have it: `*`, an address or a range."""


@define
class Cell:
    """What was used of one name."""

    times: Times
    replaces: set[int] = field(factory=set)
    """The rules of the present set that allowed it, by ordinal."""
    wider: set[Names] = field(factory=set)
    """The names that these rules allow besides, for the same principal, operation and hosts."""

    def add(self, other: "Cell") -> None:
        """Add what was used by others."""
        self.times = self.times.plus(other.times)
        self.replaces |= other.replaces
        self.wider |= other.wider


Cells = Mapping[Group, Mapping[str, Cell]]


@define(eq=False, kw_only=True)
class CellGatherer:
    """Gathers accesses, all of which the present set allows."""

    rules: PresentRules
    _cells: dict[Group, dict[str, Cell]] = field(factory=dict, init=False)
    _common: dict[Group, dict[str, Cell]] = field(factory=dict, init=False)
    """The same for those that a rule for everybody allows, by the group of everybody."""
    _users: dict[tuple[Group, str], set[str]] = field(factory=dict, init=False)
    """The principals of these."""
    _principals: set[str] = field(factory=set, init=False)

    def add(self, access: UsedAccess) -> None:
        """Gather an access."""
        self._principals.add(access.principal)
        self._put(access, self._cells, access.principal, access.allowing)
        common = tuple(at for at in access.allowing if self.rules[at].principal == WILDCARD_PRINCIPAL)
        group = self._put(access, self._common, WILDCARD_PRINCIPAL, common)
        if group is not None:
            self._users.setdefault((group, access.resource_name), set()).add(access.principal)

    def _put(
        self, access: UsedAccess, cells: dict[Group, dict[str, Cell]], principal: str, allowing: tuple[int, ...]
    ) -> Group | None:
        fitting = [at for at in allowing if allows(self.rules[at].operation, access.operation)]
        if not fitting:
            return None
        hosts = {self.rules[at].host for at in fitting}
        host = WILDCARD if WILDCARD in hosts else min(hosts)
        chosen = [at for at in fitting if self.rules[at].host == host]
        group = Group(principal, access.resource_type, access.operation, host)
        cell = Cell(access.times, set(chosen), {names_of(self.rules[at]) for at in chosen})
        known = cells.setdefault(group, {}).setdefault(access.resource_name, cell)
        if known is not cell:
            known.add(cell)
        return group

    def cells(self, principals: frozenset[str], *, everybody: bool) -> Cells:
        """Return the cells; `principals` are those that are known besides, such as those that rules name.

        `everybody`: whether what most of them used by a rule for everybody becomes a cell of everybody.
        """
        known = (self._principals | principals) - {WILDCARD_PRINCIPAL}
        cells = {group: dict(names) for group, names in self._cells.items()}
        for (group, name), users in self._users.items() if everybody else ():
            if len(known) >= _FEWEST and len(users) >= EVERYBODY * len(known):
                cells.setdefault(group, {})[name] = self._common[group][name]
                for user in users:
                    # only what this very rule allows: another rule may allow it from more hosts
                    cells.get(group._replace(principal=user), {}).pop(name, None)
        return {group: names for group, names in cells.items() if names}
