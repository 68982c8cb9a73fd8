"""A persistent hash trie with structural sharing: a change makes a new map, and the old one stays valid.

Small maps are one dictionary. Larger ones are a tree: inner nodes are lists of 32 children, chosen by five bits of a
key's hash at a time, and leaves are dictionaries of up to 64 entries. A change copies one leaf and the nodes above it,
and what is slow in Python, finding and copying entries, is done by dictionaries. Nothing here needs a compiler, and any
thread may read a map while others make new ones from it. docs/decisions/0018-persistent-map.md has the figures.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MethodType
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, overload

_K = TypeVar("_K")
_V = TypeVar("_V")
_W_co = TypeVar("_W_co", covariant=True)
_D = TypeVar("_D")

_Node: TypeAlias = Any
"""A list of children by the next bits of the hash, or a dictionary of entries. Neither is changed once a map has it."""

_BITS = 5
_WIDTH = 1 << _BITS
_MASK = _WIDTH - 1
_LARGEST = 64
"""Entries of a leaf."""
_DEEPEST = 60
"""Bits of a hash that choose a child. Keys that agree in all of them share a leaf, however many they are."""

_ABSENT: Any = object()


class _Get(Protocol[_W_co]):
    @overload
    def __call__(self, key: object, /) -> _W_co | None: ...
    @overload
    def __call__(self, key: object, default: _D, /) -> _W_co | _D: ...


class Map(Generic[_K, _V]):
    """An immutable mapping; two are equal if their entries are. Its repr has only their number: some are secrets.

    A plain class: one is made for every change, and a frozen attrs class takes several times as long to make.
    """

    __slots__ = ("_root", "_size", "get")

    get: "_Get[_V]"
    """Returns the value of a key, or a default. Not a method: of a small map it is its dictionary's own."""

    def __init__(self, entries: Mapping[_K, _V] | Iterable[tuple[_K, _V]] = ()) -> None:
        leaf = dict(entries)
        self._root: _Node = _spread(leaf, 0)
        self._size = len(leaf)
        self.get = self._root.get if type(self._root) is dict else MethodType(_find, self._root)

    def __getitem__(self, key: _K) -> _V:
        value: _V = self.get(key, _ABSENT)
        if value is _ABSENT:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return self.get(key, _ABSENT) is not _ABSENT

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[_K]:
        for leaf in _leaves(self._root):
            yield from leaf

    def keys(self) -> Iterator[_K]:
        """Yield the keys, in no particular order."""
        return iter(self)

    def values(self) -> Iterator[_V]:
        """Yield the values, in the order of the keys."""
        for leaf in _leaves(self._root):
            yield from leaf.values()

    def items(self) -> Iterator[tuple[_K, _V]]:
        """Yield each key with its value."""
        for leaf in _leaves(self._root):
            yield from leaf.items()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Map):
            return NotImplemented
        if self._size != other._size:
            return False
        return self is other or all(other.get(key, _ABSENT) == value for key, value in self.items())

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __repr__(self) -> str:
        return f"<Map of {self._size}>"

    def __reduce__(self) -> tuple[type["Map[_K, _V]"], tuple[dict[_K, _V]]]:
        # Another process hashes texts differently: the tree is built anew there.
        return Map, (dict(self.items()),)

    def set(self, key: _K, value: _V) -> "Map[_K, _V]":
        """Return the map in which this key has this value."""
        node = self._root
        if type(node) is dict:
            leaf = node.copy()
            leaf[key] = value
            return _make(leaf if len(leaf) <= _LARGEST else _spread(leaf, 0), len(leaf))
        root, parent, at, node, depth = _copied_path(node, hash(key))
        leaf = node.copy()
        leaf[key] = value
        parent[at] = leaf if len(leaf) <= _LARGEST else _spread(leaf, depth)
        return _make(root, self._size + len(leaf) - len(node))

    def updated(self, entries: Mapping[_K, _V]) -> "Map[_K, _V]":
        """Return the map with these entries as well, or instead of those of the same keys.

        As `set` for each of them, in their order, but a node is copied once for all.
        """
        node = self._root
        if type(node) is dict:
            leaf = {**node, **entries}
            return _make(_spread(leaf, 0), len(leaf))
        root, size = node.copy(), self._size
        owned = {id(root)}
        for key, value in entries.items():
            code, parent, depth = hash(key), root, _BITS
            at = code & _MASK
            below = parent[at]
            while type(below) is list:
                if id(below) not in owned:
                    parent[at] = below = below.copy()
                    owned.add(id(below))
                parent, at = below, code >> depth & _MASK
                below = below[at]
                depth += _BITS
            size -= len(below)
            if id(below) not in owned:
                parent[at] = below = below.copy()
                owned.add(id(below))
            below[key] = value
            size += len(below)
            if len(below) > _LARGEST:
                owned.discard(id(below))  # it ends here, and another node may get its place in memory
                parent[at] = _spread(below, depth)
        return _make(root, size)

    def delete(self, key: _K) -> "Map[_K, _V]":
        """Return the map without this key.

        Raises:
            KeyError: it has no such key.

        """
        node = self._root
        if type(node) is dict:
            leaf = node.copy()
            del leaf[key]
            return _make(leaf, len(leaf))
        root, parent, at, node, _ = _copied_path(node, hash(key))
        parent[at] = leaf = node.copy()
        del leaf[key]
        return _make(root if self._size > 1 else {}, self._size - 1)

    def flat(self) -> dict[_K, _V]:
        """Return a dictionary of the entries."""
        flat: dict[_K, _V] = {}
        for leaf in _leaves(self._root):
            flat.update(leaf)
        return flat

    def unshared_keys(self, other: "Map[_K, Any]") -> Iterator[_K]:
        """Yield the keys that only one of both has, in time that follows the nodes that they do not share."""
        return _unshared(self._root, other._root)

    def mutate(self) -> "MapMutation[_K, _V]":
        """Return a mutation, which collects many changes and makes them at once."""
        return MapMutation(self)

    def changed(self, changes: Mapping[_K, _V], removed: Iterable[_K]) -> "Map[_K, _V]":
        """Return the map with these entries instead of those of the same keys, and without the removed keys.

        Each node is copied once, however many changes there are below it. A removed key may be absent; none is among
        the changes.
        """
        merged: dict[Any, Any] = dict(changes)
        merged.update((key, _ABSENT) for key in removed)
        if not merged:
            return self
        root, grown = _merged(self._root, merged, 0)
        return _make(root if self._size + grown else {}, self._size + grown)


