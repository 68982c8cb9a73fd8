"""The overlay: what changed since the base was made, in persistent maps, so that old images stay as they are."""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias
from uuid import UUID

from attrs import define, field, frozen
from immutables import Map

from authorizer.acl import (
    WILDCARD,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
)
from authorizer.index.base import Base
from authorizer.index.keys import pair_key, resource_key
from authorizer.index.masks import TYPES, known_type, rule_mask
from metalog.errors import ReplayError
from metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from metalog.uuids import uuid_text

Change: TypeAlias = AccessControlEntryRecord | RemoveAccessControlEntryRecord
ResourceKey: TypeAlias = tuple[int, str, bool]
"""Resource type 0..7, name, whether LITERAL."""
PairKey: TypeAlias = tuple[str, str]


_ORDINARY_PATTERNS = frozenset((PatternType.LITERAL, PatternType.PREFIXED))
_ORDINARY_PERMISSIONS = frozenset((AclPermissionType.DENY, AclPermissionType.ALLOW))


class Cell(NamedTuple):
    """One resource and pair that a change touched: the mask of all its rules now, and those that were added."""

    mask: int
    added: tuple[AccessControlEntryRecord, ...]


class Touched(NamedTuple):
    """A resource that a change touched."""

    cells: "Map[PairKey, Cell]"
    rules: int
    """How many rules it has now, untouched ones included."""
    shrunk: bool
    """Whether a rule of the base was removed: then what the base says is more than what is true."""


@frozen(eq=False, kw_only=True)
class Overlay:
    """Changes on top of a base."""

    added: "Map[int, AccessControlEntryRecord]" = field(factory=Map)
    """By the uuid's integer value."""
    removed: "Map[int, bool]" = field(factory=Map)
    """Rows of the base."""
    touched: "Map[ResourceKey, Touched]" = field(factory=Map)
    lengths: tuple[tuple[int, ...], ...] = ((),) * TYPES
    """By resource type: the lengths of the touched prefixes, longest first."""
    stars: tuple[Touched | None, ...] = (None,) * TYPES
    """By resource type: LITERAL `*`, if touched."""
    ranges: "Map[str, tuple[str, ...]]" = field(factory=Map)
    """Principal -> hosts with a slash of added rules (CIDR candidates)."""
    colonless: int = 0
    """How many rules were added whose principal has no colon; never falls."""
    unbindable: int = 0
    irregular: int = 0
    """See Base; the difference to it."""
    changes: int = 0
    """How many rules were added and removed."""


def acl_of(record: AccessControlEntryRecord) -> StandardAcl:
    """The rule that a record carries."""
    return StandardAcl(
        resource_type=record.resource_type,
        resource_name=record.resource_name,
        pattern_type=record.pattern_type,
        principal=record.principal,
        host=record.host,
        operation=record.operation,
        permission_type=record.permission_type,
    )


def rule_of(record: AccessControlEntryRecord) -> StandardAclWithId:
    """The rule that a record carries, with its id."""
    return StandardAclWithId(id=record.id, acl=acl_of(record))


def key_of(acl: StandardAcl | AccessControlEntryRecord) -> ResourceKey:
    """The resource of a rule, as authorize() reads it."""
    return known_type(acl.resource_type), acl.resource_name, acl.pattern_type == PatternType.LITERAL


def is_unbindable(acl: StandardAcl | AccessControlEntryRecord) -> bool:
    """Whether Kafka cannot list the rule: something that only a filter may have."""
    return (
        acl.resource_type == ResourceType.ANY
        or acl.operation == AclOperation.ANY
        or acl.permission_type == AclPermissionType.ANY
        or acl.pattern_type in (PatternType.ANY, PatternType.MATCH)
    )


def is_irregular(acl: StandardAcl | AccessControlEntryRecord) -> bool:
    """Whether authorize() and byResourceType read the rule differently."""
    return acl.permission_type not in _ORDINARY_PERMISSIONS or acl.pattern_type not in _ORDINARY_PATTERNS


def apply_changes(base: Base, overlay: Overlay, changes: Iterable[Change]) -> Overlay:
    """The overlay after these changes, in order.

    Raises:
        ReplayError: an id that stands already, a content that stands under another id, a removal of an absent id.

    """
    draft = _Draft(
        base,
        overlay.added,
        overlay.removed,
        overlay.touched,
        overlay.lengths,
        overlay.stars,
        overlay.ranges,
        overlay.colonless,
        overlay.unbindable,
        overlay.irregular,
    )
    for change in changes:
        if isinstance(change, AccessControlEntryRecord):
            draft.add(change)
        else:
            draft.remove(change.id)
    return draft.overlay()


