"""Where two policies may differ: below which roots for everyone, and below which for single principals."""

from collections.abc import Iterable
from itertools import chain

from attrs import define, field

from aclog.analysis.engine.changed_cells import CellKey, cell_of
from aclog.analysis.policy import Policy
from aclog.analysis.range_rules import range_rules
from aclog.analysis.regions.query import RESOURCE_TYPES, Query
from aclog.analysis.regions.root import Root, root_of_names, root_of_pattern, topmost, within
from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL

_EVERYTHING = tuple(root for kind in RESOURCE_TYPES if (root := root_of_names(kind, "", literal=False)) is not None)
"""The root of each resource type."""


@define(eq=False)
class Scope:
    """Roots to look at; outside of them nothing differs."""

    everyone: set[Root] = field(factory=set)
    """For every principal."""
    principals: dict[str, set[Root]] = field(factory=dict)
    """For one principal each, beyond those for everyone."""
    changed: set[str] | None = field(factory=set)
    """The principals with a rule that only one of the policies has; None if that may be any."""

    def add(self, principal: str, root: Root) -> None:
        """Add a root for one principal; `User:*` is everyone, and so is a principal without a colon (see Estate)."""
        if principal == WILDCARD_PRINCIPAL or ":" not in principal:
            self.everyone.add(root)
        else:
            self.principals.setdefault(principal, set()).add(root)

    def within(self, query: Query) -> "Scope":
        """Return the part that holds the resources of a query."""
        limits = query.roots
        return Scope(
            everyone={part for root in self.everyone for part in within(root, limits)},
            principals={
                principal: {part for root in roots for part in within(root, limits)}
                for principal, roots in self.principals.items()
            },
            changed=self.changed,
        )

    def reduced(self) -> "Scope":
        """Return the same with no root inside another."""
        everyone = set(topmost(self.everyone))
        principals = {
            principal: {root for root in topmost(chain(everyone, roots)) if root not in everyone}
            for principal, roots in self.principals.items()
        }
        return Scope(everyone, {principal: roots for principal, roots in principals.items() if roots}, self.changed)


def whole_scope() -> Scope:
    """Return the scope of all requests."""
    return Scope(everyone=set(_EVERYTHING), changed=None)


def scope_of(old: Policy, new: Policy, changed: Iterable[CellKey]) -> Scope:
    """Return where two policies may differ, given the cells in which their rules do."""
    differing: set[str] = set()
    scope = Scope(changed=differing)
    before, after = old.settings, new.settings
    open_to_all = before.allow_everyone or after.allow_everyone
    if before.cidr is not after.cidr:
        changed = chain(changed, map(cell_of, chain(range_rules(old.acls), range_rules(new.acls))))
    for key in changed:
        differing.add(key.principal)
        root = root_of_pattern(key.kind, key.name, literal=key.literal)
        if root is not None:
            # Where uncovered names are open, a rule for one principal closes its resource to all others.
            scope.add(WILDCARD_PRINCIPAL if open_to_all else key.principal, root)
    for principal in before.super_users ^ after.super_users:
        for root in _EVERYTHING:
            if principal != WILDCARD_PRINCIPAL:
                scope.add(principal, root)
    if before.allow_everyone is not after.allow_everyone:
        scope.everyone.update(_EVERYTHING)
    elif before.documented is not after.documented:
        scope.everyone.update(Root(root.kind, WILDCARD, literal=False) for root in _EVERYTHING if not root.literal)
    return scope.reduced()
