"""The changed rules behind a row, and where they stand."""

from collections.abc import Iterator, Sequence

from attrs import define, field

from aclog.analysis.rows.row import Row
from aclog.authorizer.acl import WILDCARD, PatternType, StandardAcl
from aclog.authorizer.origin import FileOrigin, Origin, TwoOrigins
from aclog.authorizer.rule_change import RuleChange

_MOST = 10
"""Rules behind one row whose places are told."""


@define(eq=False)
class ChangedRules:
    """The rules that only one of two states has, and where they stand."""

    _changes: Sequence[RuleChange]
    _origins: TwoOrigins
    _by_rule: dict[tuple[bool, StandardAcl], RuleChange] = field(init=False)
    _on: dict[tuple[int, str, bool], list[int]] = field(init=False)
    """By resource type, name and whether it is LITERAL: places in `_changes`."""

    def __attrs_post_init__(self) -> None:
        self._by_rule = {(change.added, change.acl): change for change in self._changes}
        self._on = {}
        for at, change in enumerate(self._changes):
            acl = change.acl
            key = (acl.resource_type, acl.resource_name, acl.pattern_type == PatternType.LITERAL)
            self._on.setdefault(key, []).append(at)

    def places(self, row: Row) -> Iterator[FileOrigin]:
        """Yield the files and lines of the changed rules behind a row, those of the second state first."""
        found = sorted(self._behind(row), key=lambda change: not change.added)
        for change in found[:_MOST]:
            yield from (place for place in self._places(change) if isinstance(place, FileOrigin))

    def _places(self, change: RuleChange) -> Sequence[Origin]:
        """Return the line of a file of changes, or the lines that state the rule."""
        if change.origin is not None:
            return (change.origin,)
        return (self._origins.new if change.added else self._origins.old).of(change.acl)

    def _behind(self, row: Row) -> list[RuleChange]:
        """Return those that a summary tells of, else those that decide the example, else those on its resource.

        A request may change because of a rule that does not match it: the first one on a resource, or the last, closes
        or opens it with allow.everyone.if.no.acl.found.
        """
        if row.summary is not None:
            cause = row.summary.cause
            return self._known((cause.is_added, rule) for rule in cause.rules)
        decided = ((False, row.before), (True, row.after))
        deciding = self._known((added, rule) for added, rule in decided if isinstance(rule, StandardAcl))
        return deciding or self._covering(row)

    def _covering(self, row: Row) -> list[RuleChange]:
        kind, name = row.witness.resource_type, row.witness.resource_name
        literal = ((kind, each, True) for each in dict.fromkeys((name, WILDCARD)))
        prefixes = ((kind, name[:end], False) for end in range(len(name) + 1))
        found = (at for key in (*literal, *prefixes) for at in self._on.get(key, ()))
        return [self._changes[at] for at in sorted(found)]

    def _known(self, rules: Iterator[tuple[bool, StandardAcl]]) -> list[RuleChange]:
        return [self._by_rule[rule] for rule in rules if rule in self._by_rule]
