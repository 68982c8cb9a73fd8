"""A root: one resource name, or all names that begin with a prefix; where the engine begins to explore."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from aclog.authorizer.acl import CLUSTER_NAME, WILDCARD, ResourceType


class Root(NamedTuple):
    """Exactly this name of a resource type, or, unless `literal`, every name that begins with it."""

    kind: int
    name: str
    literal: bool


def root_of_pattern(kind: int, name: str, *, literal: bool) -> Root | None:
    """Return what a resource pattern of an ACL can cover; None if that is nothing.

    LITERAL `*` covers no longer name that begins with `*`, so the root says too much for it, which does no harm.
    """
    if literal and name == WILDCARD:
        return root_of_names(kind, "", literal=False)
    return root_of_names(kind, name, literal=literal)


def root_of_names(kind: int, name: str, *, literal: bool) -> Root | None:
    """Return the root of a name, or of all that begin with it; None if no resource has such a name."""
    if kind == ResourceType.CLUSTER:
        covers = name == CLUSTER_NAME or (not literal and CLUSTER_NAME.startswith(name))
        return Root(kind, CLUSTER_NAME, literal=True) if covers else None
    if literal and not name:
        return None
    return Root(kind, name, literal)


def topmost(roots: Iterable[Root]) -> Iterator[Root]:
    """Yield those roots that no other one contains, by type and name."""
    last: Root | None = None
    for root in sorted(roots):  # a prefix precedes the names that begin with it, and itself as a single name
        if last is not None and last.kind == root.kind and not last.literal and root.name.startswith(last.name):
            continue
        if root != last:
            if not root.literal:
                last = root
            yield root


def within(root: Root, limits: Iterable[Root]) -> Iterator[Root]:
    """Yield the parts of a root that lie inside of some others."""
    for limit in limits:
        if _contains(limit, root):
            yield root
        elif _contains(root, limit):
            yield limit


def _contains(outer: Root, inner: Root) -> bool:
    if outer.kind != inner.kind:
        return False
    return outer == inner or (not outer.literal and inner.name.startswith(outer.name))
