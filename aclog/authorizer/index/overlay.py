"""The overlay: what changed since the base was built, in persistent maps.

Persistent (immutable, structure-sharing) maps make a new version in O(log n) and leave the old one as it was: an image
that a reader or a checkpoint holds stays valid, and nothing is locked or copied for it.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from aclog.authorizer.acl import PatternType, StandardAcl
from aclog.authorizer.index.core import Core
from aclog.authorizer.index.masks import TYPES, known_type
from aclog.metalog.persistent_map import Map
from aclog.metalog.records import AccessControlEntryRecord

ResourceKey: TypeAlias = tuple[int, str, bool]
"""Resource type 0..7, name, and whether the pattern is LITERAL."""
PairKey: TypeAlias = tuple[str, str]
"""Principal and host."""

NO_ROWS = range(0)


class Cell(NamedTuple):
    """A cell (one resource and pair) that a change touched."""

    mask: int
    """The mask of all its ACLs now, those of the base included: it replaces the base's."""
    added: tuple[AccessControlEntryRecord, ...]
    rows: range = NO_ROWS
    """The base's rows of this cell, removed ones included."""


class TouchedResource(NamedTuple):
    """A resource pattern that a change touched."""

    cells: "Map[PairKey, Cell]"
    rules: int
    """How many ACLs it has now, those of untouched cells included."""
    shrunk: bool
    """Whether an ACL of the base was removed: then masks of the base may say too much and cannot just be or-ed."""
    number: int
    """Its number in the base, or -1."""


class Overlay(NamedTuple):
    """Changes on top of a base.

    A named tuple and not an attrs class: one is made for every update, and a frozen class takes five times as long.
    """

    added: "Map[int, AccessControlEntryRecord]" = Map()
    """By the uuid's integer value."""
    removed: "Map[int, bool]" = Map()
    """Rows of the base; the values mean nothing."""
    touched: "tuple[Map[str, TouchedResource], ...]" = (Map(),) * (2 * TYPES)
    """By twice the resource type, plus one for LITERAL: by name, a text that keeps its hash, as no tuple does."""
    lengths: tuple[tuple[int, ...], ...] = ((),) * TYPES
    """By resource type: the lengths of the touched prefixes, longest first. Prefixes of a name are found by cutting it
    at each length, which suits an overlay: it is small, and gone after the next merge."""
    wildcards: tuple[TouchedResource | None, ...] = (None,) * TYPES
    """By resource type: LITERAL `*`, if touched. Every decision needs it, so it is kept out of the map."""
    ranges: "Map[str, tuple[str, ...]]" = Map()
    """Principal -> hosts of added ACLs that contain a slash: candidates for CIDR ranges."""
    colonless: int = 0
    """How many ACLs were added whose principal has no colon. Never decreases: it only switches a slow check on."""
    unbindable: int = 0
    irregular: int = 0
    """What to add to the counts of the base (see Base)."""
    units: "Map[tuple[int, int], int]" = Map()
    """What to add to the base's UnitCounts."""
    changes: int = 0
    """The number of ACLs added and removed."""
    core: Core | None = None
    """The same changes in the native core, if there is one and the base was ever changed."""

    def resource(self, kind: int, name: str, *, literal: bool) -> TouchedResource | None:
        """Return a resource pattern, if a change touched it; `kind` is 0..7."""
        return self.touched[2 * kind + literal].get(name)

    def resources(self) -> Iterator[tuple[ResourceKey, TouchedResource]]:
        """Yield every resource pattern that a change touched."""
        for number, by_name in enumerate(self.touched):
            for name, touched in by_name.items():
                yield (number // 2, name, number % 2 == 1), touched


def key_of(acl: StandardAcl | AccessControlEntryRecord) -> ResourceKey:
    """Return the resource of an ACL as authorize() reads it."""
    return known_type(acl.resource_type), acl.resource_name, acl.pattern_type == PatternType.LITERAL
