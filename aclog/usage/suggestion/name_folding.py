"""Folding: many names of one prefix become that prefix, where this gives nothing beyond the present set."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from attrs import field, frozen

SEPARATORS: Final = frozenset(".-_/:")
"""Where names are cut, by the habits of those who name topics, groups and transactional ids."""


@frozen
class Folded:
    """Names, and the prefixes that stand for others."""

    literals: tuple[str, ...]
    """In order."""
    prefixes: Mapping[str, tuple[str, ...]] = field(factory=dict)
    """The names that each stands for, in order."""


def fold(names: Collection[str], least: int | None, may_fold: Callable[[str], bool]) -> Folded:
    """Fold `least` or more names into their longest prefix that ends in a separator, if it may be.

    The longest prefixes come first; what is left may fold into a shorter one, which then stands for the longer ones
    below it as well. None folds nothing.
    """
    left = set(names)
    prefixes: dict[str, set[str]] = {}
    if least is not None:
        members: dict[str, list[str]] = {}
        for name in names:
            for prefix in _prefixes(name):
                members.setdefault(prefix, []).append(name)
        for prefix in sorted(members, key=lambda text: (-len(text), text)):
            found = left.intersection(members[prefix])
            if len(found) >= least and may_fold(prefix):
                left -= found
                for below in [other for other in prefixes if other.startswith(prefix)]:
                    found |= prefixes.pop(below)
                prefixes[prefix] = found
    ordered = {prefix: tuple(sorted(prefixes[prefix])) for prefix in sorted(prefixes)}
    return Folded(tuple(sorted(left)), ordered)


def _prefixes(name: str) -> Iterator[str]:
    return (name[: at + 1] for at, character in enumerate(name) if character in SEPARATORS)
