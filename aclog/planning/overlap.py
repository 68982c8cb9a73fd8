"""Which resource patterns cover a name in common."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence

from attrs import frozen

from aclog.authorizer.acl import WILDCARD, PatternType, ResourcePattern


@frozen(kw_only=True)
class _Texts:
    """Names or prefixes of one resource type."""

    sorted: Sequence[str]
    all: frozenset[str]
    lengths: Sequence[int]
    """Each once, sorted."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> "_Texts":
        """Return the index of these texts."""
        found = frozenset(texts)
        return cls(sorted=sorted(found), all=found, lengths=sorted({len(text) for text in found}))

    def any_begins_with(self, prefix: str) -> bool:
        """Return whether one of them begins with a prefix."""
        at = bisect_left(self.sorted, prefix)
        return at < len(self.sorted) and self.sorted[at].startswith(prefix)

    def any_begins(self, name: str) -> bool:
        """Return whether a name begins with one of them."""
        return any(name[:length] in self.all for length in self.lengths)


_NONE = _Texts.of(())


@frozen(kw_only=True)
class PatternSet:
    """Resource patterns, asked which other patterns cover a name in common with one of them."""

    _names: Mapping[int, _Texts]
    """Names of LITERAL patterns other than `*`, by resource type."""
    _prefixes: Mapping[int, _Texts]
    _wide: frozenset[int]
    """Resource types with LITERAL `*`, which covers nearly every name."""

    @classmethod
    def of(cls, patterns: Iterable[ResourcePattern]) -> "PatternSet":
        """Return the set of these patterns."""
        names: dict[int, set[str]] = {}
        prefixes: dict[int, set[str]] = {}
        wide = set()
        for each in patterns:
            if each.pattern_type != PatternType.LITERAL:
                prefixes.setdefault(each.resource_type, set()).add(each.name)
            elif each.name == WILDCARD:
                wide.add(each.resource_type)
            else:
                names.setdefault(each.resource_type, set()).add(each.name)
        return cls(
            names={kind: _Texts.of(texts) for kind, texts in names.items()},
            prefixes={kind: _Texts.of(texts) for kind, texts in prefixes.items()},
            wide=frozenset(wide),
        )

    def meets(self, resource_type: int, name: str, pattern_type: int) -> bool:
        """Return whether a pattern may cover a name that one of the set covers."""
        if resource_type in self._wide:
            return True
        names, prefixes = self._names.get(resource_type, _NONE), self._prefixes.get(resource_type, _NONE)
        if pattern_type != PatternType.LITERAL:
            return names.any_begins_with(name) or prefixes.any_begins_with(name) or prefixes.any_begins(name)
        if name == WILDCARD:
            return bool(names.all or prefixes.all)
        return name in names.all or prefixes.any_begins(name)


def overlapping(patterns: Collection[ResourcePattern]) -> set[ResourcePattern]:
    """Return those of the patterns that cover a name in common with another of them."""
    found: set[ResourcePattern] = set()
    types = {each.resource_type for each in patterns}
    for kind in types:
        found |= _overlapping([each for each in patterns if each.resource_type == kind])
    return found


def _overlapping(patterns: list[ResourcePattern]) -> set[ResourcePattern]:
    wide = [each for each in patterns if each.pattern_type == PatternType.LITERAL and each.name == WILDCARD]
    if wide and len(patterns) > 1:
        return set(patterns)
    found: set[ResourcePattern] = set()
    above: list[ResourcePattern] = []  # prefixes that the next names may begin with, each beginning with the one before
    for each in sorted(patterns, key=lambda one: (one.name, one.pattern_type == PatternType.LITERAL)):
        while above and not each.name.startswith(above[-1].name):
            above.pop()
        if above:
            found.update((each, above[-1]))
        if each.pattern_type != PatternType.LITERAL:
            above.append(each)
    return found
