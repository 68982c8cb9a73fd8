"""The state source of AclAuthorizer (Kafka up to 3.9): the ACLs in ZooKeeper."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

from attrs import evolve, field

from aclog.authorizer.acl import ChangePlace, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.settings import Generation
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define
from aclog.snapshots.image import Image
from aclog.snapshots.moments import Moment, moment_text
from aclog.sources.live import opened_zookeeper
from aclog.sources.notes import Notify
from aclog.terminal.output import warn
from aclog.zookeeper.acl_store import AclStore, StoreContents
from aclog.zookeeper.authorizer import PREFIX, PROTOCOL_VERSION, takes_prefixed
from aclog.zookeeper.client import KEYS, zk_settings
from aclog.zookeeper.connect import kraft_controller

_USED_KEYS = frozenset((*KEYS, *(f"{PREFIX}{key}" for key in KEYS), PROTOCOL_VERSION))


def store_properties(texts: Sequence[str]) -> dict[str, str]:
    """Return the properties of --authorizer-properties flags; warn of those that are not used.

    Raises:
        ConfigError: one is not KEY=VALUE, or names a version that Kafka does not have.

    """
    properties = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ConfigError(
                f"--authorizer-properties {text!r}: expected KEY=VALUE, such as zookeeper.connect=HOST:PORT"
            )
        properties[key.strip()] = value.strip()
    takes_prefixed(properties)
    for key in sorted(properties.keys() - _USED_KEYS):
        near = get_close_matches(key, sorted(_USED_KEYS), n=1, cutoff=0.85)
        warn(f"--authorizer-properties {key}: not used{f' (did you mean {near[0]}?)' if near else ''}")
    return properties


@contextmanager
def open_store(properties: Mapping[str, str]) -> Iterator[AclStore]:
    """Open the ZooKeeper that the properties of its authorizer name.

    A chroot that is not there is not made: a misspelled one would be a cluster without rules.

    Raises:
        ConfigError: an unsupported property, or a chroot that is not there; kazoo is not installed.
        StoreError: no server responds.

    """
    client = opened_zookeeper(evolve(zk_settings(properties, prefix=PREFIX), make_chroot=False))
    try:
        yield AclStore(client=client)
    finally:
        client.close()


def read_everything(store: AclStore) -> StoreContents:
    """Return all ACLs. Raises DecodeError: a znode with ACLs that cannot be decoded."""
    contents = store.load()
    contents.check_readable()
    return contents


@define(eq=False)
class ZooKeeperSource:
    """ACLs without ids; no credentials, no tokens and no history."""

    properties: Mapping[str, str]
    notify: Notify

    log: None = field(default=None, init=False)
    """None: there is no log to follow."""
    change_place: ChangePlace = field(factory=ChangePlace, init=False)
    """A cluster with an unknown address."""

    @property
    def name(self) -> str:
        """The servers that were given."""
        return zk_settings(self.properties, prefix=PREFIX).where

    def image(self) -> Image:
        """Return the current state, read on each call.

        Raises:
            MetadataError: ZooKeeper does not respond, or a znode with ACLs cannot be decoded.

        """
        with open_store(self.properties) as store:
            owner = kraft_controller(store.client)
            contents = read_everything(store)
        if owner is not None:
            self.notify(owner.warning)
        for problem in contents.unknown:
            self.notify(str(problem))
        rules = {entry.on(node.pattern) for node in contents.resources.values() for entry in node.entries}
        acls = AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in rules)
        return Image(acls=acls, generation=Generation.V4_3)  # no Kafka with ZooKeeper has ranges

    def image_at(self, moment: Moment) -> Image:
        """Raise ConfigError: ZooKeeper keeps no history."""
        raise ConfigError(f"{self.name}: as of {moment_text(moment)}: ZooKeeper has the newest state only")

    def freshness(self) -> None:
        """Return None: ZooKeeper is read for each state."""

    def close(self) -> None:
        """Do nothing: no connection is kept."""
