"""The rules in ZooKeeper: reading nodes, and changing one so that nothing of another writer is lost."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from attrs import Factory, define, frozen

from aclog.authorizer.acl import ResourcePattern
from aclog.metalog.errors import DecodeError
from aclog.zkstore.acl_json import AclEntry, decode_acls, encode_acls
from aclog.zkstore.change_events import encode_event
from aclog.zkstore.client.nodes import CreateNode, DeleteNode, Node, Operation, SetNode
from aclog.zkstore.errors import ConflictError, DisconnectedError, StoreError
from aclog.zkstore.paths import (
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


NO_VERSION = -2
"""The version of a node that is not there (ZkVersion.UnknownVersion)."""

_MOST_CONFLICTS = 30
_FIRST_BACKOFF, _LONGEST_BACKOFF = 0.005, 0.15
"""Seconds; Kafka tries 11 times, 100 to 150 ms apart."""

Change: TypeAlias = Callable[[frozenset[AclEntry]], frozenset[AclEntry]]
"""From the rules that a node holds to those it is to hold; called again for every attempt."""


@frozen(kw_only=True)
class ResourceRules:
    """What a node holds: the rules of a resource, and the version an update must name. No node: none, NO_VERSION."""

    path: str
    pattern: ResourcePattern
    entries: frozenset[AclEntry] = frozenset()
    version: int = NO_VERSION


@frozen(kw_only=True)
class StoreContents:
    """All rules, by their nodes' paths, and what they are not all of.

    `unreadable` are nodes that say nothing clear; `unknown` are directories of no type that Kafka knows, into which
    neither it nor we look.
    """

    resources: Mapping[str, ResourceRules]
    unreadable: tuple[DecodeError, ...] = ()
    unknown: tuple[DecodeError, ...] = ()

    def check_readable(self) -> None:
        """Raise DecodeError if a node says nothing clear: whether it denies is not known then."""
        if self.unreadable:
            first, others = self.unreadable[0], len(self.unreadable) - 1
            more = f" (and {others} more nodes)" if others else ""
            raise DecodeError(f"{first.what}{more}", position=first.position, path=first.path)


@define(eq=False, kw_only=True)
class ZkStore:
    """Rules in ZooKeeper through a connected client, which whoever opened it closes. Any thread may call it."""

    client: "ZkClient"
    _random: random.Random = Factory(random.Random)

    def create_paths(self) -> None:
        """Make the directories that Kafka makes when it starts (KafkaZkClient.createAclPaths). Raises StoreError."""
        for tree in TREES:
            self.client.ensure(tree.changes)
            for kind in RESOURCE_TYPES:
                self.client.ensure(f"{tree.root}/{type_directory(kind)}")

    def load(self) -> StoreContents:
        """Every rule; not one moment of the store, but no older than the call. Raises StoreError."""
        unknown: list[DecodeError] = []
        unreadable: list[DecodeError] = []
        resources = {}
        for rules in self.read_many(self._resource_paths(unknown)):
            if isinstance(rules, DecodeError):
                unreadable.append(rules)
            elif rules.version != NO_VERSION:
                resources[rules.path] = rules
        return StoreContents(resources=resources, unreadable=tuple(unreadable), unknown=tuple(unknown))

    def read_many(self, paths: Iterable[str]) -> Iterator["ResourceRules | DecodeError"]:
        """What these nodes hold, in their order, or why that is not clear. Raises StoreError."""
        for path, node in self.client.get_many(paths):
            try:
                yield absent(path) if node is None else _rules(path, node)
            except DecodeError as e:
                yield e

    def _resource_paths(self, unknown: list[DecodeError]) -> Iterator[str]:
        for tree in TREES:
            directories = self.client.children(tree.root)
            for directory in sorted(directories.names) if directories is not None else ():
                path = f"{tree.root}/{directory}"
                if type_of_directory(directory) is None:
                    what = "no resource type that Kafka knows: its rules count for nothing"
                    unknown.append(DecodeError(what, path=path))
                    continue
                children = self.client.children(path)
                yield from (f"{path}/{name}" for name in (children.names if children is not None else ()))

    def read(self, pattern: ResourcePattern) -> ResourceRules:
        """The rules of one resource, now; of its own node, not of a legacy one.

        Raises:
            EncodeError: a resource that ZooKeeper cannot hold.
            DecodeError: a node that says nothing clear.
            StoreError: ZooKeeper did not answer.

        """
        return self.read_path(resource_path(pattern))

    def read_path(self, path: str) -> ResourceRules:
        """The rules in one node, now. Raises as `read`."""
        node = self.client.get(path)
        return absent(path) if node is None else _rules(path, node)

    def read_all(self, pattern: ResourcePattern) -> list[ResourceRules]:
        """The rules of one resource, now, by node: its own first, then legacy ones that are there. Raises as `read`."""
        first, *others = (self.read_path(path) for path in (resource_path(pattern), *legacy_paths(pattern)))
        return [first, *(rules for rules in others if rules.version != NO_VERSION)]

    def update(self, path: str, change: Change, *, known: ResourceRules | None = None) -> ResourceRules:
        """Change a node's rules, and tell of it in one transaction; what it holds afterwards.

        Optimistic: the write names the version that was read, and all begins anew if that is gone, or if the answer
        was lost; for a lost connection it waits as long as a session lasts. `known` is what was read before, and spares
        the first reading. Without rules left, the node goes.

        Raises:
            DecodeError: the node says nothing clear: it is left as it is.
            StoreError: too many others wrote at once, or ZooKeeper did not answer; then the change may have happened.

        """
        deadline = time.monotonic() + self.client.settings.session_timeout
        conflicts = 0
        for attempt in count():
            try:
                # What is known may be out of date: that there is nothing to do is said of what stands there now only.
                trusted = known is not None and attempt == 0 and change(known.entries) != known.entries
                before = known if known is not None and trusted else self.read_path(path)
                return self._write(before, change(before.entries))
            except ConflictError as e:
                conflicts += 1
                if conflicts == _MOST_CONFLICTS:
                    raise StoreError(f"{path}: not changed in {conflicts} attempts: {e}") from e
            except DisconnectedError:
                if time.monotonic() > deadline:
                    raise
            self._back_off(attempt)
        raise AssertionError  # it counts for ever

    def _write(self, before: ResourceRules, entries: frozenset[AclEntry]) -> ResourceRules:
        if entries == before.entries:
            return before
        (version, _) = self._commit(before, _operation(before, entries))
        if not entries:
            return absent(before.path)
        return ResourceRules(path=before.path, pattern=before.pattern, entries=entries, version=version)

    def _commit(self, before: ResourceRules, operation: Operation) -> list[int]:
        tree = tree_of(before.pattern.pattern_type)
        event = CreateNode(path=f"{tree.changes}/{CHANGE_PREFIX}", data=encode_event(before.pattern), sequence=True)
        try:
            return self.client.commit((operation, event))
        except ConflictError:
            self._ensure_parents(before)
            raise

    def _ensure_parents(self, rules: ResourceRules) -> None:
        """Make what a write needs, where a store has never been used, or somebody removed it."""
        self.client.ensure(tree_of(rules.pattern.pattern_type).changes)
        self.client.ensure(rules.path.rpartition("/")[0])

    def _back_off(self, attempt: int) -> None:
        longest = min(_FIRST_BACKOFF * 2 ** min(attempt, 10), _LONGEST_BACKOFF)
        time.sleep(longest * (0.5 + self._random.random() / 2))


def rules_at(paths: Iterable[str], resources: Mapping[str, ResourceRules]) -> Iterator[ResourceRules]:
    """What is known of these nodes; an absent one where nothing is."""
    for path in paths:
        yield resources.get(path) or absent(path)


def _operation(before: ResourceRules, entries: frozenset[AclEntry]) -> Operation:
    if not entries:
        return DeleteNode(path=before.path, version=before.version)
    if before.version == NO_VERSION:
        return CreateNode(path=before.path, data=encode_acls(entries))
    return SetNode(path=before.path, data=encode_acls(entries), version=before.version)


def _rules(path: str, node: Node) -> ResourceRules:
    entries = decode_acls(node.data, path=path)
    return ResourceRules(path=path, pattern=pattern_of(path), entries=entries, version=node.version)


def absent(path: str) -> ResourceRules:
    """What is held by a node that is not there."""
    return ResourceRules(path=path, pattern=pattern_of(path))
