"""Folds a union of names: exceptions that another part fills go, and so do parts that lie within another."""

from collections.abc import Iterable
from functools import partial
from itertools import takewhile

from aclog.analysis.regions.names import Literal, NamePart, Names, Subtree

MOST = 5_000
"""Folding looks at pairs of names; a report cuts so many anyway."""
_FEW = 100
"""A part with more exceptions is compared with no others."""


def fold(parts: Iterable[NamePart]) -> Names:
    """Return the same names as fewer parts, in the order of their names, a prefix before what begins with it.

    Beyond `MOST` parts and exceptions only what lies in the widest part is left out.
    """
    return tuple(sorted(_least(set(parts)), key=place))


def folds_to_more(parts: Iterable[NamePart], most: int) -> bool:
    """Return whether `fold` returns more parts than this; nothing is folded where there are no more to begin with."""
    distinct = set(parts)
    return len(distinct) > most and len(_least(distinct)) > most


def _least(parts: set[NamePart]) -> set[NamePart]:
    """Return the same names as the fewest parts that folding finds."""
    if sum(map(_size, parts)) > MOST:
        parts = _without_inner(parts)
        if sum(map(_size, parts)) > MOST:
            return parts
    return _folded(parts) if len(parts) > 1 else parts


def _without_inner(parts: set[NamePart]) -> set[NamePart]:
    """Return the parts without those that lie in the widest one."""
    subtrees = (part for part in parts if isinstance(part, Subtree))
    widest = min(subtrees, key=lambda part: (len(part.prefix), _size(part)), default=None)
    if widest is None or _size(widest) > _FEW:
        return parts
    return {part for part in parts if part == widest or not _lies_in(part, widest)}


def _lies_in(part: NamePart, outer: Subtree) -> bool:
    if isinstance(part, Literal):
        return part.name in outer
    return part.prefix.startswith(outer.prefix) and _covers(outer, part)


def _folded(parts: set[NamePart]) -> set[NamePart]:
    singles = {part.name for part in parts if isinstance(part, Literal)}
    subtrees: dict[str, Subtree] = {}
    for part in parts:
        if isinstance(part, Subtree):
            known = subtrees.get(part.prefix)
            subtrees[part.prefix] = part if known is None else _union(known, part)
    kept: dict[str, Subtree] = {}
    for prefix in sorted(subtrees, reverse=True):  # what is deeper first: it fills exceptions of what is above
        filled = _filled(subtrees[prefix], kept, singles)
        for below in list(takewhile(partial(_begins, prefix), reversed(kept))):
            if _covers(filled, kept[below]):
                del kept[below]
        kept[prefix] = filled
    return {*kept.values(), *(Literal(name=name) for name in singles if not _is_held(name, kept))}


def _begins(prefix: str, name: str) -> bool:
    return name.startswith(prefix)


def _is_held(name: str, subtrees: dict[str, Subtree]) -> bool:
    above = (subtrees.get(name[:end]) for end in range(len(name) + 1))
    return any(part is not None and name in part for part in above)


def _size(part: NamePart) -> int:
    return 1 if isinstance(part, Literal) else 1 + len(part.except_prefixes) + len(part.except_literals)


def place(part: NamePart) -> tuple[str, bool]:
    """Return where a part stands among others."""
    return (part.name, True) if isinstance(part, Literal) else (part.prefix, False)


def _union(one: Subtree, other: Subtree) -> Subtree:
    """Return the names of either of two subtrees of one prefix: only what both leave out is left out."""
    literals = {name for name in one.except_literals if name not in other}
    literals |= {name for name in other.except_literals if name not in one}
    prefixes = {name for name in one.except_prefixes if name.startswith(other.except_prefixes)}
    prefixes |= {name for name in other.except_prefixes if name.startswith(one.except_prefixes)}
    return Subtree(prefix=one.prefix, except_prefixes=tuple(sorted(prefixes)), except_literals=tuple(sorted(literals)))


def _filled(part: Subtree, below: dict[str, Subtree], singles: set[str]) -> Subtree:
    """Return a subtree whose exceptions are less what the other parts hold; the union with them is the same."""
    prefixes: list[str] = []
    literals = [name for name in part.except_literals if name not in singles]
    for prefix in part.except_prefixes:
        inner = below.get(prefix)
        if inner is None:
            prefixes.append(prefix)
        else:
            prefixes += inner.except_prefixes
            literals += (name for name in inner.except_literals if name not in singles)
    return Subtree(prefix=part.prefix, except_prefixes=tuple(sorted(prefixes)), except_literals=tuple(sorted(literals)))


def _covers(outer: Subtree, inner: Subtree) -> bool:
    """Return whether a subtree holds all of one below it."""
    return (
        not inner.prefix.startswith(outer.except_prefixes)
        and all(
            not prefix.startswith(inner.prefix) or prefix.startswith(inner.except_prefixes)
            for prefix in outer.except_prefixes
        )
        and all(name not in inner for name in outer.except_literals)
    )
