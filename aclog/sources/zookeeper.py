"""The rules of a Kafka up to 3.9, in its ZooKeeper: read as a state, and changed as kafka-acls.sh did."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from attrs import define, field

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.errors import ConfigError
from aclog.snapshots.image import Image
from aclog.snapshots.moments import Moment, moment_text
from aclog.sources.paths import Notify
from aclog.zkstore.acl_store import AclStore, StoreContents
from aclog.zkstore.authorizer.settings import PREFIX
from aclog.zkstore.client.connect import open_client
from aclog.zkstore.client.settings import zk_settings


def store_properties(texts: Sequence[str]) -> dict[str, str]:
    """The properties that --authorizer-properties flags give. Raises ConfigError for one that is not KEY=VALUE."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--authorizer-properties {text!r}: expected KEY=VALUE, as zookeeper.connect=HOST:PORT")
        found[key.strip()] = value.strip()
    return found


@contextmanager
def open_store(properties: Mapping[str, str]) -> Iterator[AclStore]:
    """The store that the properties of its authorizer name.

    Raises:
        ConfigError: properties that cannot be honoured; kazoo is not installed.
        StoreError: no server answers.

    """
    client = open_client(zk_settings(properties, prefix=PREFIX))
    try:
        yield AclStore(client=client)
    finally:
        client.close()


def read_everything(store: AclStore) -> StoreContents:
    """All rules. Raises DecodeError: a node that says nothing clear."""
    contents = store.load()
    contents.check_readable()
    return contents


@define(eq=False)
class ZooKeeperSource:
    """Rules without ids, and nothing else; without a past."""

    properties: Mapping[str, str]
    notify: Notify

    log: None = field(default=None, init=False)
    """Nothing to follow."""
    writable_log: None = field(default=None, init=False)
    """Nothing that is changed as a directory."""

    @property
    def name(self) -> str:
        """The servers that were given."""
        return zk_settings(self.properties, prefix=PREFIX).where

    def image(self) -> Image:
        """What the store holds now, read anew each time.

        Raises:
            MetadataError: ZooKeeper does not answer, or a node says nothing clear.

        """
        with open_store(self.properties) as store:
            contents = read_everything(store)
        for problem in contents.unknown:
            self.notify(str(problem))
        rules = {entry.on(node.pattern) for node in contents.resources.values() for entry in node.entries}
        return Image(acls=AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in rules))

    def image_at(self, moment: Moment) -> Image:
        """Raises ConfigError: ZooKeeper keeps no past."""
        raise ConfigError(f"{self.name}: as of {moment_text(moment)}: ZooKeeper tells the newest state only")

    def close(self) -> None:
        """Nothing is held."""
