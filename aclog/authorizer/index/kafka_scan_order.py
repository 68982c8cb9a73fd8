"""The order in which Kafka's scan visits the ACLs that cover a name; it decides which of them is named.

StandardAuthorizerData.findAclRule walks one sorted set of all ACLs (StandardAcl.compareTo: type ascending, name
descending, then `scan_key`) in two sections. The first starts at the resource's name, the second at LITERAL `*`; each
goes down to the empty name and, at a name that is no prefix of the resource's, jumps to what the two names share. A
DENY ends the scan and is named; otherwise the last ALLOW that was visited is named. So a DENY is named by the order of
first visits, an ALLOW by the order of last visits. Nearly always both are the same: longest name first, then LITERAL
`*`, then the empty name. Both functions below say where they are not. The exceptions were found by differential tests
against the real class.

Not reproduced, since only a handwritten record can cause it: at a name below `*` that is no prefix, the second section
jumps with a LITERAL exemplar and so misses ACLs on the empty name whose pattern type sorts below LITERAL (UNKNOWN, ANY,
MATCH). Kafka then names an ALLOW on LITERAL `*`, this module the one on the empty name; the decision is the same.
"""

from aclog.authorizer.acl import WILDCARD, PatternType, StandardAclWithId
from aclog.authorizer.index.acl_index import AclIndex, Levels, Resource
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.keys import resource_name, utf16
from aclog.authorizer.index.masks import known_operation, known_pattern, known_permission


def scan_key(rule: StandardAclWithId) -> tuple[int, int, bytes, bytes, int]:
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


def last_visits(index: AclIndex, levels: Levels, resource_type: int, name: str) -> list[list[Resource]]:
    """Return the levels, some possibly empty, in the order of Kafka's last visits to them."""
    if not name or utf16(name) >= utf16(WILDCARD):
        return [*levels.named, levels.wildcard, levels.empty]
    # The name sorts below `*`, so the second section comes past its prefixes again on the way down from `*`, until it
    # meets a name that is no prefix. (There Kafka 4.3.1 loops or throws: "Quirks" in docs/semantics.md.) PREFIXED `*`
    # sorts right after LITERAL `*` and is no prefix of the name: it ends the second section at once.
    again: set[str] = set()
    if PatternType.PREFIXED not in _wildcard_patterns(index, resource_type):
        for below in _names_below_wildcard(index, resource_type):
            if not name.startswith(below):
                break
            again.add(below)
    once = [level for level in levels.named if level[0].name not in again]
    return [*once, levels.wildcard, *(level for level in levels.named if level[0].name in again), levels.empty]


def _empty_precedes_wildcard(index: AclIndex, resource_type: int, name: str) -> bool:
    """Return whether Kafka's first section reaches the empty name before any section visits LITERAL `*`.

    The first section passes `*` on its way down only if the name sorts above `*` and nothing in between makes it jump:
    at a name that shares no character with the resource's, it jumps to the empty name and so over `*`.
    """
    if utf16(name) < utf16(WILDCARD):
        return True
    first = _first_unit(name)
    counts = _counts_by_first_unit(index)
    return any(
        kind == resource_type and _first_unit(WILDCARD) <= unit < first and count
        for (kind, unit), count in counts.items()
    ) or (
        # On the name `*` itself, pattern types below LITERAL sort before LITERAL `*` and cause the same jump.
        _first_unit(WILDCARD) < first
        and any(pattern < PatternType.LITERAL for pattern in _wildcard_patterns(index, resource_type))
    )


def _first_unit(name: str) -> int:
    """Return the first UTF-16 code unit; 0 for the empty name."""
    return int.from_bytes(utf16(name)[:2])


def _wildcard_patterns(index: AclIndex, resource_type: int) -> set[int]:
    """Return the pattern types other than LITERAL of the ACLs on the name `*`."""
    base, overlay = index.base, index.overlay
    touched = overlay.touched.get((resource_type, WILDCARD, False))
    found = set()
    number = base.resource(resource_type, WILDCARD, literal=False)
    for row in base.rows(*base.cells(number)):
        if row not in overlay.removed:
            found.add(known_pattern(base.codes(row, base.resources.key(number))[1]))
    for cell in touched.cells.values() if touched is not None else ():
        found.update(known_pattern(record.pattern_type) for record in cell.added)
    return found


def _counts_by_first_unit(index: AclIndex) -> dict[tuple[int, int], int]:
    """Return the number of ACLs by type and first code unit of the name, those on `*` and the empty name left out."""
    known: dict[tuple[int, int], int] | None = index.memo.get("counts by first unit")
    if known is None:
        known = dict(_base_names(index.base)[0])
        for (kind, name, literal), touched in index.overlay.touched.items():
            if name and name != WILDCARD:
                number = index.base.resource(kind, name, literal=literal)
                before = len(index.base.rows(*index.base.cells(number)))
                key = kind, _first_unit(name)
                known[key] = known.get(key, 0) + touched.rules - before
        index.memo["counts by first unit"] = known
    return known


def _names_below_wildcard(index: AclIndex, resource_type: int) -> list[str]:
    """Return the names of a type that have ACLs and sort below `*`, in scan order (descending)."""
    names = {name for kind, name in _base_names(index.base)[1] if kind == resource_type}
    names |= {
        name for kind, name, _ in index.overlay.touched if kind == resource_type and utf16(name) < utf16(WILDCARD)
    }
    alive = (name for name in names if any(map(index.count, index.named(resource_type, name))))
    return sorted(alive, key=utf16, reverse=True)


def _base_names(base: Base) -> tuple[dict[tuple[int, int], int], list[tuple[int, str]]]:
    """Return the base's share of the two functions above, built on first use: the exceptions are rare."""
    known = base.memo.names
    if known is None:
        counts: dict[tuple[int, int], int] = {}
        below = []
        for number in range(len(base.resources)):
            key = base.resources.key(number)
            name = resource_name(key)
            if not name or utf16(name) < utf16(WILDCARD):
                below.append((key[0], name))
            if name and name != WILDCARD:
                unit = key[0], _first_unit(name)
                counts[unit] = counts.get(unit, 0) + len(base.rows(*base.cells(number)))
        known = base.memo.names = counts, below
    return known
