"""The age of a state that was read from a running cluster."""

from attrs import frozen


@frozen(kw_only=True)
class Freshness:
    """The last time a running cluster confirmed that nothing newer is committed than the known state.

    `seconds` have passed since the request to which the cluster responded: an upper bound, which includes the time in
    which this machine was suspended. `time` is the time of the request, in ms since 1970.
    """

    seconds: float
    time: int
    server: str
    """The address of the server that responded: the leader of a quorum, or a broker."""
    followed: bool = True
    """Whether the cluster is polled continuously; if not, the state was read once."""
    problem: str = ""
    """Why nothing newer has arrived since; empty if no problem is known."""
