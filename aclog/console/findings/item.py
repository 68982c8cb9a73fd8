"""A finding of any kind, as pages show it."""

from collections.abc import Iterator
from datetime import date
from enum import StrEnum
from itertools import chain

from attrs import field, frozen

from aclog.analysis.lint.finding import Severity
from aclog.analysis.lint_report.located_finding import LocatedRule
from aclog.authorizer.acl import acl_text
from aclog.authorizer.acl_command import acl_command
from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.rule_change import RuleChange


class Kind(StrEnum):
    """Who finds it."""

    LINT = "lint"
    UNUSED = "unused"
    DRIFT = "drift"
    TESTS = "tests"


@frozen(kw_only=True)
class Archived:
    """Why somebody accepts a finding, and until when."""

    reason: str
    expires: date | None
    """The first day (UTC) on which it counts again."""
    where: str
    """File and line that state it."""


@frozen(kw_only=True)
class Item:
    """A finding, the rules that it is about, and how it is mended."""

    kind: Kind
    key: str
    """The same as long as it is the same finding, whatever its lines and offsets."""
    severity: Severity
    name: str
    """Of what is wrong, such as `08 shadowed-allow`."""
    text: str
    """What that means: what is lost, opened or not as it should be."""
    rules: tuple[LocatedRule, ...] = ()
    place: str = ""
    """Where it stands, if its rules do not say."""
    changes: tuple[RuleChange, ...] = ()
    """Mend it, in this order; none if only a person can tell what was meant."""
    advice: str = ""
    """The mend in words."""
    archived: Archived | None = None
    searched: str = field(init=False, repr=False, eq=False)
    """All that it says, in lower case."""

    @searched.default
    def _searched(self) -> str:
        named = ((each.acl.principal, each.acl.resource_name, each.acl.host, each.places_text()) for each in self.rules)
        return "\n".join((self.name, self.text, self.place, *chain.from_iterable(named))).lower()

    def names(self, principal: str) -> bool:
        """Return whether one of its rules is of a principal with this, in lower case, in its name."""
        if not self.rules:
            return principal in self.searched
        return any(principal in rule.acl.principal.lower() for rule in self.rules)

    def mend(self, place: ChangePlace) -> Iterator[str]:
        """Yield the mend: in words, then as commands."""
        if self.advice:
            yield self.advice
        for change in self.changes:
            command = acl_command(change.acl, add=change.added, place=place)
            yield command or f"{'add' if change.added else 'remove'} {acl_text(change.acl)}"
