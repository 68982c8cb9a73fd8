"""Rules by the names of their patterns: those that may cover some names are found without a look at the others."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from attrs import define

from aclog.analysis.regions.names import Literal, NamePart
from aclog.authorizer.acl import WILDCARD, PatternType, StandardAcl


@define(eq=False, kw_only=True)
class PatternIndex:
    """Rules, by resource type and name; immutable by convention."""

    _rules: dict[tuple[int, str], list[StandardAcl]]
    _names: list[tuple[int, str]]
    """Sorted."""
    _lengths: tuple[int, ...]
    """Of the names of patterns that are prefixes."""

    @staticmethod
    def of(rules: Iterable[StandardAcl]) -> "PatternIndex":
        """Index some rules."""
        found: dict[tuple[int, str], list[StandardAcl]] = {}
        lengths = set()
        for rule in rules:
            found.setdefault((rule.resource_type, rule.resource_name), []).append(rule)
            if rule.pattern_type != PatternType.LITERAL:
                lengths.add(len(rule.resource_name))
        return PatternIndex(rules=found, names=sorted(found), lengths=tuple(sorted(lengths)))

    def near(self, kind: int, part: NamePart) -> Iterator[StandardAcl]:
        """Yield at least the rules that cover a name of a part, each once."""
        name = part.name if isinstance(part, Literal) else part.prefix
        covering = {name[:length] for length in self._lengths if length < len(name)}
        for each in covering | {WILDCARD, name}:
            yield from self._rules.get((kind, each), ())
        if isinstance(part, Literal):
            return
        for position in range(bisect_left(self._names, (kind, name)), len(self._names)):
            found = self._names[position]
            if found[0] != kind or not found[1].startswith(name):
                return
            if found[1] not in (WILDCARD, name):
                yield from self._rules[found]
