"""The names below a root, as a tree of classes: a single name, or a prefix less what is below it in the tree."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from attrs import frozen

from aclog.analysis.regions.names import Literal, NamePart, Names, Subtree
from aclog.analysis.regions.root import Root
from aclog.authorizer.acl import WILDCARD


class Node(NamedTuple):
    """A class of names that no rule at hand tells apart."""

    name: str
    literal: bool
    parent: int
    """The node of the longest prefix above it; -1 for the root."""

    @property
    def hidden(self) -> bool:
        """Whether LITERAL `*` does not cover these names in Kafka: they begin with `*` and are longer."""
        # The class of the prefix `*` has only longer names, since `*` itself is a node of its own wherever it matters.
        return self.name.startswith(WILDCARD) and not (self.literal and self.name == WILDCARD)


@frozen(eq=False)
class NameTree:
    """Nodes in the order of their names: each one after its parent."""

    nodes: tuple[Node, ...]

    @classmethod
    def of(cls, root: Root, names: Iterable[tuple[str, bool]]) -> "NameTree":
        """Return the tree of these patterns (name, is LITERAL) that lie below the root; others are left out."""
        if root.literal:
            return cls((Node(root.name, literal=True, parent=-1),))
        below = {(name, literal) for name, literal in names if name and name.startswith(root.name)}
        below.discard((root.name, False))
        nodes = [Node(root.name, literal=False, parent=-1)]
        chain = [0]
        for name, literal in sorted(below):
            while not name.startswith(nodes[chain[-1]].name):
                chain.pop()
            nodes.append(Node(name, literal, chain[-1]))
            if not literal:
                chain.append(len(nodes) - 1)
        return cls(tuple(nodes))

    def names(self, chosen: Sequence[bool]) -> Names:
        """Return the names of the nodes that are chosen, with as few parts as the tree allows."""
        parts: list[_Part] = []
        part_of: list[_Part | None] = []
        for node, is_chosen in zip(self.nodes, chosen, strict=True):
            part = part_of[node.parent] if node.parent >= 0 else None
            if is_chosen and part is None:
                part = _Part(node.name, node.literal, [], [])
                parts.append(part)
            elif not is_chosen and part is not None:
                (part.except_literals if node.literal else part.except_prefixes).append(node.name)
                part = None
            part_of.append(part)
        return tuple(part.frozen() for part in parts)


class _Part(NamedTuple):
    name: str
    literal: bool
    except_prefixes: list[str]
    except_literals: list[str]

    def frozen(self) -> NamePart:
        """Return the part once all exceptions are known."""
        if self.literal:
            return Literal(name=self.name)
        return Subtree(
            prefix=self.name,
            except_prefixes=tuple(self.except_prefixes),
            except_literals=tuple(self.except_literals),
        )
