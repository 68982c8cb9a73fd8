"""Opening a ZooKeeper session: kazoo is imported only then."""

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from aclog.authorizer.control import INVALID_REQUEST
from aclog.authorizer.interface import AclRequestError
from aclog.installation import needs_extra
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.values import frozen
from aclog.zookeeper.client import ConflictError, StoreError, ZkSettings
from aclog.zookeeper.znodes import integer_field, json_object

if TYPE_CHECKING:
    from aclog.zookeeper.session import ZkClient


# Opens a ZooKeeper client. kazoo is the extra `zookeeper`; it is imported only when a client is opened.


def open_client(settings: ZkSettings) -> "ZkClient":
    """Open a connected client, which the caller closes.

    Raises:
        ConfigError: kazoo is not installed, the chroot is missing, or ZooKeeper rejects the settings.
        StoreError: no server responded within the connection timeout.

    """
    try:
        from aclog.zookeeper.session import connected_client  # noqa: PLC0415  # kazoo is an extra
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] != "kazoo":
            raise
        raise ConfigError(needs_extra("ZooKeeper", "kazoo", "zookeeper")) from e
    return connected_client(settings)


# Whether a KRaft controller owns a ZooKeeper: its cluster is being migrated to KRaft, or was (KIP-866).
#
# Such a controller writes a resource's ACLs as its own log has them, with its next change: another writer's changes to
# ZooKeeper until then are lost (seen with Kafka 3.9.1). Once the migration is over it no longer writes there.


_CONTROLLER = "/controller"
"""The controller of the cluster (ControllerZNode); the node of a KRaft controller stays when the cluster ends."""
_EPOCH = "kraftControllerEpoch"
"""-1 of a broker; brokers before Kafka 3.4 write none."""


@frozen(kw_only=True)
class KraftController:
    """The KRaft controller that owns a ZooKeeper; `where` is that."""

    node_id: int
    where: str

    @property
    def warning(self) -> str:
        """Return the warning about ACLs read from this ZooKeeper."""
        return f"{self._text}: its ACLs may no longer be in ZooKeeper; read them from its brokers (--bootstrap-server)"

    @property
    def error(self) -> AclRequestError:
        """Why ACLs cannot be changed."""
        return AclRequestError(
            INVALID_REQUEST,
            f"{self._text}, and overwrites other changes in ZooKeeper: change its ACLs by its brokers "
            "(--bootstrap-server)",
        )

    @property
    def _text(self) -> str:
        return (
            f"{self.where}: KRaft controller {self.node_id} owns the cluster, which is being migrated to KRaft, or was"
        )


def kraft_controller(client: "ZkClient") -> KraftController | None:
    """Return the KRaft controller that owns a ZooKeeper; None if none does.

    Raises:
        DecodeError: the znode of the controller cannot be decoded. StoreError: ZooKeeper is unavailable.

    """
    node = client.get(_CONTROLLER)
    if node is None:
        return None
    fields = json_object(node.data, path=_CONTROLLER)
    try:
        if _EPOCH not in fields or integer_field(fields, _EPOCH) < 0:
            return None
        return KraftController(node_id=integer_field(fields, "brokerid"), where=client.settings.where)
    except DecodeError as error:
        raise error.at(path=_CONTROLLER) from None


def check_not_owned(client: "ZkClient") -> None:
    """Check that writes to a ZooKeeper are not overwritten.

    Raises:
        AclRequestError: a KRaft controller owns it. DecodeError, StoreError: as `kraft_controller`.

    """
    owner = kraft_controller(client)
    if owner is not None:
        raise owner.error


# Retries of read-modify-write updates, after version conflicts and lost connections.


MAX_ATTEMPTS = 30
_FIRST_BACKOFF_S, _MAX_BACKOFF_S = 0.005, 0.15
"""Kafka makes 11 attempts, 100 to 150 ms apart (AclAuthorizer.retryBackoffMs)."""


def retried(client: "ZkClient", attempt: Callable[[], None]) -> None:
    """Attempt an update until it succeeds.

    A request whose response was lost may have been applied, so each attempt must begin with a read.

    Raises:
        StoreError: too many conflicts with other writers, or ZooKeeper was unavailable for the session timeout.

    """
    deadline = time.monotonic() + client.settings.session_timeout
    failure: StoreError | None = None
    for number in range(MAX_ATTEMPTS):
        try:
            return attempt()
        except ConflictError as error:
            failure = error
        except StoreError as error:
            failure = error
            if time.monotonic() > deadline:
                raise
        back_off(number)
    raise StoreError(f"not changed in {MAX_ATTEMPTS} attempts: {failure}") from failure


def back_off(attempt: int) -> None:
    """Sleep before the attempt after this one (counted from 0): exponential backoff with jitter."""
    longest = min(_FIRST_BACKOFF_S * 2 ** min(attempt, 10), _MAX_BACKOFF_S)
    # Without jitter, writers that conflicted once would wake together and conflict again.
    time.sleep(longest * random.uniform(0.5, 1))  # noqa: S311  # not a secret
