"""Errors of clients, and which release of Kafka has which API."""

from collections.abc import Callable, Iterable
from itertools import product
from typing import TypeVar
from uuid import UUID

from aclog.metalog.control_records import KRaftVoters
from aclog.metalog.errors import LogError, MetadataError
from aclog.metalog.values import frozen
from aclog.protocol import api_keys

# Errors of client connections.


class UnreachableError(LogError):
    """No connection, or one that was closed or timed out. A retry may help, here or at another server."""


class AbsentError(UnreachableError):
    """No server accepts connections at the address, so there is no service to identify."""


class SilentError(UnreachableError):
    """A server that takes the connection did not respond in time."""


class StrangerError(UnreachableError):
    """The server is not a Kafka listener, or not one of this client's security.protocol."""


class WrongRoleError(LogError):
    """A broker where a controller was expected, or the reverse."""


class LoginError(LogError):
    """The server does not accept this client's login, or is not trusted. A retry helps only after a change."""


# Which release of Kafka introduced an API version, for messages about older servers.


@frozen
class _Release:
    zookeeper: str
    """The release with ZooKeeper."""
    kraft: str
    feature: str

    def __str__(self) -> str:
        kraft = "" if self.kraft == self.zookeeper else f" ({self.kraft} in KRaft mode)"
        return f"Kafka {self.zookeeper}{kraft}, the first with {self.feature}"


_ACLS = api_keys.DESCRIBE_ACLS, api_keys.CREATE_ACLS, api_keys.DELETE_ACLS
_TOKENS = (
    api_keys.CREATE_DELEGATION_TOKEN,
    api_keys.RENEW_DELEGATION_TOKEN,
    api_keys.EXPIRE_DELEGATION_TOKEN,
    api_keys.DESCRIBE_DELEGATION_TOKEN,
)


def _all(apis: Iterable[int], version: int, release: _Release) -> dict[tuple[int, int], _Release]:
    return dict.fromkeys(product(apis, (version,)), release)


# Read in the message schemas (common/message/*.json) of Kafka's releases: validVersions, and since 2.8 listeners.
_RELEASES = {
    **_all(_ACLS, 1, _Release("2.0", "3.2", "prefixed ACLs (KIP-290)")),
    **_all(_ACLS, 3, _Release("3.3", "3.3", "ACLs on USER resources (KIP-373)")),
    **_all(_TOKENS, 1, _Release("2.0", "3.6", "delegation tokens (KIP-48) in the form that aclog supports")),
    **_all(_TOKENS, 3, _Release("3.3", "3.6", "delegation tokens for other users (KIP-373)")),
    (api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS, 0): _Release("2.7", "3.5", "a list of SCRAM users (KIP-554)"),
    (api_keys.DESCRIBE_CLUSTER, 0): _Release("2.8", "2.8", "DescribeCluster (KIP-700)"),
}


def release_with(api_key: int, version: int) -> str | None:
    """Return the release that introduced this version of an API, and its feature; None if it is not listed."""
    release = _RELEASES.get((api_key, version))
    return None if release is None else str(release)


# Errors of following a quorum, and which of them a reader retries.


_T = TypeVar("_T")


class QuorumRefusedError(LogError):
    """The quorum does not let this observer follow it: no permission, another cluster, not a controller listener.

    Retrying helps only after an operator has changed something.
    """


class FollowingEndedError(LogError):
    """The log can never be followed again: it is not, or no longer, the log that was being followed."""


class ObserverFailedError(FollowingEndedError):
    """What fetches the log has failed for an unknown reason, and fetches no more: only a new start follows it again."""


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


# What a server states about its errors.


MOST_TEXT = 1000
"""Characters of a server's text that an error repeats; longer than any text of Kafka's."""


def cut_text(text: str) -> str:
    """Return a text of a server, which may be of any length, cut to `MOST_TEXT` characters."""
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}... ({len(text):,} characters)"


# A quorum that was formatted again.


def check_same_voters(before: KRaftVoters | None, now: KRaftVoters | None, end_offset: int) -> None:
    """Compare the voters of a snapshot that ends beyond what is known with those that were known before.

    A quorum that was formatted again has the same cluster id, and its log lacks the batches that distinguish it; the
    ids of its voters' directories are new. With kraft.version 0 the log has no such ids.

    Raises:
        CommittedRecordsLostError: no voter is one of before.

    """
    known, new = _directories(before), _directories(now)
    if known and new and not known & new:
        raise CommittedRecordsLostError(
            f"the snapshot of offset {end_offset} has no voter with the directory id of one that was known: the quorum "
            "was formatted again, or all of its voters were replaced since; expected a voter in common"
        )


def _directories(voters: KRaftVoters | None) -> frozenset[UUID]:
    ids = () if voters is None else (each.voter_directory_id for each in voters.voters)
    return frozenset(each for each in ids if each.int)
