"""How following a quorum fails."""

from aclog.metalog.errors import LogError


class QuorumRefusedError(LogError):
    """The quorum does not let this observer follow it: no permission, another cluster, not a controller's listener.

    Asking again helps only after somebody has changed something.
    """


class FollowingEndedError(LogError):
    """Nothing will come again: what is there now is not what was followed, or what was to be followed."""


class CommittedRecordsLostError(FollowingEndedError):
    """The quorum no longer has records that were committed and seen: data was lost, or it is another cluster."""


class OtherClusterError(QuorumRefusedError, FollowingEndedError):
    """Every server that is known belongs to another cluster (INCONSISTENT_CLUSTER_ID): no log may go on as another."""