class MapMutation(Generic[_K, _V]):
    """A map, and changes in progress; owned by the caller."""

    __slots__ = ("_changed", "_map", "_removed")

    def __init__(self, start: Map[_K, _V]) -> None:
        self._map = start
        self._changed: dict[_K, _V] = {}
        self._removed: set[_K] = set()

    @overload
    def get(self, key: _K) -> _V | None: ...
    @overload
    def get(self, key: _K, default: _D) -> _V | _D: ...
    def get(self, key: Any, default: Any = None) -> Any:
        """Return the present value of a key, or the default."""
        value = self._changed.get(key, _ABSENT)
        if value is not _ABSENT:
            return value
        return default if key in self._removed else self._map.get(key, default)

    def __getitem__(self, key: _K) -> _V:
        value: _V = self.get(key, _ABSENT)
        if value is _ABSENT:
            raise KeyError(key)
        return value

    def __contains__(self, key: _K) -> bool:
        return self.get(key, _ABSENT) is not _ABSENT

    def __setitem__(self, key: _K, value: _V) -> None:
        self._removed.discard(key)
        self._changed[key] = value

    def __delitem__(self, key: _K) -> None:
        self.pop(key)

    @overload
    def pop(self, key: _K) -> _V: ...
    @overload
    def pop(self, key: _K, default: _D) -> _V | _D: ...
    def pop(self, key: _K, default: Any = _ABSENT) -> Any:
        """Take a key out and return its value, or the default.

        Raises:
            KeyError: it is absent, and there is no default.

        """
        value = self.get(key, _ABSENT)
        if value is not _ABSENT:
            self._changed.pop(key, None)
            self._removed.add(key)
            return value
        if default is _ABSENT:
            raise KeyError(key)
        return default

    def finish(self) -> Map[_K, _V]:
        """Return the map with all changes so far."""
        return self._map.changed(self._changed, self._removed)


def _find(node: _Node, key: Any, default: Any = None) -> Any:
    """Return the value of a key in a tree, or the default."""
    code = hash(key)
    node = node[code & _MASK]
    while type(node) is list:
        code >>= _BITS
        node = node[code & _MASK]
    return node.get(key, default)


_new: Callable[[type[Map[Any, Any]]], Map[Any, Any]] = object.__new__


def _make(root: _Node, size: int) -> Map[Any, Any]:
    mapping = _new(Map)
    mapping._root, mapping._size = root, size  # its second constructor
    mapping.get = root.get if type(root) is dict else MethodType(_find, root)
    return mapping


def _copied_path(node: list[Any], code: int) -> tuple[list[Any], list[Any], int, dict[Any, Any], int]:
    """Return copies of the inner nodes on the way to a leaf: the root, the leaf's parent and place there, the leaf."""
    root = parent = node.copy()
    at, depth = code & _MASK, _BITS
    below = node[at]
    while type(below) is list:
        parent[at] = below = below.copy()
        parent, at = below, code >> depth & _MASK
        below = below[at]
        depth += _BITS
    return root, parent, at, below, depth


def _unshared(one: _Node, other: _Node) -> Iterator[Any]:
    """Yield the keys that are below one node and not below another one of the same place."""
    if one is other:
        return
    if type(one) is list and type(other) is list:
        for pair in zip(one, other, strict=True):
            yield from _unshared(*pair)
    else:
        yield from set().union(*_leaves(one)) ^ set().union(*_leaves(other))


def _spread(leaf: dict[Any, Any], depth: int) -> _Node:
    """Return the entries as a leaf, or as a tree of leaves that are small enough."""
    if len(leaf) <= _LARGEST or depth >= _DEEPEST:
        return leaf
    return [_spread(part, depth + _BITS) for part in _parts(leaf, depth)]


def _parts(entries: dict[Any, Any], depth: int) -> list[dict[Any, Any]]:
    parts: list[dict[Any, Any]] = [{} for _ in range(_WIDTH)]
    for key, value in entries.items():
        parts[hash(key) >> depth & _MASK][key] = value
    return parts


def _merged(node: _Node, changes: dict[Any, Any], depth: int) -> tuple[_Node, int]:
    """Return a node with these changes (_ABSENT: removed), and the number of added entries."""
    if type(node) is dict:
        leaf = {**node, **changes}
        if any(value is _ABSENT for value in changes.values()):
            leaf = {key: value for key, value in leaf.items() if value is not _ABSENT}
        return _spread(leaf, depth), len(leaf) - len(node)
    nodes, grown = list(node), 0
    for at, part in enumerate(_parts(changes, depth)):
        if part:
            nodes[at], more = _merged(nodes[at], part, depth + _BITS)
            grown += more
    return nodes, grown


def _leaves(node: _Node) -> Iterator[dict[Any, Any]]:
    if type(node) is dict:
        yield node
        return
    for below in node:
        if type(below) is dict:
            yield below
        else:
            yield from _leaves(below)
