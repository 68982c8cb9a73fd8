"""A whole store, kept current: every node is read once, and again when ZooKeeper's watch on it says that it changed.

Unlike a broker, which hears of changes by change events, this misses none by a writer that died before it told of its
change. `catch_up` finds a moment of the store: after it nothing had changed since what is known was read.
"""

import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from attrs import Factory, define, field

from aclog.zkstore.errors import DisconnectedError, StoreError
from aclog.zkstore.migration.node_content import NodeContent, StoreState, node_content, store_state
from aclog.zkstore.paths import PREFIXED_TREE, TREES, type_of_directory
from aclog.zkstore.scram_config import USERS_PATH
from aclog.zkstore.token_json import KIP_TOKENS_PATH, TOKENS_PATH

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient

_LOST = ""
"""Stands in the queue for a lost connection, with which all watches go."""
_EXTENDED = PREFIXED_TREE.root.rpartition("/")[0]
_ROOTS = tuple(tree.root for tree in TREES)
_DIRECTORIES = (*_ROOTS, _EXTENDED)
"""What is in these are directories, each of a type."""
_LISTS = (*_DIRECTORIES, USERS_PATH, TOKENS_PATH, KIP_TOKENS_PATH)
_MOST_ROUNDS = 1000
_PAUSE_S = 0.05


def _is_list(path: str) -> bool:
    """Whether it is the children of a node that count, not its data."""
    parent, _, name = path.rpartition("/")
    return path in _LISTS or (parent in _ROOTS and type_of_directory(name) is not None)


def _nobody(_count: int) -> None:
    """Nobody is told."""


@define(eq=False)
class StoreWatch:
    """What a store holds, by path; owned by one thread, told of changes by those of the client.

    `progress` is called with how many nodes have been read.
    """

    _client: "ZkClient"
    _progress: Callable[[int], None] = _nobody
    _changed: SimpleQueue[str] = Factory(SimpleQueue)
    _contents: dict[str, NodeContent] = field(factory=dict, init=False)
    _children: dict[str, frozenset[str]] = field(factory=dict, init=False)
    _unknown: set[str] = field(factory=set, init=False)
    _stale: set[str] = field(factory=lambda: {_LOST}, init=False)

    def __attrs_post_init__(self) -> None:
        self._client.listen(lambda connected: None if connected else self._changed.put(_LOST))

    def state(self) -> StoreState:
        """What the store carries, as of the last `catch_up`."""
        return store_state(self._contents, sorted(self._unknown))

    def has_directories(self) -> bool:
        """Whether anything at all is where Kafka keeps it."""
        return any(path in self._children for path in _LISTS)

    def catch_up(self, patience: float) -> int:
        """Read what has changed, until nothing has; how many nodes were read.

        A connection that is lost is waited for, `patience` seconds at most; then all is read anew.

        Raises:
            StoreError: it stayed away, a node is not for this login, or the store changes faster than it can be read.

        """
        count, deadline = 0, time.monotonic() + patience
        for _ in range(_MOST_ROUNDS):
            try:
                self._client.sync()
                self._take_changes()
                self._stale |= {path for path in _LISTS if path not in self._children}
                read = self._read_stale()
            except DisconnectedError:
                self._stale.add(_LOST)
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)
                continue
            deadline = time.monotonic() + patience
            count += read
            if not read and self._changed.empty():
                return count
        raise StoreError("the store changes faster than it can be read: expected a moment without a change")

    def _take_changes(self) -> None:
        while True:
            try:
                self._stale.add(self._changed.get_nowait())
            except Empty:
                return

    def _read_stale(self) -> int:
        if _LOST in self._stale:
            self._children.clear()
            self._unknown.clear()
            self._contents.clear()
            self._stale = set(_LISTS)
        nodes = {path for path in self._stale if not _is_list(path)}
        listed = sum(self._list(path, nodes) for path in sorted(self._stale - nodes))
        self._read(sorted(nodes))
        self._stale.clear()
        return listed + len(nodes)

    def _list(self, path: str, nodes: set[str]) -> int:
        """Read a node's children, and add to `nodes` those that are new; how many lists were read."""
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
        """A node that is new: a list, a node with content, or something that nobody knows."""
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
        """A node that was listed is gone. It carries no watch, so the next list that has it must find it new again."""
        self._contents.pop(path, None)
        parent, _, name = path.rpartition("/")
        if parent in self._children:
            self._children[parent] -= {name}
