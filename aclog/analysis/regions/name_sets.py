"""Sets of resource names: what two have in common, what a rule covers of one, and whether one has a whole prefix."""

from attrs import evolve

from aclog.analysis.regions.names import Literal, NamePart, Names, Subtree, contains
from aclog.authorizer.acl import WILDCARD, PatternType


def common(one: Names, other: Names) -> Names:
    """Return the names that are in both sets; parts may overlap."""
    if one == other:
        return one
    parts = (common_part(a, b) for a in one for b in other)
    return tuple(dict.fromkeys(part for part in parts if part is not None))


def common_part(one: NamePart, other: NamePart) -> NamePart | None:
    """Return the names that two parts have in common; None if they have none."""
    if isinstance(one, Literal):
        return one if one.name in other else None
    if isinstance(other, Literal):
        return other if other.name in one else None
    outer, inner = sorted((one, other), key=lambda part: len(part.prefix))
    if not inner.prefix.startswith(outer.prefix) or inner.prefix.startswith(outer.except_prefixes):
        return None
    if not (outer.except_prefixes or outer.except_literals):
        return inner
    prefixes = {*inner.except_prefixes, *(each for each in outer.except_prefixes if each.startswith(inner.prefix))}
    literals = {*inner.except_literals, *(each for each in outer.except_literals if each.startswith(inner.prefix))}
    return Subtree(
        prefix=inner.prefix, except_prefixes=tuple(sorted(prefixes)), except_literals=tuple(sorted(literals))
    )


def without(names: Names, taken: NamePart) -> Names:
    """Return the names of a set that are not a name, or not in a subtree without exceptions."""
    parts = (_part_without(part, taken) for part in names)
    return tuple(part for part in parts if part is not None)


def _part_without(part: NamePart, taken: NamePart) -> NamePart | None:
    if isinstance(part, Literal):
        return None if part.name in taken else part
    if isinstance(taken, Literal):
        if taken.name not in part:
            return part
        return evolve(part, except_literals=tuple(sorted((*part.except_literals, taken.name))))
    if part.prefix.startswith(taken.prefix):
        return None
    if not taken.prefix.startswith(part.prefix) or taken.prefix.startswith(part.except_prefixes):
        return part
    prefixes = (each for each in part.except_prefixes if not each.startswith(taken.prefix))
    literals = (each for each in part.except_literals if not each.startswith(taken.prefix))
    return evolve(
        part, except_prefixes=tuple(sorted((*prefixes, taken.prefix))), except_literals=tuple(sorted(literals))
    )


def less(names: Names, taken: NamePart) -> Names:
    """Return the names of a set that are not in a part."""
    if isinstance(taken, Literal):
        return without(names, taken)
    exceptions: Names = (
        *(Subtree(prefix=each) for each in taken.except_prefixes),
        *(Literal(name=each) for each in taken.except_literals),
    )
    return (*without(names, Subtree(prefix=taken.prefix)), *common(names, exceptions))


def covers_all(names: Names, prefix: str) -> bool:
    """Return whether a set has every non-empty name that begins with a prefix."""
    # A name that is none of the texts in the set, nor the prefix, is in it if another one is that begins with the same
    # of them and goes on with a character of its own: so these examples stand for all.
    texts = {text for part in names for text in _texts(part) if text.startswith(prefix)} | {prefix}
    fresh = next(code for code in range(0x21, 0xD800) if not any(chr(code) in text for text in texts))
    examples = (*texts - {""}, *(text + chr(fresh) for text in texts))
    return all(contains(names, example) for example in examples)


def _texts(part: NamePart) -> tuple[str, ...]:
    return (part.name,) if isinstance(part, Literal) else (part.prefix, *part.except_prefixes, *part.except_literals)


def pattern_meets(name: str, pattern: int, names: Names, *, documented: bool) -> bool:
    """Return whether the pattern of an ACL covers any of the names; documented: LITERAL `*` covers them all."""
    if pattern != PatternType.LITERAL:
        return any(_prefix_meets(name, part) for part in names)
    if name != WILDCARD:
        return contains(names, name)
    return documented or any(_has_usual_name(part) for part in names)


def _prefix_meets(prefix: str, part: NamePart) -> bool:
    if isinstance(part, Literal):
        return part.name.startswith(prefix)
    if prefix.startswith(part.prefix):
        return not prefix.startswith(part.except_prefixes)
    return part.prefix.startswith(prefix)


def _has_usual_name(part: NamePart) -> bool:
    """Return whether a part has a name that LITERAL `*` covers in Kafka: `*` itself, or one that does not begin so."""
    if WILDCARD in part:
        return True
    return not (part.name if isinstance(part, Literal) else part.prefix).startswith(WILDCARD)