@define(eq=False)
class _Draft:
    """An overlay in the making; the fields are Overlay's."""

    base: Base
    added: "Map[int, AccessControlEntryRecord]"
    removed: "Map[int, bool]"
    touched: "Map[ResourceKey, Touched]"
    lengths: tuple[tuple[int, ...], ...]
    stars: tuple[Touched | None, ...]
    ranges: "Map[str, tuple[str, ...]]"
    colonless: int
    unbindable: int
    irregular: int

    def overlay(self) -> Overlay:
        return Overlay(
            added=self.added,
            removed=self.removed,
            touched=self.touched,
            lengths=self.lengths,
            stars=self.stars,
            ranges=self.ranges,
            colonless=self.colonless,
            unbindable=self.unbindable,
            irregular=self.irregular,
            changes=len(self.added) + len(self.removed),
        )

    def add(self, record: AccessControlEntryRecord) -> None:
        number = record.id.int
        if number in self.added or self._row(number) >= 0:
            raise ReplayError(f"ACL {uuid_text(record.id)} is added, but stands already")
        key, pair = key_of(record), (record.principal, record.host)
        touched, rows, cell = self._find(key, pair)
        self._check_content(record, rows, cell)
        mask = cell.mask | rule_mask(record.operation, record.permission_type)
        cells = touched.cells.set(pair, Cell(mask, (*cell.added, record)))
        self._touch(key, Touched(cells, touched.rules + 1, touched.shrunk))
        self.added = self.added.set(number, record)
        self._count(record, 1)
        if "/" in record.host:
            hosts = self.ranges.get(record.principal, ())
            self.ranges = self.ranges.set(record.principal, (*hosts, record.host))
        if ":" not in record.principal:
            self.colonless += 1

    def remove(self, uuid: UUID) -> None:
        number = uuid.int
        record = self.added.get(number)
        if record is not None:
            self.added = self.added.delete(number)
            self._drop(record, shrinks=False)
            return
        row = self._row(number)
        if row < 0:
            raise ReplayError(f"ACL {uuid_text(uuid)} is removed, but does not stand")
        self.removed = self.removed.set(row, True)
        self._drop(self.base.rule(row).acl, shrinks=True)

    def _drop(self, acl: StandardAcl | AccessControlEntryRecord, *, shrinks: bool) -> None:
        """Take a rule, which `added` and `removed` tell no more, out of its cell."""
        key, pair = key_of(acl), (acl.principal, acl.host)
        touched, rows, cell = self._find(key, pair)
        added = cell.added if shrinks else tuple(other for other in cell.added if other is not acl)
        mask = 0
        for other in added:
            mask |= rule_mask(other.operation, other.permission_type)
        for row in rows:
            if row not in self.removed:
                mask |= rule_mask(self.base.operations[row], self.base.permissions[row])
        cells = touched.cells.set(pair, Cell(mask, added))
        if not added and not rows:
            cells = cells.delete(pair)
        self._touch(key, Touched(cells, touched.rules - 1, touched.shrunk or shrinks))
        self._count(acl, -1)

    def _row(self, number: int) -> int:
        """The base's row with this id that still stands, or -1."""
        row = self.base.ids.find(number) if self.base.has_ids else -1
        return -1 if row in self.removed else row

    def _find(self, key: ResourceKey, pair: PairKey) -> tuple[Touched, range, Cell]:
        """A resource as it stands, the base's rows of its cell, and the cell."""
        base = self.base
        resource = base.resource(key[0], key[1], literal=key[2])
        low, high = base.cell(resource, base.pairs.find(pair_key(*pair)) if resource >= 0 else -1)
        touched = self.touched.get(key) or Touched(Map(), len(base.rows(*base.cells(resource))), shrunk=False)
        cell = touched.cells.get(pair) or Cell(base.cell_masks[low] if low < high else 0, ())
        return touched, base.rows(low, high), cell

    def _check_content(self, record: AccessControlEntryRecord, rows: range, cell: Cell) -> None:
        content = (record.resource_type, record.pattern_type, record.operation, record.permission_type)
        other: UUID | None = None
        for known in cell.added:
            if content == (known.resource_type, known.pattern_type, known.operation, known.permission_type):
                other = known.id
        if rows:
            key = resource_key(*key_of(record)[:2], literal=key_of(record)[2])
            for row in rows:
                if row not in self.removed and self.base.codes(row, key) == content:
                    other = self.base.id_of(row) or UUID(int=0)
        if other is not None:
            both = f"ACL {uuid_text(record.id)} says what ACL {uuid_text(other)} says"
            raise ReplayError(f"{both}: expected every rule once")

    def _touch(self, key: ResourceKey, touched: Touched) -> None:
        kind, name, literal = key
        if not literal and len(name) not in self.lengths[kind]:
            lengths = tuple(sorted((*self.lengths[kind], len(name)), reverse=True))
            self.lengths = (*self.lengths[:kind], lengths, *self.lengths[kind + 1 :])
        if literal and name == WILDCARD:
            self.stars = (*self.stars[:kind], touched, *self.stars[kind + 1 :])
        self.touched = self.touched.set(key, touched)

    def _count(self, acl: StandardAcl | AccessControlEntryRecord, step: int) -> None:
        if is_irregular(acl):
            self.irregular += step
        if is_unbindable(acl):
            self.unbindable += step
