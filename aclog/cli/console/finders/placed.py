"""Tells of findings where the log of the source has their rules."""

from collections.abc import Sequence
from uuid import UUID

from attrs import evolve, frozen

from aclog.analysis.lint_report.located_finding import LocatedRule
from aclog.authorizer.acl import StandardAcl
from aclog.console.findings.item import Item
from aclog.console.findings.looked import Finder, Looked, Subject
from aclog.sources.choice import ChosenSource
from aclog.sources.log_past import LogPast, past_of


@frozen(kw_only=True)
class PlacedFinder:
    """Finds what another one does, and adds which records added its rules, if nothing else says where they stand."""

    finder: Finder
    chosen: ChosenSource
    """Of a log that nobody else reads."""

    def look(self, subject: Subject) -> Looked:
        """Return what the other one finds. Raises as it does; MetadataError: the log is damaged."""
        found = self.finder.look(subject)
        rules = dict[UUID, StandardAcl]()
        for acl in {rule.acl for item in found.items for rule in item.rules if not rule.origins}:
            number = subject.image.acls.find(acl)
            if number is not None:
                rules[number] = acl
        if not rules:
            return found
        past = past_of(self.chosen.source, subject.image.end_offset, rules)
        return evolve(found, items=_placed(found.items, past))

    def had(self, then: Subject, found: Looked) -> frozenset[str]:
        """Return the keys of what an earlier state had, too."""
        return self.finder.had(then, found)

    def signature(self) -> object:
        """Return what changes with that which the other one reads."""
        return self.finder.signature()


def _placed(items: Sequence[Item], past: LogPast) -> tuple[Item, ...]:
    return tuple(evolve(item, rules=tuple(_placed_rule(rule, past) for rule in item.rules)) for item in items)


def _placed_rule(rule: LocatedRule, past: LogPast) -> LocatedRule:
    return rule if rule.origins else evolve(rule, origins=past.of(rule.acl))
