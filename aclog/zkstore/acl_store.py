"""ACLs in ZooKeeper: reads, and conditional updates with change events (kafka.security.authorizer.AclAuthorizer)."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from attrs import define, frozen

from aclog.authorizer.acl import ResourcePattern
from aclog.metalog.errors import DecodeError
from aclog.zkstore.client.nodes import CreateNode, DeleteNode, Node, Operation, SetNode
from aclog.zkstore.client.retry import MAX_ATTEMPTS, back_off
from aclog.zkstore.errors import ConflictError, DisconnectedError, StoreError
from aclog.zkstore.znodes.acl_json import AclEntry, decode_acls, encode_acls
from aclog.zkstore.znodes.change_events import encode_event
from aclog.zkstore.znodes.paths import (
    CHANGE_PREFIX,
    RESOURCE_TYPES,
    TREES,
    legacy_paths,
    pattern_of,
    resource_path,
    tree_of,
    type_directory,
    type_of_directory,
)

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient


MAX_NODE_BYTES = (1 << 20) - (1 << 14)
"""Default limit of a ZooKeeper request (jute.maxbuffer), with room for the rest of the transaction."""
NO_VERSION = -2
"""Version of a znode that does not exist (ZkVersion.UnknownVersion)."""

Change: TypeAlias = Callable[[frozenset[AclEntry]], frozenset[AclEntry]]
"""From the current ACLs of a znode to the wanted ones; called again for each attempt."""


@frozen(kw_only=True)
class ResourceAcls:
    """The ACLs of one znode, and its data version for conditional updates (AclAuthorizer.VersionedAcls)."""

    path: str
    pattern: ResourcePattern
    entries: frozenset[AclEntry] = frozenset()
    version: int = NO_VERSION


@frozen(kw_only=True)
class StoreContents:
    """All ACLs by znode path, and the znodes that could not be read as ACLs.

    `unreadable` are resources that could not be decoded; `unknown` are directories of no resource type of Kafka, whose
    children are not read.
    """

    resources: Mapping[str, ResourceAcls]
    unreadable: tuple[DecodeError, ...] = ()
    unknown: tuple[DecodeError, ...] = ()

    def check_readable(self) -> None:
        """Raise DecodeError if any znode could not be decoded: it may hold a DENY."""
        if self.unreadable:
            first, others = self.unreadable[0], len(self.unreadable) - 1
            more = f" (and {others} more nodes)" if others else ""
            raise DecodeError(f"{first.what}{more}", position=first.position, path=first.path)


@define(eq=False, kw_only=True)
class AclStore:
    """ACLs in ZooKeeper, through a connected client that the caller closes. Thread-safe."""

    client: "ZkClient"

    def create_paths(self) -> None:
        """Create the directories that Kafka creates at startup (KafkaZkClient.createAclPaths). Raises StoreError."""
        for tree in TREES:
            self.client.ensure(tree.changes)
            for kind in RESOURCE_TYPES:
                self.client.ensure(f"{tree.root}/{type_directory(kind)}")

    def load(self) -> StoreContents:
        """Read all ACLs. It is not a consistent snapshot, but no znode is older than the call. Raises StoreError."""
        unknown: list[DecodeError] = []
        unreadable: list[DecodeError] = []
        resources = {}
        for acls in self.read_many(self._resource_paths(unknown)):
            if isinstance(acls, DecodeError):
                unreadable.append(acls)
            elif acls.version != NO_VERSION:
                resources[acls.path] = acls
        return StoreContents(resources=resources, unreadable=tuple(unreadable), unknown=tuple(unknown))

    def read_many(self, paths: Iterable[str]) -> Iterator["ResourceAcls | DecodeError"]:
        """Read znodes, in order; one that cannot be decoded gives its error. Raises StoreError."""
        for path, node in self.client.get_many(paths):
            try:
                yield absent(path) if node is None else _decoded(path, node)
            except DecodeError as e:
                yield e

    def _resource_paths(self, unknown: list[DecodeError]) -> Iterator[str]:
        # Kafka ignores directories of unknown types, and so must this; but an operator should learn about them.
        for tree in TREES:
            directories = self.client.children(tree.root)
            for directory in sorted(directories.names) if directories is not None else ():
                path = f"{tree.root}/{directory}"
                if type_of_directory(directory) is None:
                    what = "not a resource type of Kafka: its ACLs are ignored"
                    unknown.append(DecodeError(what, path=path))
                    continue
                children = self.client.children(path)
                yield from (f"{path}/{name}" for name in (children.names if children is not None else ()))

    def read(self, pattern: ResourcePattern) -> ResourceAcls:
        """Read the ACLs of a resource from its current path, not from legacy ones.

        Raises:
            EncodeError: a resource that ZooKeeper cannot hold.
            DecodeError: the znode cannot be decoded.
            StoreError: ZooKeeper is unavailable.

        """
        return self.read_path(resource_path(pattern))

    def read_path(self, path: str) -> ResourceAcls:
        """Read the ACLs of a znode. Raises as `read`."""
        node = self.client.get(path)
        return absent(path) if node is None else _decoded(path, node)

    def read_all(self, pattern: ResourcePattern) -> list[ResourceAcls]:
        """Read the ACLs of a resource from its current path and from existing legacy paths. Raises as `read`."""
        first, *others = (self.read_path(path) for path in (resource_path(pattern), *legacy_paths(pattern)))
        return [first, *(acls for acls in others if acls.version != NO_VERSION)]

    def update(self, path: str, change: Change, *, known: ResourceAcls | None = None) -> ResourceAcls:
        """Change the ACLs of a znode and create its change event in one transaction; return the new ACLs.

        The write is conditional on the version that was read. After a version conflict or a lost response it starts
        over with a read; it waits for a lost connection as long as a session lasts. `known` is an earlier read, which
        saves the first one. A znode without ACLs left is deleted.

        Raises:
            DecodeError: the znode cannot be decoded; it is left unchanged.
            StoreError: too many conflicts, or ZooKeeper is unavailable; in the latter case the change may have been
                applied.

        """
        deadline = time.monotonic() + self.client.settings.session_timeout
        conflicts, lost = 0, None
        for attempt in count():
            try:
                # `known` may be stale. For a write that does not matter, its version is checked; but "nothing to do"
                # must be concluded from a fresh read.
                trusted = known is not None and attempt == 0 and change(known.entries) != known.entries
                before = known if known is not None and trusted else self.read_path(path)
                return self._write(before, change(before.entries))
            except ConflictError as e:
                conflicts += 1
                if conflicts == MAX_ATTEMPTS:
                    raise StoreError(f"{path}: not changed in {conflicts} attempts: {e}") from e
            except DisconnectedError as e:
                lost = lost or e  # the first one may tell why
                if time.monotonic() > deadline:
                    raise lost from e
            back_off(attempt)
        raise AssertionError  # count() is infinite

    def _write(self, before: ResourceAcls, entries: frozenset[AclEntry]) -> ResourceAcls:
        if entries == before.entries:
            return before
        (version, _) = self._commit(before, _operation(before, entries))
        if not entries:
            return absent(before.path)
        return ResourceAcls(path=before.path, pattern=before.pattern, entries=entries, version=version)

    def _commit(self, before: ResourceAcls, operation: Operation) -> list[int]:
        # Kafka writes the znode and its change event in two requests; brokers miss the change if the writer dies in
        # between. One transaction leaves no such gap.
        tree = tree_of(before.pattern.pattern_type)
        event = CreateNode(path=f"{tree.changes}/{CHANGE_PREFIX}", data=encode_event(before.pattern), sequence=True)
        try:
            return self.client.commit((operation, event))
        except ConflictError:
            # The conflict may be a missing parent: create it before the next attempt.
            self._ensure_parents(before)
            raise
        except DisconnectedError as e:
            size = 0 if isinstance(operation, DeleteNode) else len(operation.data)
            if size < MAX_NODE_BYTES:
                raise
            raise DisconnectedError(
                f"{before.path}: {e} when {size:,} bytes were sent for it: a server closes the connection of who sends "
                "more than its jute.maxbuffer, 1 MiB by default"
            ) from e

    def _ensure_parents(self, acls: ResourceAcls) -> None:
        self.client.ensure(tree_of(acls.pattern.pattern_type).changes)
        self.client.ensure(acls.path.rpartition("/")[0])


def acls_at(paths: Iterable[str], resources: Mapping[str, ResourceAcls]) -> Iterator[ResourceAcls]:
    """Return the known ACLs of some paths; those of unknown paths are empty."""
    for path in paths:
        yield resources.get(path) or absent(path)


def _operation(before: ResourceAcls, entries: frozenset[AclEntry]) -> Operation:
    if not entries:
        return DeleteNode(path=before.path, version=before.version)
    if before.version == NO_VERSION:
        return CreateNode(path=before.path, data=encode_acls(entries))
    return SetNode(path=before.path, data=encode_acls(entries), version=before.version)


def _decoded(path: str, node: Node) -> ResourceAcls:
    entries = decode_acls(node.data, path=path)
    return ResourceAcls(path=path, pattern=pattern_of(path), entries=entries, version=node.version)


def absent(path: str) -> ResourceAcls:
    """Return the ACLs of a znode that does not exist: none."""
    return ResourceAcls(path=path, pattern=pattern_of(path))
