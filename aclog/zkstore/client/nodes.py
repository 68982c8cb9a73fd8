"""Znodes as read by a client, and the operations of a transaction (org.apache.zookeeper.Op)."""

from collections.abc import Sequence
from typing import TypeAlias

from attrs import frozen

ANY_VERSION = -1
"""Expected version of an unconditional operation (ZkVersion.MatchAnyVersion)."""


@frozen(kw_only=True)
class Node:
    """A znode: its data, data version, creation time in ms, and number of children.

    A new znode has version 0, and each write increments it.
    """

    data: bytes
    version: int
    created_ms: int
    child_count: int = 0


@frozen(kw_only=True)
class Children:
    """The names of a znode's children, unordered, and how many were ever created: the next sequence number."""

    names: Sequence[str]
    ever_created: int


@frozen(kw_only=True)
class CreateNode:
    """Create a znode, whose parent must exist; with `sequence`, ZooKeeper appends ten digits to its name."""

    path: str
    data: bytes
    sequence: bool = False


@frozen(kw_only=True)
class SetNode:
    """Write a znode if it has this version."""

    path: str
    data: bytes
    version: int = ANY_VERSION


@frozen(kw_only=True)
class DeleteNode:
    """Delete a znode without children if it has this version."""

    path: str
    version: int = ANY_VERSION


Operation: TypeAlias = CreateNode | SetNode | DeleteNode


def operation_to(data: bytes | None, *, path: str, node: Node | None) -> Operation | None:
    """Return the conditional operation that makes a znode, read as `node`, hold `data`; None if it already does.

    `data` is None if the znode is to be deleted.
    """
    if node is None:
        return None if data is None else CreateNode(path=path, data=data)
    if data is None:
        return DeleteNode(path=path, version=node.version)
    return None if node.data == data else SetNode(path=path, data=data, version=node.version)
