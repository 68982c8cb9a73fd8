"""Errors of following a quorum, and which of them a reader retries."""

from collections.abc import Callable
from typing import TypeVar

from aclog.metalog.errors import LogError, MetadataError

_T = TypeVar("_T")


class QuorumRefusedError(LogError):
    """The quorum does not let this observer follow it: no permission, another cluster, not a controller listener.

    Retrying helps only after an operator has changed something.
    """


class FollowingEndedError(LogError):
    """The log can never be followed again: it is not, or no longer, the log that was being followed."""


class CommittedRecordsLostError(FollowingEndedError):
    """The quorum no longer has records that it had committed: data was lost, or it is another cluster."""


class OtherClusterError(QuorumRefusedError, FollowingEndedError):
    """Every known server belongs to another cluster (INCONSISTENT_CLUSTER_ID), whose records must not be appended."""


class TransientReadError(Exception):
    """The log could not be read, for a reason that may pass; `cause` is the error."""

    def __init__(self, cause: MetadataError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def retriable(read: Callable[[], _T]) -> _T:
    """Return what `read` returns; its errors become a TransientReadError, except for FollowingEndedError.

    Wrap only calls to the log that is followed: errors of replay, or of a mirror's own disk, must not be retried.
    """
    try:
        return read()
    except FollowingEndedError:
        raise
    except MetadataError as error:
        raise TransientReadError(error) from error
