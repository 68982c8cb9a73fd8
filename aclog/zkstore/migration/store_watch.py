"""Copy of a whole store, kept up to date by a ZooKeeper watch on every znode.

Brokers follow change events instead, and miss a change whose writer dies between the change and its event; a watch
misses nothing. `catch_up` ends at a consistent state: nothing changed while it was read.
"""

import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from attrs import Factory, define, field

from aclog.zkstore.errors import DisconnectedError, StoreError
from aclog.zkstore.migration.node_content import NodeContent, StoreState, node_content, store_state
from aclog.zkstore.znodes.paths import KIP_TOKENS_PATH, PREFIXED_TREE, TOKENS_PATH, TREES, USERS_PATH, type_of_directory

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient

_DISCONNECTED = ""
"""Queued in place of a path when the connection is lost, since all watches may be lost with it."""
_EXTENDED = PREFIXED_TREE.root.rpartition("/")[0]
_ROOTS = tuple(tree.root for tree in TREES)
_DIRECTORIES = (*_ROOTS, _EXTENDED)
"""Parents of directories, one for each resource type or pattern type."""
_LISTS = (*_DIRECTORIES, USERS_PATH, TOKENS_PATH, KIP_TOKENS_PATH)
_MAX_ROUNDS = 1000
_PAUSE_S = 0.05


def _is_list(path: str) -> bool:
    """Return whether a znode is read for its children, not for its data."""
    parent, _, name = path.rpartition("/")
    return path in _LISTS or (parent in _ROOTS and type_of_directory(name) is not None)


def _no_progress(_count: int) -> None:
    """Report nothing."""


@define(eq=False)
class StoreWatch:
    """Contents of a store by path. One thread owns it; the client's threads queue the paths of changed znodes.

    `progress` is called with the number of znodes read so far.
    """

    _client: "ZkClient"
    _progress: Callable[[int], None] = _no_progress
    _changed: SimpleQueue[str] = Factory(SimpleQueue)
    _contents: dict[str, NodeContent] = field(factory=dict, init=False)
    _children: dict[str, frozenset[str]] = field(factory=dict, init=False)
    _unknown: set[str] = field(factory=set, init=False)
    _stale: set[str] = field(factory=lambda: {_DISCONNECTED}, init=False)

    def __attrs_post_init__(self) -> None:
        self._client.listen(lambda connected: None if connected else self._changed.put(_DISCONNECTED))

    def state(self) -> StoreState:
        """Return the state of the store as of the last `catch_up`."""
        return store_state(self._contents, sorted(self._unknown))

    def has_directories(self) -> bool:
        """Return whether any of Kafka's directories exists."""
        return any(path in self._children for path in _LISTS)

    def catch_up(self, patience: float) -> int:
        """Read changed znodes until there are none; return how many were read.

        After a lost connection, which may last `patience` seconds, everything is read again.

        Raises:
            StoreError: the connection stays lost, a znode is not readable with this client's identity, or the store
                changes faster than it can be read.

        """
        count, deadline = 0, time.monotonic() + patience
        for _ in range(_MAX_ROUNDS):
            try:
                # After sync, all watches that have fired are in the queue: an empty queue then means a consistent
                # state.
                self._client.sync()
                self._take_changes()
                self._stale |= {path for path in _LISTS if path not in self._children}
                read = self._read_stale()
            except DisconnectedError:
                self._stale.add(_DISCONNECTED)
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)
                continue
            deadline = time.monotonic() + patience
            count += read
            if not read and self._changed.empty():
                return count
        raise StoreError(
            "ZooKeeper is modified faster than it can be read: pause all writers, then run the command again"
        )

    def _take_changes(self) -> None:
        while True:
            try:
                self._stale.add(self._changed.get_nowait())
            except Empty:
                return

    def _read_stale(self) -> int:
        if _DISCONNECTED in self._stale:
            self._children.clear()
            self._unknown.clear()
            self._contents.clear()
            self._stale = set(_LISTS)
        # A watch fires once, and each read below sets a new one, so a change during the read is queued again.
        nodes = {path for path in self._stale if not _is_list(path)}
        listed = sum(self._list(path, nodes) for path in sorted(self._stale - nodes))
        self._read(sorted(nodes))
        self._stale.clear()
        return listed + len(nodes)

    def _list(self, path: str, nodes: set[str]) -> int:
        """Read a znode's children, and add new ones to `nodes`; return how many lists were read."""
        found = self._client.children(path, lambda: self._changed.put(path))
        known = self._children.pop(path, None)
        names = frozenset(found.names if found is not None else ())
        for name in (known or frozenset()) - names:
            self._forget(f"{path}/{name}")
        if found is None:
            return int(known is not None)
        self._children[path] = names
        return 1 + sum(self._discover(f"{path}/{name}", nodes) for name in sorted(names - (known or frozenset())))

    def _discover(self, path: str, nodes: set[str]) -> int:
        """Handle a new znode: a list, a znode with data, or an unknown directory."""
        if _is_list(path):
            return 0 if path in _LISTS else self._list(path, nodes)
        if path.rpartition("/")[0] in _DIRECTORIES:
            self._unknown.add(path)
        else:
            nodes.add(path)
        return 0

    def _forget(self, path: str) -> None:
        self._contents.pop(path, None)
        self._unknown.discard(path)
        for name in self._children.pop(path, ()):
            self._forget(f"{path}/{name}")

    def _read(self, paths: Sequence[str]) -> None:
        for count, (path, node) in enumerate(self._client.get_many(paths, self._changed.put), 1):
            if node is None:
                self._vanished(path)
            else:
                self._contents[path] = node_content(path, node.data, has_children=node.child_count > 0)
            self._progress(count)

    def _vanished(self, path: str) -> None:
        # The znode was deleted after it was listed. Nothing watches it, so it must count as new when it is listed
        # again.
        self._contents.pop(path, None)
        parent, _, name = path.rpartition("/")
        if parent in self._children:
            self._children[parent] -= {name}
