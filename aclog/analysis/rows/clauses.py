"""What the regions of one who and where say together, as few clauses."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from aclog.analysis.regions.names import NamePart, Names
from aclog.analysis.regions.operations import operations_of
from aclog.analysis.regions.region import Region
from aclog.analysis.rows.name_folding import fold, place
from aclog.analysis.rows.row import Clause
from aclog.authorizer.acl import ResourceType


def clauses_of(regions: Iterable[Region]) -> tuple[Clause, ...]:
    """Return clauses that hold exactly the operations and names of all the regions."""
    of_type: dict[ResourceType, dict[int, list[NamePart]]] = defaultdict(lambda: defaultdict(list))
    for region in regions:
        of_type[region.resource_type][region.operations] += region.names
    return tuple(clause for kind in sorted(of_type) for clause in _clauses(kind, of_type[kind]))


def _clauses(kind: ResourceType, of_mask: dict[int, list[NamePart]]) -> Sequence[Clause]:
    """Return the shorter of two: operations that came together, or operations whose names are the same in the end."""
    together = _grouped((mask, fold(parts)) for mask, parts in of_mask.items())
    if len(of_mask) > 1:
        operations = operations_of(sum(1 << bit for bit in range(16) if any(mask >> bit & 1 for mask in of_mask)))
        one_by_one = _grouped(
            (1 << operation, fold(part for mask, parts in of_mask.items() if mask >> operation & 1 for part in parts))
            for operation in operations
        )
        together = min(together, one_by_one, key=lambda found: (len(found), sum(map(len, found))))
    found = [Clause(resource_type=kind, operations=mask, names=names) for names, mask in together.items()]
    return sorted(found, key=lambda clause: (place(clause.names[0]), clause.operations))


def _grouped(masks: Iterable[tuple[int, Names]]) -> dict[Names, int]:
    found: dict[Names, int] = defaultdict(int)
    for mask, names in masks:
        found[names] |= mask
    return found
