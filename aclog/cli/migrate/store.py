"""A ZooKeeper that `aclog migrate` reads or writes: connected, and watched."""

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
from aclog.terminal.progress import progress
from aclog.zkstore.client.connect import open_client
from aclog.zkstore.client.settings import ZkSettings, zk_settings
from aclog.zkstore.migration.comparison import Decide, Request
from aclog.zkstore.migration.store_watch import StoreWatch

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient

_IN_FLIGHT = 256
"""Requests on their way at a time, while a store is read whole."""


def store_settings(connect: str, tls_config: Path | None, *, is_written: bool) -> ZkSettings:
    """Where the store is; only one that is written may be made. Raises ConfigError."""
    properties = {} if tls_config is None else read_properties(tls_config)[0]
    settings = zk_settings({**properties, "zookeeper.connect": connect})
    return evolve(settings, in_flight=max(settings.in_flight, _IN_FLIGHT), make_chroot=is_written)


@contextmanager
def connected(settings: ZkSettings) -> Iterator["ZkClient"]:
    """A client for the time of a migration. Raises ConfigError, StoreError."""
    with closing(open_client(settings)) as client:
        yield client


def patience(settings: ZkSettings) -> float:
    """How long a lost connection is waited for, in seconds."""
    return settings.session_timeout + settings.connection_timeout


def read_store(client: "ZkClient", *, may_be_new: bool = False) -> StoreWatch:
    """Everything in a store, which is watched from then on.

    Raises:
        ConfigError: nothing of Kafka's is there; `may_be_new`: then it is an empty one.
        StoreError: it does not answer.

    """
    with progress("reading ZooKeeper") as advance:
        watch = StoreWatch(client, lambda count: advance(count, None))
        watch.catch_up(patience(client.settings))
    if not watch.has_directories() and not may_be_new:
        raise ConfigError(f"{client.settings.where}: no /kafka-acl, /config/users or tokens: is the chroot correct?")
    return watch


def rules_decide(acls: AclsImage) -> Decide:
    """The decisions of these rules, for who is no super user."""

    def decide(request: Request) -> bool:
        """Whether the image allows a request."""
        asked = (request.principal, request.host, request.operation, request.resource_type, request.name)
        try:
            return acls.verdict(*asked) is Verdict.ALLOW
        except InvalidRequestError:  # a principal on which Kafka throws, and so denies
            return False

    return decide


def store_decides(watch: StoreWatch) -> Decide:
    """The decisions of Kafka 3.9's AclAuthorizer on the rules of a store."""
    rules = AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in watch.state().state.acls)
    return rules_decide(rules.with_options(documented=True, cidr=False))
