"""How much of the names that a question is about is allowed: all that begin with a prefix, or some."""

from collections.abc import Sequence
from functools import reduce

from attrs import frozen

from aclog.analysis.regions.hosts import EVERYWHERE
from aclog.analysis.regions.name_sets import less
from aclog.analysis.regions.names import Literal, Names, Subtree
from aclog.analysis.regions.operations import REQUESTED
from aclog.analysis.regions.principals import EVERYONE
from aclog.analysis.regions.region import Region
from aclog.analysis.regions.witness import has_legal_name
from aclog.authorizer.acl import CLUSTER_NAME, WILDCARD, ResourcePattern, ResourceType
from aclog.authorizer.name_notation import is_set, pattern_text

_LONGER_THAN_STAR = Subtree(prefix=WILDCARD, except_literals=(WILDCARD,))
"""What LITERAL `*` does not cover in Kafka."""


@frozen(kw_only=True)
class Extent:
    """How much of what was asked a permission is about."""

    is_all: bool
    text: str
    """Such as `all of pii-*`."""


def extent_of(names: Names, kind: ResourceType, asked: Sequence[ResourcePattern]) -> Extent:
    """Return how much of some resources of one type a set of names has."""
    texts = ", ".join(map(pattern_text, asked))
    lacking = tuple(part for each in asked for part in _lacking(names, kind, each))
    if not lacking:
        return Extent(is_all=True, text=f"all of {texts}")
    if all(less((part,), _LONGER_THAN_STAR) == () for part in lacking):
        return Extent(is_all=False, text=f"all of {texts} but longer names that begin with *")
    return Extent(is_all=False, text=f"some of {texts}")


def names_that_exist(kind: ResourceType, names: Names) -> Names:
    """Return the parts of a set that have a name which a resource can have; only topic names are restricted."""
    return tuple(part for part in names if has_legal_name(_region(kind, (part,))))


def _lacking(names: Names, kind: ResourceType, asked: ResourcePattern) -> Names:
    if kind == ResourceType.CLUSTER:
        whole: Names = (Literal(name=CLUSTER_NAME),)
    elif is_set(asked):
        whole = (Subtree(prefix=asked.name),)
    else:
        whole = (Literal(name=asked.name),)
    lacking: Names = reduce(less, names, whole)
    # A mistyped prefix, below which no topic can be, is compared as it is written.
    return names_that_exist(kind, lacking) if names_that_exist(kind, whole) else lacking


def _region(kind: ResourceType, names: Names) -> Region:
    return Region(resource_type=kind, operations=REQUESTED, principals=EVERYONE, hosts=EVERYWHERE, names=names)
