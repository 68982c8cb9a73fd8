"""What was done with the rows of an access log."""

from attrs import frozen


@frozen(kw_only=True)
class Counts:
    """The number of rows of the log, by what was done with them."""

    total: int
    without_time: int
    outside: int
    """Outside the window."""
    before_log: int
    """In the window, but not judged: before the ACLs are known."""
    super_users: int
    errors: dict[str, int]
    """In the window, by the reason why there is no decision."""
    decided: int
    """The others: only these count for ACLs."""
