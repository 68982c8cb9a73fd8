"""Following a store: what changes in it, heard of by its change events, and what was missed while nobody listened."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from attrs import define, field

from aclog.authorizer.acl import ResourcePattern
from aclog.metalog.errors import DecodeError, EncodeError, MetadataError
from aclog.zkstore.change_events import decode_event
from aclog.zkstore.client.nodes import Children, DeleteNode
from aclog.zkstore.errors import ConflictError, StoreError
from aclog.zkstore.paths import TREES, AclTree, paths_of, sequence_of
from aclog.zkstore.store import ResourceRules, StoreContents, ZkStore

_log = logging.getLogger(__name__)

_RETRY_S = 0.5
_AT_ONCE = 256
"""Nodes that are read between two looks at whether to stop."""

CHANGE_EXPIRATION_MS = 15 * 60 * 1000
"""How long a change event is kept (ZkNodeChangeNotificationListener)."""
_PURGE_EVERY_S = 60.0


class _MissedError(Exception):
    """Change events are gone that were never seen: everything has to be read anew."""


@define(eq=False, kw_only=True)
class StoreFollower:
    """A thread that keeps somebody's rules those of the store.

    ZooKeeper numbers change events without gaps, so one that was purged before it was seen shows, and all rules are
    read anew; likewise an event that says nothing clear. `replaced` is called with everything, `changed` with what some
    nodes hold now, both in `lock`, and the reading before them too: whoever changes the store and its own rules in the
    same lock never has an older reading undo that.
    """

    store: ZkStore
    replaced: Callable[[StoreContents], None]
    changed: Callable[[Sequence[ResourceRules]], None]
    lock: threading.RLock
    _seen: dict[str, int] = field(factory=dict, init=False)
    """How many events there ever were, when those of a tree were looked at last; by the path of the events."""
    _unreadable: dict[str, DecodeError] = field(factory=dict, init=False)
    _stale: str | None = field(default="not loaded yet", init=False)
    _wake: threading.Event = field(factory=threading.Event, init=False)
    _closing: bool = field(default=False, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _purged: float = field(default=0.0, init=False)

    def start(self) -> None:
        """Read everything, then follow.

        Raises:
            StoreError: ZooKeeper did not answer.
            DecodeError: a node that says nothing clear: whether it denies is not known, so nothing may be allowed.

        """
        self.store.client.listen(self._connection_changed)
        self.store.create_paths()
        self._reload().check_readable()
        self._stale = None
        self._thread = threading.Thread(target=self._follow, name="zk-acl-changes", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop following; the store's client stays open."""
        self._closing = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def stale(self) -> str | None:
        """Why what was handed out may be older than the store; None while every change is followed."""
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
        """In kazoo's thread, which must not wait."""
        if not connected and self._stale is None and not self._closing:
            self._stale = self._lost
            _log.warning("%s: deciding by the rules as they were last", self._stale)
        self._wake.set()

    def _follow(self) -> None:
        while not self._closing:
            self._wake.wait(None if self._stale is None else _RETRY_S)
            self._wake.clear()
            try:
                if self.store.client.connected:
                    self._catch_up()
            except MetadataError as e:
                self._say_stale(str(e))
            except Exception as e:  # noqa: BLE001  # whatever it is, rules that are no longer followed must be said to be old
                _log.exception("%s", self.store.client.settings.where)
                self._say_stale(f"{type(e).__name__}: {e}")

    def _say_stale(self, why: str) -> None:
        if self._stale is None and not self._closing:
            _log.warning("%s: deciding by the rules as they were last", why)
        self._stale = why

    def _catch_up(self) -> None:
        try:
            for tree in TREES:
                self._process(tree)
        except _MissedError as e:
            _log.warning("%s: %s: reading all rules anew", self.store.client.settings.where, e)
            self._reload()
        if self._stale is not None:
            _log.info("%s: up to date again", self.store.client.settings.where)
            self._stale = None
        self._purge()

    def _reload(self) -> StoreContents:
        """Note where the events stand, read everything, hand it out."""
        with self.lock:
            seen = {tree.changes: self._children(tree).ever_created for tree in TREES}
            contents = self.store.load()
            for problem in (*contents.unreadable, *contents.unknown):
                _log.error("%s: %s", self.store.client.settings.where, problem)
            self.replaced(contents)
            self._seen = seen
            self._unreadable = {str(problem.path): problem for problem in contents.unreadable}
        return contents

    def _children(self, tree: AclTree) -> Children:
        children = self.store.client.children(tree.changes, self._wake.set)
        if children is None:
            self.store.client.ensure(tree.changes)
            children = self.store.client.children(tree.changes, self._wake.set)
        if children is None:
            raise StoreError(f"{tree.changes}: it is removed as soon as it is made")
        return children

    def _process(self, tree: AclTree) -> None:
        """Take in what this tree's new events tell of. Raises _MissedError where there is no telling."""
        children = self._children(tree)
        seen = self._seen[tree.changes]
        numbers = {number: name for name in children.names if (number := sequence_of(name)) is not None}
        new = sorted(number for number in numbers if number >= seen)
        if new != list(range(seen, children.ever_created)):
            raise _MissedError(f"{tree.changes}: events {seen} to {children.ever_created} are not all there")
        for some in _pieces(new, _AT_ONCE):
            if self._closing:
                return
            self._take_in(self._patterns(tree, [f"{tree.changes}/{numbers[number]}" for number in some]))
            self._seen[tree.changes] = some[-1] + 1

    def _patterns(self, tree: AclTree, events: Sequence[str]) -> dict[ResourcePattern, None]:
        """The resources that some events are about, each once."""
        found: dict[ResourcePattern, None] = {}
        for path, node in self.store.client.get_many(events):
            if node is None:
                raise _MissedError(f"{path}: purged before it was read")
            try:
                found[decode_event(tree, node.data, path=path)] = None
            except DecodeError as e:
                raise _MissedError(str(e)) from e
        return found

    def _take_in(self, patterns: Iterable[ResourcePattern]) -> None:
        paths: list[str] = []
        for pattern in patterns:
            try:
                paths += paths_of(pattern)
            except EncodeError as e:  # an event about what cannot have rules
                _log.warning("%s: a change event: %s", self.store.client.settings.where, e)
        with self.lock:
            read = []
            for path, rules in zip(paths, self.store.read_many(paths), strict=True):
                if isinstance(rules, DecodeError):
                    _log.error("%s: %s: its rules stay as they were last", self.store.client.settings.where, rules)
                    self._unreadable[path] = rules
                else:
                    self._unreadable.pop(path, None)
                    read.append(rules)
            self.changed(read)

    def _purge(self) -> None:
        """Remove events that are old enough, as every one of Kafka's brokers does."""
        now = time.time()
        if now - self._purged < _PURGE_EVERY_S:
            return
        self._purged = now
        for tree in TREES:
            children = self.store.client.children(tree.changes)
            names = sorted(children.names if children is not None else (), key=lambda name: sequence_of(name) or 0)
            for name in names:  # the oldest first
                path = f"{tree.changes}/{name}"
                node = self.store.client.get(path)
                if node is not None and now * 1000 - node.created_ms <= CHANGE_EXPIRATION_MS:
                    break
                with suppress(ConflictError):  # another one was quicker
                    self.store.client.commit([DeleteNode(path=path)])


def _pieces(numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]
