"""Who leads, as the log itself says it."""

from attrs import frozen


@frozen(kw_only=True)
class Leader:
    """The writer of the newest leader epoch: its node id, the epoch, the offset of the epoch's LeaderChange."""

    node_id: int
    epoch: int
    start_offset: int
