"""ACLs in ZooKeeper: reads, conditional updates with change events, and following them by these events."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from attrs import field

from aclog.authorizer.acl import ResourcePattern
from aclog.metalog.errors import DecodeError, EncodeError, MetadataError
from aclog.metalog.values import define, frozen
from aclog.zookeeper import znodes
from aclog.zookeeper.client import (
    Children,
    ConflictError,
    CreateNode,
    DeleteNode,
    DisconnectedError,
    Node,
    Operation,
    SetNode,
    StoreError,
)
from aclog.zookeeper.connect import MAX_ATTEMPTS, back_off

if TYPE_CHECKING:
    from aclog.zookeeper.session import ZkClient


# ACLs in ZooKeeper: reads, and conditional updates with change events (kafka.security.authorizer.AclAuthorizer).


MAX_NODE_BYTES = (1 << 20) - (1 << 14)
"""Default limit of a ZooKeeper request (jute.maxbuffer), with room for the rest of the transaction."""
NO_VERSION = -2
"""Version of a znode that does not exist (ZkVersion.UnknownVersion)."""

Change: TypeAlias = Callable[[frozenset[znodes.AclEntry]], frozenset[znodes.AclEntry]]
"""From the current ACLs of a znode to the wanted ones; called again for each attempt."""


@frozen(kw_only=True)
class ResourceAcls:
    """The ACLs of one znode, and its data version for conditional updates (AclAuthorizer.VersionedAcls)."""

    path: str
    pattern: ResourcePattern
    entries: frozenset[znodes.AclEntry] = frozenset()
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
        for tree in znodes.TREES:
            self.client.ensure(tree.changes)
            for kind in znodes.RESOURCE_TYPES:
                self.client.ensure(f"{tree.root}/{znodes.type_directory(kind)}")

    def load(self) -> StoreContents:
        """Read all ACLs. It is not a consistent snapshot, but no znode is older than the call.

        Raises:
            StoreError: ZooKeeper is unavailable, or lists znodes that it does not have.

        """
        unknown: list[DecodeError] = []
        unreadable: list[DecodeError] = []
        resources = {}
        vanished: dict[str, set[str]] = {}
        for acls in self.read_many(self._resource_paths(unknown)):
            if isinstance(acls, DecodeError):
                unreadable.append(acls)
            elif acls.version != NO_VERSION:
                resources[acls.path] = acls
            else:
                parent, _, name = acls.path.rpartition("/")
                vanished.setdefault(parent, set()).add(name)
        self._check_vanished(vanished)
        return StoreContents(resources=resources, unreadable=tuple(unreadable), unknown=tuple(unknown))

    def _check_vanished(self, vanished: Mapping[str, set[str]]) -> None:
        """Check that znodes which were not found are not listed either: each may hold a DENY. Raises StoreError."""
        for parent, names in vanished.items():
            children = self.client.children(parent)
            if listed := names.intersection(children.names if children is not None else ()):
                where = self.client.settings.where
                raise StoreError(
                    f"{where}: {parent}/{min(listed)} is listed, but does not exist: run the command again"
                )

    def read_many(self, paths: Iterable[str]) -> Iterator["ResourceAcls | DecodeError"]:
        """Read znodes, in order; one that cannot be decoded gives its error. Raises StoreError."""
        for path, node in self.client.get_many(paths):
            try:
                yield absent(path) if node is None else _decoded(path, node)
            except DecodeError as e:
                yield e

    def _resource_paths(self, unknown: list[DecodeError]) -> Iterator[str]:
        # Kafka ignores directories of unknown types, and so must this; but an operator should know about them.
        for tree in znodes.TREES:
            directories = self.client.children(tree.root)
            for directory in sorted(directories.names) if directories is not None else ():
                path = f"{tree.root}/{directory}"
                if znodes.type_of_directory(directory) is None:
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
        return self.read_path(znodes.resource_path(pattern))

    def read_path(self, path: str) -> ResourceAcls:
        """Read the ACLs of a znode. Raises as `read`."""
        node = self.client.get(path)
        return absent(path) if node is None else _decoded(path, node)

    def read_all(self, pattern: ResourcePattern) -> list[ResourceAcls]:
        """Read the ACLs of a resource from its current path and from existing legacy paths. Raises as `read`."""
        first, *others = (
            self.read_path(path) for path in (znodes.resource_path(pattern), *znodes.legacy_paths(pattern))
        )
        return [first, *(acls for acls in others if acls.version != NO_VERSION)]

    def update(self, path: str, change: Change, *, last_read: ResourceAcls | None = None) -> ResourceAcls:
        """Change the ACLs of a znode and create its change event in one transaction; return the new ACLs.

        The write is conditional on the version that was read. After a version conflict or a lost response it starts
        over with a read; it waits for a lost connection as long as a session lasts. `last_read` is an earlier read,
        which saves the first one. A znode without ACLs left is deleted.

        Raises:
            DecodeError: the znode cannot be decoded; it is left unchanged.
            StoreError: too many conflicts, or ZooKeeper is unavailable; in the latter case the change may have been
                applied.

        """
        deadline = time.monotonic() + self.client.settings.session_timeout
        conflicts, lost = 0, None
        for attempt in count():
            try:
                # `last_read` may be stale. For a write that does not matter, its version is checked; but "nothing to
                # do" must be concluded from a fresh read.
                trusted = last_read is not None and attempt == 0 and change(last_read.entries) != last_read.entries
                before = last_read if last_read is not None and trusted else self.read_path(path)
                return self._write(before, change(before.entries))
            except ConflictError as e:
                conflicts += 1
                if conflicts == MAX_ATTEMPTS:
                    raise StoreError(f"{path}: not changed in {conflicts} attempts: {e}") from e
            except DisconnectedError as e:
                lost = lost or e  # the first one may have the cause
                if time.monotonic() > deadline:
                    raise lost from e
            back_off(attempt)
        raise AssertionError  # count() is infinite

    def _write(self, before: ResourceAcls, entries: frozenset[znodes.AclEntry]) -> ResourceAcls:
        if entries == before.entries:
            return before
        (version, _) = self._commit(before, _operation(before, entries))
        if not entries:
            return absent(before.path)
        return ResourceAcls(path=before.path, pattern=before.pattern, entries=entries, version=version)

    def _commit(self, before: ResourceAcls, operation: Operation) -> list[int]:
        # Kafka writes the znode and its change event in two requests; brokers miss the change if the writer dies in
        # between. One transaction leaves no such gap.
        tree = znodes.tree_of(before.pattern.pattern_type)
        event = CreateNode(
            path=f"{tree.changes}/{znodes.CHANGE_PREFIX}", data=znodes.encode_event(before.pattern), sequence=True
        )
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
                f"{before.path}: {e} when {size:,} bytes were sent for it: ZooKeeper closes a connection on more "
                "than its jute.maxbuffer, 1 MiB by default"
            ) from e

    def _ensure_parents(self, acls: ResourceAcls) -> None:
        self.client.ensure(znodes.tree_of(acls.pattern.pattern_type).changes)
        self.client.ensure(acls.path.rpartition("/")[0])


def acls_at(paths: Iterable[str], resources: Mapping[str, ResourceAcls]) -> Iterator[ResourceAcls]:
    """Return the known ACLs of some paths; those of unknown paths are empty."""
    for path in paths:
        yield resources.get(path) or absent(path)


def _operation(before: ResourceAcls, entries: frozenset[znodes.AclEntry]) -> Operation:
    if not entries:
        return DeleteNode(path=before.path, version=before.version)
    if before.version == NO_VERSION:
        return CreateNode(path=before.path, data=znodes.encode_acls(entries))
    return SetNode(path=before.path, data=znodes.encode_acls(entries), version=before.version)


def _decoded(path: str, node: Node) -> ResourceAcls:
    entries = znodes.decode_acls(node.data, path=path)
    return ResourceAcls(path=path, pattern=znodes.pattern_of(path), entries=entries, version=node.version)


def absent(path: str) -> ResourceAcls:
    """Return the ACLs of a znode that does not exist: none."""
    return ResourceAcls(path=path, pattern=znodes.pattern_of(path))


# Follows the ACLs in ZooKeeper by their change events (kafka.common.ZkNodeChangeNotificationListener).


_log = logging.getLogger(__name__)

_RETRY_S = 0.5
_EVENTS_PER_STEP = 256
"""Events that are processed between two checks whether to stop."""

CHANGE_EXPIRATION_MS = 15 * 60 * 1000
"""How long change events are kept (ZkNodeChangeNotificationListener)."""
_PURGE_INTERVAL_S = 60.0


class _MissedEventsError(Exception):
    """Change events were purged before they were read, or cannot be decoded: all ACLs must be reloaded."""


@define(eq=False, kw_only=True)
class StoreFollower:
    """Thread that keeps a copy of the store's ACLs up to date.

    ZooKeeper numbers change events without gaps, so a missing number shows that an event was purged before it was read;
    all ACLs are reloaded then, and also after an event that cannot be decoded.

    `replaced` is called with everything, `changed` with the new ACLs of some znodes. Both calls, and the reads before
    them, happen under `lock`: a caller that updates the store and its own copy under the same lock is never overwritten
    by an older read.
    """

    store: AclStore
    replaced: Callable[[StoreContents], None]
    changed: Callable[[Sequence[ResourceAcls]], None]
    lock: threading.RLock
    _processed: dict[str, int] = field(factory=dict, init=False)
    """Sequence number of the next event to process, by the parent path of the events."""
    _unreadable: dict[str, DecodeError] = field(factory=dict, init=False)
    _stale: str | None = field(default="not loaded yet", init=False)
    _wake: threading.Event = field(factory=threading.Event, init=False)
    _closing: bool = field(default=False, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _purged: float = field(default=0.0, init=False)

    def start(self) -> None:
        """Load all ACLs, then follow changes in a thread.

        Raises:
            StoreError: ZooKeeper is unavailable.
            DecodeError: a znode cannot be decoded: it may hold a DENY, so no request may be allowed.

        """
        self.store.client.listen(self._connection_changed)
        self.store.create_paths()
        self._reload().check_readable()
        self._stale = None
        self._thread = threading.Thread(target=self._follow, name="zk-acl-changes", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the thread; the store's client stays open."""
        self._closing = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def stale(self) -> str | None:
        """Why the copy may be older than the store; None if it is up to date."""
        if self._stale is not None:
            return self._stale
        if not self.store.client.connected:
            return self._lost
        problems = list(self._unreadable.values())
        return str(problems[0]) if problems else None

    @property
    def _lost(self) -> str:
        return f"{self.store.client.settings.where}: the connection is lost"

    def _connection_changed(self, connected: bool) -> None:
        # Runs in kazoo's thread and must not block; the follower's own thread catches up.
        if not connected and self._stale is None and not self._closing:
            self._stale = self._lost
            _log.warning("%s: authorizing with the last known ACLs", self._stale)
        self._wake.set()

    def _follow(self) -> None:
        while not self._closing:
            self._wake.wait(None if self._stale is None else _RETRY_S)
            # Cleared before the read: an event that arrives during it wakes the thread again.
            self._wake.clear()
            try:
                if self.store.client.connected:
                    self._catch_up()
            except MetadataError as e:
                self._set_stale(str(e))
            except Exception as e:  # noqa: BLE001  # a thread that died silently would leave outdated ACLs in force
                _log.exception("%s", self.store.client.settings.where)
                self._set_stale(f"{type(e).__name__}: {e}")

    def _set_stale(self, why: str) -> None:
        if self._stale is None and not self._closing:
            _log.warning("%s: authorizing with the last known ACLs", why)
        self._stale = why

    def _catch_up(self) -> None:
        try:
            for tree in znodes.TREES:
                self._process(tree)
        except _MissedEventsError as e:
            _log.warning("%s: %s: reloading all ACLs", self.store.client.settings.where, e)
            self._reload()
        if self._stale is not None:
            _log.info("%s: up to date again", self.store.client.settings.where)
            self._stale = None
        self._purge()

    def _reload(self) -> StoreContents:
        with self.lock:
            # Event numbers before ACLs: a change in between is read now and processed again later, which is harmless.
            # In the other order it would be lost.
            processed = {tree.changes: self._children(tree).ever_created for tree in znodes.TREES}
            contents = self.store.load()
            for problem in (*contents.unreadable, *contents.unknown):
                _log.error("%s: %s", self.store.client.settings.where, problem)
            self.replaced(contents)
            self._processed = processed
            self._unreadable = {str(problem.path): problem for problem in contents.unreadable}
        return contents

    def _children(self, tree: znodes.AclTree) -> Children:
        # Each read sets a new watch: ZooKeeper's watches fire once.
        children = self.store.client.children(tree.changes, self._wake.set)
        if children is None:
            self.store.client.ensure(tree.changes)
            children = self.store.client.children(tree.changes, self._wake.set)
        if children is None:
            raise StoreError(f"{tree.changes}: deleted again right after it was created")
        return children

    def _process(self, tree: znodes.AclTree) -> None:
        """Process the new events of a tree. Raises _MissedEventsError."""
        children = self._children(tree)
        first = self._processed[tree.changes]
        numbers = {number: name for name in children.names if (number := znodes.sequence_of(name)) is not None}
        new = sorted(number for number in numbers if number >= first)
        # Fewer than before: the directory was made anew, and its events begin again. No list of the expected numbers: a
        # server may count to 2^31.
        is_whole = len(new) == children.ever_created - first and new[-1:] in ([], [children.ever_created - 1])
        if not is_whole:
            raise _MissedEventsError(
                f"{tree.changes}: not all events {first} to {children.ever_created - 1} exist any more"
            )
        for some in _pieces(new, _EVENTS_PER_STEP):
            if self._closing:
                return
            self._update(self._patterns(tree, [f"{tree.changes}/{numbers[number]}" for number in some]))
            self._processed[tree.changes] = some[-1] + 1

    def _patterns(self, tree: znodes.AclTree, events: Sequence[str]) -> dict[ResourcePattern, None]:
        """Return the resources of some events, without duplicates."""
        patterns: dict[ResourcePattern, None] = {}
        for path, node in self.store.client.get_many(events):
            if node is None:
                raise _MissedEventsError(f"{path}: purged before it was read")
            try:
                patterns[znodes.decode_event(tree, node.data, path=path)] = None
            except DecodeError as e:
                raise _MissedEventsError(str(e)) from e
        return patterns

    def _update(self, patterns: Iterable[ResourcePattern]) -> None:
        paths: list[str] = []
        for pattern in patterns:
            try:
                paths += znodes.paths_of(pattern)
            except EncodeError as e:  # the event names a resource that cannot have ACLs
                _log.warning("%s: ignoring a change event: %s", self.store.client.settings.where, e)
        with self.lock:
            read = []
            for path, acls in zip(paths, self.store.read_many(paths), strict=True):
                if isinstance(acls, DecodeError):
                    # The last known ACLs stay in force: dropping them could drop a DENY.
                    _log.error("%s: %s: keeping its last known ACLs", self.store.client.settings.where, acls)
                    self._unreadable[path] = acls
                else:
                    self._unreadable.pop(path, None)
                    read.append(acls)
            self.changed(read)

    def _purge(self) -> None:
        """Delete expired events, as each of Kafka's brokers does."""
        now = time.time()
        if now - self._purged < _PURGE_INTERVAL_S:
            return
        self._purged = now
        for tree in znodes.TREES:
            children = self.store.client.children(tree.changes)
            names = sorted(
                children.names if children is not None else (), key=lambda name: znodes.sequence_of(name) or 0
            )
            for name in names:  # the oldest first, until one has not expired
                path = f"{tree.changes}/{name}"
                node = self.store.client.get(path)
                if node is not None and now * 1000 - node.created_ms <= CHANGE_EXPIRATION_MS:
                    break
                with suppress(ConflictError):  # another broker was faster
                    self.store.client.commit([DeleteNode(path=path)])


def _pieces(numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]
