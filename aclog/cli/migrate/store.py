"""The ZooKeeper of a migration: its settings, a connected client, and a watched copy of its contents."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.acls_image import AclsImage, Verdict
from aclog.authorizer.errors import InvalidRequestError
from aclog.metalog.errors import ConfigError
from aclog.nodes.config.java_properties import read_properties
from aclog.sources.other_side import opened_zookeeper
from aclog.terminal.notices import warn
from aclog.terminal.progress import progress
from aclog.zkstore.client.settings import ZkSettings, zk_settings
from aclog.zkstore.kraft_controller import kraft_controller
from aclog.zkstore.migration.comparison import Decide, Request
from aclog.zkstore.migration.store_watch import StoreWatch

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient

_IN_FLIGHT = 256
"""Pipelined requests while everything is read; Kafka's default of 10 would take minutes for large stores."""


def store_settings(connect: str, tls_config: Path | None, *, is_written: bool) -> ZkSettings:
    """Return the settings of the client; only a store that is written gets a missing chroot. Raises ConfigError."""
    properties = {} if tls_config is None else read_properties(tls_config)[0]
    settings = zk_settings({**properties, "zookeeper.connect": connect})
    return evolve(settings, in_flight=max(settings.in_flight, _IN_FLIGHT), make_chroot=is_written)


@contextmanager
def connected(settings: ZkSettings) -> Iterator["ZkClient"]:
    """Connect for the duration of a migration; warn if a KRaft controller owns the ZooKeeper.

    Raises ConfigError, StoreError; DecodeError: as aclog.zkstore.kraft_controller.kraft_controller.
    """
    with closing(opened_zookeeper(settings)) as client:
        owner = kraft_controller(client)
        if owner is not None:
            warn(owner.warning)
        yield client


def patience(settings: ZkSettings) -> float:
    """Return how many seconds to wait for a lost connection."""
    return settings.session_timeout + settings.connection_timeout


def read_store(client: "ZkClient", *, may_be_new: bool = False) -> StoreWatch:
    """Read everything in a store, and watch it from then on.

    Raises:
        ConfigError: it has none of Kafka's directories, and is not allowed to be new.
        StoreError: ZooKeeper is unavailable.

    """
    with progress("reading ZooKeeper", "znodes") as advance:
        watch = StoreWatch(client, lambda count: advance(count, None))
        watch.catch_up(patience(client.settings))
    if not watch.has_directories() and not may_be_new:
        raise ConfigError(
            f"{client.settings.where}: no /kafka-acl, /config/users or /delegation_token: is the chroot correct?"
        )
    return watch


def decide_by(acls: AclsImage) -> Decide:
    """Return the decisions of an image of ACLs, without super users."""

    def decide(request: Request) -> bool:
        """Decide one request."""
        arguments = (request.principal, request.host, request.operation, request.resource_type, request.name)
        try:
            return acls.verdict(*arguments) is Verdict.ALLOW
        except InvalidRequestError:  # Kafka throws for such a principal, and denies the request
            return False

    return decide


def store_decides(watch: StoreWatch) -> Decide:
    """Return the decisions of Kafka 3.9's AclAuthorizer with the ACLs of a store."""
    image = AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in watch.state().state.acls)
    return decide_by(image.with_options(documented=True, cidr=False))
