"""Why a request is allowed or denied, as a value."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from attrs import frozen

from aclog.authorizer.acl import AclOperation, PatternType, ResourceType, StandardAcl, StandardAclWithId, code_name
from aclog.authorizer.audit import Row, rule_row
from aclog.authorizer.decision import Decision
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext


class Role(Enum):
    """What part a rule on the resource has in a decision, the weightiest first."""

    DECIDES = "decides"
    MATCHES = "matches"
    OTHER_OPERATION = "other operation"
    OTHER_HOST = "other host"
    OTHER_PRINCIPAL = "other principal"


@frozen(kw_only=True)
class ExaminedRule:
    """A rule on the resource, its part, and what is worth knowing about it."""

    rule: StandardAclWithId
    role: Role
    notes: tuple[str, ...] = ()

    def to_dict(self) -> Row:
        """For JSON."""
        return {"role": self.role.name, "rule": rule_row(self.rule), "notes": list(self.notes)}


@frozen(kw_only=True)
class Change:
    """A rule to add or to remove."""

    add: bool
    acl: StandardAcl
    command: str | None
    """The command line that does it, with the flags of kafka-acls; None where no command can."""

    def to_dict(self) -> Row:
        """For JSON."""
        row = rule_row(StandardAclWithId(id=None, acl=self.acl))
        del row["id"]
        return {"change": "add" if self.add else "remove", "rule": row, "command": self.command}


@frozen(kw_only=True)
class Remedy:
    """The least that gives the opposite answer: every change of the list; `left_off` counts those beyond it."""

    changes: tuple[Change, ...] = ()
    left_off: int = 0
    notes: tuple[str, ...] = ()

    def to_dict(self) -> Row:
        """For JSON."""
        return {
            "changes": [change.to_dict() for change in self.changes],
            "leftOff": self.left_off,
            "notes": list(self.notes),
        }


@frozen(kw_only=True)
class Explanation:
    """A decision and everything that took part in it.

    `rules` holds the weightiest rules on the resource, at most as many as were asked for; `counts` tells how many of
    each role there are in all. `implied_by` is the operation whose permission implied the one asked for.
    """

    context: RequestContext
    action: Action
    decision: Decision
    rules: tuple[ExaminedRule, ...]
    counts: Mapping[Role, int]
    implied_by: AclOperation | None
    quirks: tuple[str, ...]
    remedy: Remedy

    @property
    def allowed(self) -> bool:
        """Whether the answer is yes."""
        return self.decision.result is AuthorizationResult.ALLOWED

    @property
    def left_off(self) -> int:
        """How many rules on the resource are counted, but not in `rules`."""
        return sum(self.counts.values()) - len(self.rules)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; its keys stay as they are."""
        pattern = self.action.resource_pattern
        return {
            "decision": self.decision.result.value,
            "rule": self.decision.text,
            "principal": self.context.principal,
            "host": self.context.host,
            "operation": code_name(AclOperation, self.action.operation),
            "resourceType": code_name(ResourceType, pattern.resource_type),
            "resourceName": pattern.name,
            "patternType": code_name(PatternType, pattern.pattern_type),
            "impliedBy": None if self.implied_by is None else self.implied_by.name,
            "counts": {role.name: self.counts.get(role, 0) for role in Role},
            "rules": [examined.to_dict() for examined in self.rules],
            "leftOff": self.left_off,
            "quirks": list(self.quirks),
            "opposite": self.remedy.to_dict(),
        }
