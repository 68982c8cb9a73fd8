"""The names that resource patterns cover, and what they leave of a region."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from attrs import evolve, frozen

from aclog.analysis.regions.names import Literal, NamePart, Names, Subtree
from aclog.analysis.regions.region import Region
from aclog.analysis.regions.root import Root
from aclog.authorizer.acl import WILDCARD
from aclog.authorizer.index.prefix_range import prefix_range


@frozen(kw_only=True)
class _OfType:
    """The names of one resource type; LITERAL `*` apart."""

    prefixes: Sequence[str]
    """Sorted; none begins with another."""
    literals: Sequence[str]
    """Sorted; none begins with one of the prefixes."""
    wildcard: bool

    @classmethod
    def of(cls, roots: Iterable[Root]) -> "_OfType":
        """Return the names of these patterns."""
        prefixes: set[str] = set()
        literals: set[str] = set()
        for root in roots:
            (literals if root.literal else prefixes).add(root.name)
        topmost = _topmost(prefixes)
        return cls(
            prefixes=topmost,
            literals=[name for name in sorted(literals) if name != WILDCARD and not _begins_with_one(name, topmost)],
            wildcard=WILDCARD in literals,
        )

    def covers(self, root: Root, *, documented: bool) -> bool:
        """Return whether each name that a pattern other than LITERAL `*` covers is one of these."""
        if self.wildcard and (documented or root.name[:1] not in ("", WILDCARD)):
            return True
        return _begins_with_one(root.name, self.prefixes) or (root.literal and _has(self.literals, root.name))

    def outside(self, names: Names, *, documented: bool) -> Names:
        """Return what these names leave of others."""
        if self.wildcard:
            names = () if documented else tuple(_hidden(names))
        parts = map(self._outside, names)
        return tuple(part for part in parts if part is not None)

    def _outside(self, part: NamePart) -> NamePart | None:
        if isinstance(part, Literal):
            return None if _has(self.literals, part.name) or _begins_with_one(part.name, self.prefixes) else part
        if _begins_with_one(part.prefix, self.prefixes):
            return None
        prefixes, literals = _beginning(self.prefixes, part.prefix), _beginning(self.literals, part.prefix)
        if not prefixes and not literals:
            return part
        excepted = _topmost({*part.except_prefixes, *prefixes})
        single = {name for name in chain(part.except_literals, literals) if not _begins_with_one(name, excepted)}
        return evolve(part, except_prefixes=tuple(excepted), except_literals=tuple(sorted(single)))


@frozen(kw_only=True)
class HeldNames:
    """The names that some resource patterns cover."""

    _of_type: dict[int, _OfType]
    _documented: bool

    @classmethod
    def of(cls, roots: Iterable[Root], *, documented: bool) -> "HeldNames":
        """Return the names of these patterns; `documented` as aclog.authorizer.settings has it."""
        of_type: dict[int, list[Root]] = {}
        for root in roots:
            of_type.setdefault(root.kind, []).append(root)
        return cls(of_type={kind: _OfType.of(found) for kind, found in of_type.items()}, documented=documented)

    def covers(self, root: Root) -> bool:
        """Return whether each name that a pattern covers is one of these."""
        held = self._of_type.get(root.kind)
        if held is None:
            return False
        if root.literal and root.name == WILDCARD:
            return held.wildcard or "" in held.prefixes
        return held.covers(root, documented=self._documented)

    def outside(self, region: Region) -> Region | None:
        """Return the part of a region on other names; None if that is nothing."""
        held = self._of_type.get(region.resource_type)
        if held is None:
            return region
        names = held.outside(region.names, documented=self._documented)
        return evolve(region, names=names) if names else None


def _hidden(names: Names) -> Iterator[NamePart]:
    """Yield the names that LITERAL `*` does not cover in Kafka: longer ones that begin with `*`."""
    for part in names:
        if isinstance(part, Literal):
            if part.name.startswith(WILDCARD) and part.name != WILDCARD:
                yield part
        elif part.prefix in ("", WILDCARD):
            prefixes = tuple(each for each in part.except_prefixes if each.startswith(WILDCARD))
            if WILDCARD not in prefixes:
                single = {each for each in part.except_literals if each.startswith(WILDCARD)} | {WILDCARD}
                yield Subtree(prefix=WILDCARD, except_prefixes=prefixes, except_literals=tuple(sorted(single)))
        elif part.prefix.startswith(WILDCARD):
            yield part


def _topmost(prefixes: Iterable[str]) -> list[str]:
    """Return, sorted, those that begin with none of the others."""
    found: list[str] = []
    for each in sorted(prefixes):
        if not found or not each.startswith(found[-1]):
            found.append(each)
    return found


def _begins_with_one(name: str, topmost: Sequence[str]) -> bool:
    """Return whether a name begins with one of sorted prefixes, none of which begins with another."""
    # Whatever is sorted between a prefix and a name that begins with it begins with it, too.
    at = bisect_right(topmost, name)
    return at > 0 and name.startswith(topmost[at - 1])


def _beginning(names: Sequence[str], prefix: str) -> Sequence[str]:
    """Return those of sorted names that begin with a prefix."""
    begin, end = prefix_range(names, prefix)
    return names[begin:end]


def _has(names: Sequence[str], name: str) -> bool:
    at = bisect_left(names, name)
    return at < len(names) and names[at] == name
