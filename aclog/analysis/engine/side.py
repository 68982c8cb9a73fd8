"""What one policy says to one subject below one root."""

from attrs import frozen

from aclog.analysis.estate import Cell


@frozen(eq=False, kw_only=True)
class Coverage:
    """Where a policy has candidates below a root, whomever they are for; all that allow.everyone needs to know."""

    whole: bool
    """Whether a prefix covers the root."""
    wildcard: bool
    """Whether there are rules on LITERAL `*`."""
    under: tuple[tuple[str, bool], ...] = ()
    """The name of each pattern below the root, and whether it is LITERAL."""


@frozen(eq=False, kw_only=True)
class Side:
    """What decides on the requests of a subject below a root."""

    cells: tuple[Cell, ...] = ()
    """Those of the subject and of `User:*`, but for those on LITERAL `*`."""
    wildcard: tuple[Cell, ...] = ()
    """Those on LITERAL `*`."""
    coverage: Coverage | None = None
    """None: what no rule covers is denied; else it is allowed (allow.everyone.if.no.acl.found)."""
    is_super: bool = False
    documented: bool = False
    cidr: bool = False
