"""Decides foreign questions from one state."""

from typing import Any

from attrs import define, field, frozen

from aclog.analysis.answers.set_decision import decide_set
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import AclOperation, PatternType, ResourcePattern
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.name_notation import check_topic_name, is_set, parse_name
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import StandardAuthorizer
from aclog.console.pdp.mapping import ForeignType, Mapped, Words
from aclog.console.pdp.requests import ActionName, Entity, Evaluation
from aclog.metalog.errors import ConfigError
from aclog.terminal.json_text import json_string, json_text

_REMEMBERED = 100_000
"""Answers that are remembered."""
_SHORT = 1024
"""Characters of a question that is remembered: what holds memory is bounded by both."""


@frozen(kw_only=True)
class Answer:
    """A decision, and why; `rule` as Kafka's audit log names it, None if the question is not mapped."""

    decision: bool
    rule: str | None
    reason: str
    unknown: tuple[str, ...] = ()
    """The names of settings that are unknown, and could turn the decision."""

    def text(self, offset: int) -> str:
        """Return AuthZEN's decision as JSON; `offset` is the end of the state that it was made from."""
        rule = "" if self.rule is None else f'"rule":{json_string(self.rule)},'
        decision = "true" if self.decision else "false"
        unknown = f',"premises":{json_text(self.unknown)}' if self.unknown else ""
        reason = json_string(self.reason)
        return f'{{"decision":{decision},"context":{{{rule}"reason":{reason},"offset":{offset}{unknown}}}}}'


@frozen(kw_only=True)
class KafkaRequest:
    """A question in Kafka's terms; if the pattern type is PREFIXED, on all names that begin so."""

    principal: str
    host: str
    operation: int
    resource_type: int
    name: str
    pattern_type: int = PatternType.LITERAL


@define(eq=False, kw_only=True)
class Decider:
    """One state, its settings, and a mapping. Safe for any number of threads."""

    acls: AclsImage
    authorizer: StandardAuthorizer
    """Decides from these ACLs; ready, and changed by nobody any more."""
    policy: Policy
    """The same, for questions on all names that begin with a prefix."""
    mapping: Mapped
    offset: int
    """The end offset of the state; 0 where there are no offsets."""
    super_users: frozenset[str] = frozenset()
    premises: Premises = ALL_KNOWN
    """What is unknown of the settings."""
    _known: dict[KafkaRequest, Answer] = field(factory=dict)

    @staticmethod
    def of(
        acls: AclsImage, settings: Settings, mapping: Mapped, offset: int, premises: Premises = ALL_KNOWN
    ) -> "Decider":
        """Return what decides from these ACLs with these settings."""
        acls = acls.with_options(documented=settings.documented, cidr=settings.cidr)
        policy = Policy(acls, settings)
        return Decider(
            acls=acls,
            authorizer=policy.authorizer,
            policy=policy,
            mapping=mapping,
            offset=offset,
            super_users=settings.super_users,
            premises=premises,
        )

    def evaluate(self, asked: Evaluation, *, exact: bool = False) -> Answer:
        """Return the decision on a question; what is not mapped is not allowed.

        `exact`: the resource's id is a name as it is, which some client asks for.
        """
        host = asked.circumstances.host
        found = self.request_of(asked.subject, asked.action, asked.resource, host, exact=exact)
        return found if isinstance(found, Answer) else self.decide(found)

    def request_of(
        self, subject: Entity, action: ActionName, resource: Entity, host: str, *, exact: bool = False
    ) -> KafkaRequest | Answer:
        """Return a question in Kafka's terms; or the answer, if it has none."""
        kind = self.mapping.subject_type(subject.type)
        principal = None if kind is None else kind.forward(subject.id, subject.properties)
        if principal is None:
            return _unmapped("subject", subject.type, self.mapping.subjects)
        found = self.action_of(action, resource, exact=exact)
        if isinstance(found, Answer):
            return found
        operation, pattern = found
        return KafkaRequest(
            principal=principal[1],
            host=host,
            operation=int(operation),
            resource_type=pattern.resource_type,
            name=pattern.name,
            pattern_type=pattern.pattern_type,
        )

    def action_of(
        self, action: ActionName, resource: Entity, *, exact: bool = False
    ) -> tuple[AclOperation, ResourcePattern] | Answer:
        """Return what is asked of a resource, in Kafka's terms; or the answer, if it has none."""
        kind = self.mapping.resource_type(resource.type)
        pattern = None
        try:
            if kind is not None:
                pattern = _pattern(kind, resource, exact=exact)
        except ConfigError as error:
            return Answer(decision=False, rule=None, reason=str(error))
        if kind is None or pattern is None:
            return _unmapped("resource", resource.type, self.mapping.resources)
        operation = kind.operation(action.name, action.properties)
        return _unmapped("action", action.name, kind.actions) if operation is None else (operation, pattern)

    def decide(self, asked: KafkaRequest) -> Answer:
        """Return the decision on a request of Kafka's."""
        known = self._known.get(asked)
        if known is None:
            known = self._decided(asked)
            if len(asked.principal) + len(asked.host) + len(asked.name) <= _SHORT:
                if len(self._known) >= _REMEMBERED:
                    self._known.clear()
                self._known[asked] = known
        return known

    def _decided(self, asked: KafkaRequest) -> Answer:
        pattern = ResourcePattern(resource_type=asked.resource_type, name=asked.name, pattern_type=asked.pattern_type)
        context = RequestContext(principal=asked.principal, host=asked.host)
        action = Action(operation=asked.operation, resource_pattern=pattern)
        try:
            if is_set(pattern):
                found = decide_set(self.policy, context, action).decision
            else:
                found = self.authorizer.decide(context, action)
        except (InvalidRequestError, ConfigError) as error:
            return Answer(decision=False, rule=None, reason=str(error))
        return Answer(
            decision=bool(found), rule=found.text, reason=found.basis.value, unknown=self._unknown(pattern, bool(found))
        )

    def _unknown(self, pattern: ResourcePattern, allowed: bool) -> tuple[str, ...]:  # the decision
        if not self.premises:
            return ()
        return self.premises.bearing_on(allowed=allowed, has_candidate=self.acls.covers(pattern)).names


def _pattern(kind: ForeignType, resource: Entity, *, exact: bool) -> ResourcePattern | None:
    """Return a resource in Kafka's terms, `x*` as all names that begin with x; None if it is not mapped.

    Raises:
        ConfigError: as `parse_name`, or a star in a topic's name.

    """
    name, pattern_type = (resource.id, PatternType.LITERAL) if exact else parse_name(resource.id)
    forward = kind.forward if pattern_type is PatternType.LITERAL else kind.forward_prefix
    target = forward(name, resource.properties)
    if target is None:
        return None
    pattern = ResourcePattern(resource_type=int(target[0].resource_type), name=target[1], pattern_type=pattern_type)
    if not exact:
        check_topic_name(pattern)
    return pattern


def _unmapped(what: str, word: str, words: Words[Any] | None) -> Answer:
    why = "" if words is None else words.why_not(word)
    return Answer(decision=False, rule=None, reason=f"{what} {word[:80]!r} is not mapped{why}")
