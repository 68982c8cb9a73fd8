"""Where Kafka's scan strays from "longest name first": found by running it, needed to name the same rule.

Its authorizer walks one sorted set twice, from the resource's name and from `*`, each time down to the empty name, and
skips ahead at a name that is no prefix. So names that sort below `*` are looked at twice.
"""

from aclog.authorizer.acl import WILDCARD, PatternType
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.decision_mask import Levels, Resource, State
from aclog.authorizer.index.keys import resource_name, utf16
from aclog.authorizer.index.masks import known_pattern


def empty_comes_first(state: State, resource_type: int, name: str) -> bool:
    """Whether Kafka's scan gets to the empty prefix before LITERAL `*`.

    It does when it starts below `*`, or meets a name above `*` that shares no character with the resource's.
    """
    if utf16(name) < utf16(WILDCARD):
        return True
    first = _unit(name)
    initials = _initials(state)
    return any(
        kind == resource_type and _unit(WILDCARD) <= initial < first and count
        for (kind, initial), count in initials.items()
    ) or (_unit(WILDCARD) < first and any(p < PatternType.LITERAL for p in _wildcard_patterns(state, resource_type)))


def last_looks(state: State, levels: Levels, resource_type: int, name: str) -> list[list[Resource]]:
    """The levels in the order in which Kafka last looks at them: LITERAL `*` and the empty prefix at the end.

    Of a name that sorts below `*`, the prefixes are looked at again after `*`, down to a name that is none.
    """
    if not name or utf16(name) >= utf16(WILDCARD):
        return [*levels.others, levels.star, levels.empty]
    again: set[str] = set()
    if not _has_prefixed_wildcard(state, resource_type):
        for below in _names_below_wildcard(state, resource_type):
            if not name.startswith(below):
                break
            again.add(below)
    once = [level for level in levels.others if level[0].name not in again]
    return [*once, levels.star, *(level for level in levels.others if level[0].name in again), levels.empty]


def _unit(name: str) -> int:
    return int.from_bytes(utf16(name)[:2])


def _wildcard_patterns(state: State, resource_type: int) -> set[int]:
    """The pattern types other than LITERAL of the rules named `*`."""
    base, overlay = state.base, state.overlay
    touched = overlay.touched.get((resource_type, WILDCARD, False))
    found = set()
    number = base.resource(resource_type, WILDCARD, literal=False)
    for row in base.rows(*base.cells(number)):
        if row not in overlay.removed:
            found.add(known_pattern(base.codes(row, base.resources.key(number))[1]))
    for cell in touched.cells.values() if touched is not None else ():
        found.update(known_pattern(record.pattern_type) for record in cell.added)
    return found


def _has_prefixed_wildcard(state: State, resource_type: int) -> bool:
    return PatternType.PREFIXED in _wildcard_patterns(state, resource_type)


def _initials(state: State) -> dict[tuple[int, int], int]:
    """How many rules there are by type and first code unit of a name other than `*` itself."""
    known: dict[tuple[int, int], int] | None = state.memo.get("initials")
    if known is None:
        known = dict(_base_names(state.base)[0])
        for (kind, name, literal), touched in state.overlay.touched.items():
            if name and name != WILDCARD:
                number = state.base.resource(kind, name, literal=literal)
                before = len(state.base.rows(*state.base.cells(number)))
                key = kind, _unit(name)
                known[key] = known.get(key, 0) + touched.rules - before
        state.memo["initials"] = known
    return known


def _names_below_wildcard(state: State, resource_type: int) -> list[str]:
    """The names of a type that sort below `*` and have rules, from the highest down."""
    names = {name for kind, name in _base_names(state.base)[1] if kind == resource_type}
    names |= {
        name for kind, name, _ in state.overlay.touched if kind == resource_type and utf16(name) < utf16(WILDCARD)
    }
    alive = (name for name in names if any(map(state.count, state.named(resource_type, name))))
    return sorted(alive, key=utf16, reverse=True)


def _base_names(base: Base) -> tuple[dict[tuple[int, int], int], list[tuple[int, str]]]:
    """The base's part of the two above, kept with it."""
    known = base.memo.names
    if known is None:
        initials: dict[tuple[int, int], int] = {}
        below = []
        for number in range(len(base.resources)):
            key = base.resources.key(number)
            name = resource_name(key)
            if not name or utf16(name) < utf16(WILDCARD):
                below.append((key[0], name))
            if name and name != WILDCARD:
                place = key[0], _unit(name)
                initials[place] = initials.get(place, 0) + len(base.rows(*base.cells(number)))
        known = base.memo.names = initials, below
    return known
