"""Follows the ACLs in ZooKeeper by their change events (kafka.common.ZkNodeChangeNotificationListener)."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from attrs import define, field

from aclog.authorizer.acl import ResourcePattern
from aclog.metalog.errors import DecodeError, EncodeError, MetadataError
from aclog.zkstore.acl_store import AclStore, ResourceAcls, StoreContents
from aclog.zkstore.client.nodes import Children, DeleteNode
from aclog.zkstore.errors import ConflictError, StoreError
from aclog.zkstore.znodes.change_events import decode_event
from aclog.zkstore.znodes.paths import TREES, AclTree, paths_of, sequence_of

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
            for tree in TREES:
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
            processed = {tree.changes: self._children(tree).ever_created for tree in TREES}
            contents = self.store.load()
            for problem in (*contents.unreadable, *contents.unknown):
                _log.error("%s: %s", self.store.client.settings.where, problem)
            self.replaced(contents)
            self._processed = processed
            self._unreadable = {str(problem.path): problem for problem in contents.unreadable}
        return contents

    def _children(self, tree: AclTree) -> Children:
        # Each read sets a new watch: ZooKeeper's watches fire once.
        children = self.store.client.children(tree.changes, self._wake.set)
        if children is None:
            self.store.client.ensure(tree.changes)
            children = self.store.client.children(tree.changes, self._wake.set)
        if children is None:
            raise StoreError(f"{tree.changes}: deleted again right after it was created")
        return children

    def _process(self, tree: AclTree) -> None:
        """Process the new events of a tree. Raises _MissedEventsError."""
        children = self._children(tree)
        first = self._processed[tree.changes]
        numbers = {number: name for name in children.names if (number := sequence_of(name)) is not None}
        new = sorted(number for number in numbers if number >= first)
        if new != list(range(first, children.ever_created)):
            raise _MissedEventsError(
                f"{tree.changes}: not all events {first} to {children.ever_created - 1} exist any more"
            )
        for some in _pieces(new, _EVENTS_PER_STEP):
            if self._closing:
                return
            self._update(self._patterns(tree, [f"{tree.changes}/{numbers[number]}" for number in some]))
            self._processed[tree.changes] = some[-1] + 1

    def _patterns(self, tree: AclTree, events: Sequence[str]) -> dict[ResourcePattern, None]:
        """Return the resources of some events, without duplicates."""
        found: dict[ResourcePattern, None] = {}
        for path, node in self.store.client.get_many(events):
            if node is None:
                raise _MissedEventsError(f"{path}: purged before it was read")
            try:
                found[decode_event(tree, node.data, path=path)] = None
            except DecodeError as e:
                raise _MissedEventsError(str(e)) from e
        return found

    def _update(self, patterns: Iterable[ResourcePattern]) -> None:
        paths: list[str] = []
        for pattern in patterns:
            try:
                paths += paths_of(pattern)
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
        for tree in TREES:
            children = self.store.client.children(tree.changes)
            names = sorted(children.names if children is not None else (), key=lambda name: sequence_of(name) or 0)
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
