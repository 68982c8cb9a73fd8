"""The order in which Kafka's scan visits the ACLs that cover a name; it decides which of them is named.

StandardAuthorizerData.findAclRule walks one sorted set of all ACLs (StandardAcl.compareTo: type ascending, name
descending, then `scan_key`) in two sections. The first starts at the resource's name, the second at LITERAL `*`; each
goes down to the empty name and, at a name that is no prefix of the resource's, jumps to what the two names share. A
DENY ends the scan and is named; otherwise the last ALLOW that was visited is named. So a DENY is named by the order of
first visits, an ALLOW by the order of last visits. Nearly always both are the same: longest name first, then LITERAL
`*`, then the empty name. Both functions below say where they are not. The exceptions were found by differential tests
against the real class.
"""

from typing import NamedTuple, TypeAlias

from aclog.authorizer.acl import WILDCARD, PatternType, StandardAclWithId
from aclog.authorizer.index.acl_index import AclIndex, Levels, Resource
from aclog.authorizer.index.first_units import UnitCounts, first_unit
from aclog.authorizer.index.keys import utf16
from aclog.authorizer.index.masks import known_operation, known_pattern, known_permission

_ALL_PATTERNS = range(5)
_BELOW_LITERAL, _FROM_LITERAL = range(PatternType.LITERAL), range(PatternType.LITERAL, 5)
"""Codes of pattern types as Kafka reads them: ANY, MATCH and those that it does not know are below LITERAL."""


ScanKey: TypeAlias = tuple[int, int, bytes, bytes, int]


def scan_key(rule: StandardAclWithId) -> ScanKey:
    """Return the sort key of the ACLs on one name (StandardAcl.compareTo after type and name)."""
    acl = rule.acl
    return (
        known_pattern(acl.pattern_type),
        known_operation(acl.operation),
        utf16(acl.principal),
        utf16(acl.host),
        known_permission(acl.permission_type),
    )


def first_visits(index: AclIndex, levels: Levels, resource_type: int, name: str) -> list[list[Resource]]:
    """Return the levels, some possibly empty, in the order of Kafka's first visits to them."""
    if levels.wildcard and levels.empty and _empty_precedes_wildcard(index, resource_type, name):
        return [*levels.named, levels.empty, levels.wildcard]
    return [*levels.named, levels.wildcard, levels.empty]


class Visit(NamedTuple):
    """ACLs that Kafka's scan visits one after another: those of these patterns, by `scan_key`."""

    level: list[Resource]
    patterns: range = _ALL_PATTERNS
    """Only the ACLs whose pattern type has one of these codes."""

    def has(self, rule: StandardAclWithId) -> bool:
        """Return whether an ACL of the level is among them."""
        return known_pattern(rule.acl.pattern_type) in self.patterns


def last_visits(index: AclIndex, levels: Levels, resource_type: int, name: str) -> list[Visit]:
    """Return the levels, some possibly empty or in two parts, in the order of Kafka's last visits to them."""
    named, wildcard = list(map(Visit, levels.named)), Visit(levels.wildcard)
    if not levels.empty and utf16(name) >= utf16(WILDCARD):
        return [*named, wildcard]
    again, jumps = _second_section(index, resource_type, name)
    if again:
        named, twice = [], [wildcard, *named]
    elif name.startswith(WILDCARD) and named and named[-1].level[0].name == WILDCARD:
        star = named.pop().level
        named, twice = [*named, Visit(star, _BELOW_LITERAL)], [Visit(star, _FROM_LITERAL), wildcard]
    else:
        twice = [wildcard]
    if not jumps:
        return [*named, *twice, Visit(levels.empty)]
    # The section begins at the LITERAL `*`, and so it jumps to LITERAL on the empty name.
    return [*named, Visit(levels.empty, _BELOW_LITERAL), *twice, Visit(levels.empty, _FROM_LITERAL)]


def _second_section(index: AclIndex, resource_type: int, name: str) -> tuple[bool, bool]:
    """Return whether the second section visits the name and its prefixes again, and whether it jumps to the empty name.

    Going down from LITERAL `*` it comes past the names that sort below. At one that shares no character with the
    resource's it jumps. At one that does and is no prefix, Kafka 4.3.1 loops or throws ("Quirks" in docs/semantics.md);
    here it goes on.
    """
    first = first_unit(name) if name else -1
    # PREFIXED `*` sorts right after LITERAL `*`, and is a prefix of nothing that does not begin with `*`.
    if first != first_unit(WILDCARD) and PatternType.PREFIXED in _wildcard_patterns(index, resource_type):
        return False, True
    counts = _counts_by_first_unit(index).items()
    below = {unit for (kind, unit), count in counts if kind == resource_type and unit < first_unit(WILDCARD) and count}
    return max(below, default=None) == first, not below <= {first}


def _empty_precedes_wildcard(index: AclIndex, resource_type: int, name: str) -> bool:
    """Return whether Kafka's first section reaches the empty name before any section visits LITERAL `*`.

    The first section passes `*` on its way down only if the name sorts above `*` and nothing in between makes it jump:
    at a name that shares no character with the resource's, it jumps to the empty name and so over `*`.
    """
    if utf16(name) < utf16(WILDCARD):
        return True
    first = first_unit(name)
    counts = _counts_by_first_unit(index)
    return any(
        kind == resource_type and first_unit(WILDCARD) <= unit < first and count
        for (kind, unit), count in counts.items()
    ) or (
        # On the name `*` itself, pattern types below LITERAL sort before LITERAL `*` and cause the same jump.
        first_unit(WILDCARD) < first
        and any(pattern < PatternType.LITERAL for pattern in _wildcard_patterns(index, resource_type))
    )


def _wildcard_patterns(index: AclIndex, resource_type: int) -> set[int]:
    """Return the pattern types other than LITERAL of the ACLs on the name `*`."""
    base, overlay = index.base, index.overlay
    touched = overlay.resource(resource_type, WILDCARD, literal=False)
    found = set()
    number = base.resource(resource_type, WILDCARD, literal=False)
    for row in base.rows(*base.cells(number)):
        if row not in overlay.removed:
            found.add(known_pattern(base.codes(row, base.resources.key(number))[1]))
    for cell in touched.cells.values() if touched is not None else ():
        found.update(known_pattern(record.pattern_type) for record in cell.added)
    return found


def _counts_by_first_unit(index: AclIndex) -> UnitCounts:
    """Return the counts of the base with what the overlay changes in them."""
    base, changed = index.base.units, index.overlay.units
    return {**base, **{unit: base.get(unit, 0) + step for unit, step in changed.items()}} if changed else base
