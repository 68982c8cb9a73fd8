"""Whether a change gives something to everyone."""

from aclog.analysis.regions.principals import Principals
from aclog.analysis.regions.region import Difference, Direction
from aclog.analysis.regions.witness import has_legal_name
from aclog.analysis.rows.row import Row
from aclog.authorizer.acl import ANONYMOUS_PRINCIPAL


def gives_everyone(difference: Difference) -> bool:
    """Return whether a difference lets everyone, or every client that does not log in, do what a client can ask for."""
    region = difference.region
    return difference.direction is Direction.GAINED and _holds_everyone(region.principals) and has_legal_name(region)


def tells_of_everyone(row: Row) -> bool:
    """Return whether a row tells of such a difference."""
    gained, summary = Direction.GAINED in row.directions, row.summary
    if summary is not None and row.principals.complement:
        return gained and row.legal and summary.everyone_else
    return gained and row.legal and _holds_everyone(row.principals)


def _holds_everyone(principals: Principals) -> bool:
    return principals.complement or ANONYMOUS_PRINCIPAL in principals.named
