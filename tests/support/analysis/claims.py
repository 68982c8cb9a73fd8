"""Judges a claimed difference or a claimed set of allowed requests, cell by cell, by the model."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from aclog.analysis.policy import Policy
from aclog.analysis.regions import Difference, Direction, Query, Region, contains
from aclog.authorizer.codes import AclOperation, PatternType
from tests.support.analysis.cells import Cells
from tests.support.analysis.model import EVERY_OPERATION, PolicyModel

_FIRST = 10
"""More wrong cells than this are not listed."""


def wrong_differences(
    old: Policy, new: Policy, differences: Iterable[Difference], *, within: Query | None = None
) -> list[str]:
    """The cells in which a claim is wrong, as texts (the first few): changed and in no region, or unchanged and in one.

    With `within` the claim is about the requests of that query, and must hold nothing outside it.
    """
    differences = list(differences)
    before, after = PolicyModel(old), PolicyModel(new)
    cells = _cells((old, new), [each.region for each in differences], within)
    claimed = {
        direction: union([each.region for each in differences if each.direction is direction])
        for direction in Direction
    }
    wrong = []
    for kind, name, principal, host in cells.all():
        was = before.allowed(principal, host, kind, name)
        is_ = after.allowed(principal, host, kind, name)
        operations = EVERY_OPERATION if within is None else asked_operations(within, kind, name, principal, host)
        for direction, truth in ((Direction.GAINED, is_ & ~was), (Direction.LOST, was & ~is_)):
            claim = claimed[direction](kind, name, principal, host)
            if claim != truth & operations:
                cell = f"{direction.value} {principal} from {host} on {kind} {name!r}"
                wrong.append(f"{cell}: {_listed(truth & operations)}, not {_listed(claim)}")
    return wrong[:_FIRST]


def wrong_regions(policy: Policy, query: Query, regions: Iterable[Region]) -> list[str]:
    """The cells in which regions are not exactly what a policy allows of a query, as texts (the first few)."""
    regions = list(regions)
    model, claimed, wrong = PolicyModel(policy), union(regions), []
    for kind, name, principal, host in _cells((policy,), regions, query).all():
        truth = model.allowed(principal, host, kind, name) & asked_operations(query, kind, name, principal, host)
        claim = claimed(kind, name, principal, host)
        if claim != truth:
            wrong.append(f"{principal} from {host} on {kind} {name!r}: {_listed(truth)}, not {_listed(claim)}")
    return wrong[:_FIRST]


def asked_operations(query: Query, kind: int, name: str, principal: str, host: str) -> int:
    """The operations that a query asks of a cell."""
    if principal not in query.principals or query.host not in (None, host):
        return 0
    for resource in query.resources:
        if resource.resource_type != kind:
            continue
        if name == resource.name if resource.pattern_type == PatternType.LITERAL else name.startswith(resource.name):
            return query.operations & EVERY_OPERATION
    return 0


def _cells(policies: Sequence[Policy], regions: Iterable[Region], query: Query | None) -> Cells:
    cells = Cells.of(*policies, regions=regions)
    if query is not None:
        cells.named_principals |= set(query.principals.named)
        cells.named_hosts |= {query.host} - {None}
        for resource in query.resources:
            cells.named[resource.resource_type].add(resource.name)
    return cells


def union(regions: Iterable[Region]) -> Callable[[int, str, str, str], int]:
    """A function that gives the operations of all regions that hold a cell."""
    of_type: dict[int, list[Region]] = defaultdict(list)
    for region in regions:
        of_type[region.resource_type].append(region)
    by_name: dict[tuple[int, str], list[Region]] = {}

    def operations(kind: int, name: str, principal: str, host: str) -> int:
        near = by_name.get((kind, name))
        if near is None:
            near = by_name[kind, name] = [each for each in of_type[kind] if contains(each.names, name)]
        mask = 0
        for region in near:
            if principal in region.principals and host in region.hosts:
                mask |= region.operations
        return mask

    return operations


def _listed(mask: int) -> str:
    return "+".join(_names(mask)) or "nothing"


def _names(mask: int) -> Iterator[str]:
    return (operation.name for operation in AclOperation if mask >> operation & 1)
