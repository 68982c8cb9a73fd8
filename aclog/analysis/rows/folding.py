"""Folds the exact differences of two policies into the fewest rows that a person can check."""

from collections.abc import Iterable, Iterator

from aclog.analysis.deciding import deciding
from aclog.analysis.policy import Policy
from aclog.analysis.regions.region import Difference, Direction, Region
from aclog.analysis.regions.witness import has_legal_name, witness
from aclog.analysis.rows.causes import candidates_of
from aclog.analysis.rows.components import components
from aclog.analysis.rows.exact_rows import ExactRow, exact_rows
from aclog.analysis.rows.name_folding import place
from aclog.analysis.rows.row import Row
from aclog.analysis.rows.summary_rows import summary_rows
from aclog.authorizer.acl import StandardAcl


def rows(
    differences: Iterable[Difference], old: Policy, new: Policy, changed: Iterable[tuple[bool, StandardAcl]]
) -> list[Row]:
    """Return the rows of a report, in a stable order.

    `changed` has every rule that only one of the policies has, with True if it was added. Principals with the same
    change are one row, and so are operations, types and names with the same who. Where the exact rows would be more
    than the changed rules folded naively (NaiveRow), summaries by cause stand in their place: all rows are never more
    than the naive ones, and one for each changed setting (two for super users that come and others that go, four for
    semantics). Another generation of Kafka is as good as a change of the rules with a range as host.
    """
    found: list[Row] = []
    for part in components(exact_rows(differences), candidates_of(old, new, list(changed))):
        if part.is_short():
            for row in part.rows:
                found += _shown(row, old, new)
        else:
            found += summary_rows(part.candidates, old, new)
    return _ordered(found)


def _shown(row: ExactRow, old: Policy, new: Policy) -> Iterator[Row]:
    for clauses in row.clauses:
        regions = [
            Region(
                resource_type=clause.resource_type,
                operations=clause.operations,
                principals=row.principals,
                hosts=row.hosts,
                names=clause.names,
            )
            for clause in clauses
        ]
        legal = next(filter(has_legal_name, regions), None)
        request = witness(legal or regions[0])
        yield Row(
            directions=(row.direction,),
            principals=row.principals,
            hosts=row.hosts,
            clauses=clauses,
            witness=request,
            before=deciding(old, request),
            after=deciding(new, request),
            legal=legal is not None,
        )


def _ordered(found: list[Row]) -> list[Row]:
    """Return rows by what they are about; those that agree in it by their texts, which take longer to make."""
    places: dict[tuple[object, ...], list[Row]] = {}
    for row in found:
        places.setdefault(_place(row), []).append(row)
    groups = (places[key] for key in sorted(places))
    return [row for group in groups for row in (group if len(group) == 1 else sorted(group, key=str))]


def _place(row: Row) -> tuple[object, ...]:
    first = row.clauses[0]
    return (
        row.directions[0] is not Direction.GAINED,
        first.resource_type,
        place(first.names[0]),
        first.operations,
        row.principals.complement,
        row.principals.named,
    )
