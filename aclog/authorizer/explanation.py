"""The explanation of a decision as a value."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from attrs import field, frozen

from aclog.authorizer.acl import AclOperation, PatternType, ResourceType, StandardAcl, StandardAclWithId, code_name
from aclog.authorizer.audit import Row
from aclog.authorizer.decision import Decision
from aclog.authorizer.explain_options import ExplainOptions
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.origin import Origins, place_object
from aclog.authorizer.premises import ALL_KNOWN, Premises


class Role(Enum):
    """The role of an ACL in a decision, the most important first."""

    DECIDES = "decides"
    MATCHES = "matches"
    OTHER_OPERATION = "other operation"
    OTHER_HOST = "other host"
    OTHER_PRINCIPAL = "other principal"


@frozen(kw_only=True)
class ExaminedRule:
    """An ACL that covers the resource, its role, and notes about it."""

    rule: StandardAclWithId
    role: Role
    notes: tuple[str, ...] = ()

    def to_dict(self, origins: Origins) -> Row:
        """Return this for JSON."""
        rule = {**self.rule.to_dict(), **place_object(self.rule.acl, origins)}
        return {"role": self.role.name, "rule": rule, "notes": list(self.notes)}


@frozen(kw_only=True)
class Change:
    """An ACL to add or to remove."""

    add: bool
    acl: StandardAcl
    command: str | None
    """The command line that makes the change; None if none can express the ACL."""

    def to_dict(self, origins: Origins) -> Row:
        """Return this for JSON."""
        row: Row = {**StandardAclWithId(id=None, acl=self.acl).to_dict()}
        del row["id"]
        row |= place_object(self.acl, origins)
        return {"change": "add" if self.add else "remove", "rule": row, "command": self.command}


@frozen(kw_only=True)
class Remedy:
    """The smallest change that reverses the decision: all of `changes`, and `left_off` further removals not listed."""

    changes: tuple[Change, ...] = ()
    left_off: int = 0
    notes: tuple[str, ...] = ()

    def to_dict(self, origins: Origins) -> Row:
        """Return this for JSON."""
        return {
            "changes": [change.to_dict(origins) for change in self.changes],
            "leftOff": self.left_off,
            "notes": list(self.notes),
        }


@frozen(kw_only=True)
class Explanation:
    """A decision and everything that took part in it.

    `rules` are the most important ACLs that cover the resource, up to a limit; `counts` has the total of each role.
    `implied_by` is the operation of the deciding ACL if it implied the requested one.
    """

    context: RequestContext
    action: Action
    decision: Decision
    rules: tuple[ExaminedRule, ...]
    counts: Mapping[Role, int]
    implied_by: AclOperation | None
    quirks: tuple[str, ...]
    near_misses: tuple[str, ...]
    """A sentence for each group of ACLs that match nobody, and were probably meant to match this request."""
    premises: Premises = ALL_KNOWN
    """What is unknown, and could turn the decision."""
    remedy: Remedy
    options: ExplainOptions = field(repr=False)
    example: str | None = None
    """Of a request for all names that begin so: one of them, whose decision this is; all are decided alike."""

    def __bool__(self) -> bool:
        """Return whether the request is allowed."""
        return self.allowed

    @property
    def allowed(self) -> bool:
        """Whether the request is allowed."""
        return self.decision.result is AuthorizationResult.ALLOWED

    @property
    def left_off(self) -> int:
        """The number of ACLs that are counted but not in `rules`."""
        return sum(self.counts.values()) - len(self.rules)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation for JSON; scripts depend on the keys."""
        pattern = self.action.resource_pattern
        return {
            "decision": self.decision.result.value,
            "rule": self.decision.text,
            "principal": self.context.principal,
            "host": self.context.host,
            "hostGiven": self.options.host_given,
            "operation": code_name(AclOperation, self.action.operation),
            "resourceType": code_name(ResourceType, pattern.resource_type),
            "resourceName": pattern.name,
            "patternType": code_name(PatternType, pattern.pattern_type),
            **({} if self.example is None else {"example": self.example}),
            "impliedBy": None if self.implied_by is None else self.implied_by.name,
            "counts": {role.name: self.counts.get(role, 0) for role in Role},
            "rules": [examined.to_dict(self.options.origins) for examined in self.rules],
            "leftOff": self.left_off,
            "quirks": list(self.quirks),
            "nearMisses": list(self.near_misses),
            "opposite": self.remedy.to_dict(self.options.origins),
            "asOf": self.options.as_of,
            **self.premises.key(),
        }
