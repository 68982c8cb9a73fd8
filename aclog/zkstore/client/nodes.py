"""What a client of ZooKeeper reads and writes: nodes, children, and operations that happen together or not at all."""

from collections.abc import Sequence
from typing import TypeAlias

from attrs import frozen

ANY_VERSION = -1
"""As the version that an operation expects: whatever there is."""


@frozen(kw_only=True)
class Node:
    """A node's bytes, how often they were written after its creation, when it was created (ms), and what is below."""

    data: bytes
    version: int
    created_ms: int
    child_count: int = 0


@frozen(kw_only=True)
class Children:
    """The names below a node, in no order, and how many were ever created: the next sequence number."""

    names: Sequence[str]
    ever_created: int


@frozen(kw_only=True)
class CreateNode:
    """Make a node; with `sequence`, ZooKeeper adds ten digits to its name. Its parent must be there."""

    path: str
    data: bytes
    sequence: bool = False


@frozen(kw_only=True)
class SetNode:
    """Write a node, if it has this version."""

    path: str
    data: bytes
    version: int = ANY_VERSION


@frozen(kw_only=True)
class DeleteNode:
    """Remove a node without children, if it has this version."""

    path: str
    version: int = ANY_VERSION


Operation: TypeAlias = CreateNode | SetNode | DeleteNode
