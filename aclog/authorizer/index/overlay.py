"""The overlay: what changed since the base was made, in persistent maps, so that old images stay as they are."""

from typing import NamedTuple, TypeAlias

from immutables import Map

from aclog.authorizer.acl import PatternType, StandardAcl
from aclog.authorizer.index.masks import TYPES, known_type
from aclog.metalog.records import AccessControlEntryRecord

ResourceKey: TypeAlias = tuple[int, str, bool]
"""Resource type 0..7, name, whether LITERAL."""
PairKey: TypeAlias = tuple[str, str]

NO_ROWS = range(0)


class Cell(NamedTuple):
    """One resource and pair that a change touched: the mask of all its rules now, and those that were added."""

    mask: int
    added: tuple[AccessControlEntryRecord, ...]
    rows: range = NO_ROWS
    """The base's rows of this cell, removed ones included."""


class Touched(NamedTuple):
    """A resource that a change touched."""

    cells: "Map[PairKey, Cell]"
    rules: int
    """How many rules it has now, untouched ones included."""
    shrunk: bool
    """Whether a rule of the base was removed: then what the base says is more than what is true."""
    number: int
    """Its number in the base, or -1."""


class Overlay(NamedTuple):
    """Changes on top of a base. A named tuple, as one is made for every update."""

    added: "Map[int, AccessControlEntryRecord]" = Map()
    """By the uuid's integer value."""
    removed: "Map[int, bool]" = Map()
    """Rows of the base."""
    touched: "Map[ResourceKey, Touched]" = Map()
    lengths: tuple[tuple[int, ...], ...] = ((),) * TYPES
    """By resource type: the lengths of the touched prefixes, longest first."""
    stars: tuple[Touched | None, ...] = (None,) * TYPES
    """By resource type: LITERAL `*`, if touched."""
    ranges: "Map[str, tuple[str, ...]]" = Map()
    """Principal -> hosts with a slash of added rules (CIDR candidates)."""
    colonless: int = 0
    """How many rules were added whose principal has no colon; never falls."""
    unbindable: int = 0
    irregular: int = 0
    """See Base; the difference to it."""
    changes: int = 0
    """How many rules were added and removed."""


def key_of(acl: StandardAcl | AccessControlEntryRecord) -> ResourceKey:
    """The resource of a rule, as authorize() reads it."""
    return known_type(acl.resource_type), acl.resource_name, acl.pattern_type == PatternType.LITERAL
