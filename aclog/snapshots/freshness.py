"""How old a state is that a running cluster has told."""

from attrs import frozen


@frozen(kw_only=True)
class Freshness:
    """The last time a running cluster confirmed that nothing newer is committed than what is known of it.

    `seconds` have passed since the request was sent that the cluster answered: an upper bound, which counts the time
    in which this machine was suspended. `time` is when that was, in ms since 1970.
    """

    seconds: float
    time: int
    server: str
    """The address of the server that answered: the leader of a quorum, or a broker."""
    followed: bool = True
    """Whether the cluster is asked again all the time; if not, the state was read once."""
    problem: str = ""
    """Why nothing newer has arrived since; empty if nothing is known to be wrong."""
