"""How following a quorum fails."""

from metalog.errors import LogError


class QuorumRefusedError(LogError):
    """The quorum does not let this observer follow it: no permission, another cluster, not a controller's listener.

    Asking again helps only after somebody has changed something.
    """


class CommittedRecordsLostError(LogError):
    """The quorum no longer has records that were committed and seen: data was lost, or it is another cluster."""
