"""Which release of Kafka brought what a request needs, for messages about older servers."""

from collections.abc import Iterable
from itertools import product

from attrs import frozen

from aclog.nodes.wire.api_keys import (
    CREATE_ACLS,
    CREATE_DELEGATION_TOKEN,
    DELETE_ACLS,
    DESCRIBE_ACLS,
    DESCRIBE_CLUSTER,
    DESCRIBE_DELEGATION_TOKEN,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    EXPIRE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
)


@frozen
class _Release:
    zookeeper: str
    """The release with ZooKeeper."""
    kraft: str
    feature: str

    def __str__(self) -> str:
        kraft = "" if self.kraft == self.zookeeper else f" ({self.kraft} in KRaft mode)"
        return f"Kafka {self.zookeeper}{kraft}, the first with {self.feature}"


_ACLS = DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS
_TOKENS = CREATE_DELEGATION_TOKEN, RENEW_DELEGATION_TOKEN, EXPIRE_DELEGATION_TOKEN, DESCRIBE_DELEGATION_TOKEN


def _all(apis: Iterable[int], version: int, release: _Release) -> dict[tuple[int, int], _Release]:
    return dict.fromkeys(product(apis, (version,)), release)


# Read in the message schemas (common/message/*.json) of Kafka's releases: validVersions, and since 2.8 listeners.
_RELEASES = {
    **_all(_ACLS, 1, _Release("2.0", "3.2", "prefixed ACLs (KIP-290)")),
    **_all(_ACLS, 3, _Release("3.3", "3.3", "ACLs on USER resources (KIP-373)")),
    **_all(_TOKENS, 1, _Release("2.0", "3.6", "delegation tokens (KIP-48) in the form that aclog knows")),
    **_all(_TOKENS, 3, _Release("3.3", "3.6", "delegation tokens for other users (KIP-373)")),
    (DESCRIBE_USER_SCRAM_CREDENTIALS, 0): _Release("2.7", "3.5", "a list of SCRAM users (KIP-554)"),
    (DESCRIBE_CLUSTER, 0): _Release("2.8", "2.8", "DescribeCluster (KIP-700)"),
}


def release_with(api_key: int, version: int) -> str | None:
    """Return the release that brought this version of an API, and what it is for; None if that is not listed."""
    release = _RELEASES.get((api_key, version))
    return None if release is None else str(release)
