"""Whether a region holds a request of a query."""

from aclog.analysis.answers.rules_about import names_of
from aclog.analysis.regions.name_sets import common
from aclog.analysis.regions.principals import Principals
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Region


def touches(region: Region, query: Query) -> bool:
    """Return whether a request of a query is in a region: both are products of sets, so each two of these must meet."""
    return (
        bool(region.operations & query.operations)
        and _principals_meet(region.principals, query.principals)
        and (query.host is None or query.host in region.hosts)
        and any(
            resource.resource_type == region.resource_type and bool(common(region.names, names_of(resource)))
            for resource in query.resources
        )
    )


def _principals_meet(one: Principals, other: Principals) -> bool:
    if one.complement:
        return other.complement or any(each in one for each in other.named)
    return any(each in other for each in one.named)
