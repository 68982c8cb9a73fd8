"""Decisions on foreign questions from one state."""

import re
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from time import sleep
from types import MappingProxyType
from typing import Any, NamedTuple, Self, TypeAlias
from urllib.parse import unquote

from attrs import evolve, field
from starlette.requests import HTTPConnection

from aclog.analysis.policy import Policy
from aclog.analysis.timeline import decide_set
from aclog.authorizer.acl import AclBindingFilter, ResourcePattern, StandardAcl, host_address
from aclog.authorizer.acls_image import AclsImage, Decision
from aclog.authorizer.codes import WILDCARD, WILDCARD_PRINCIPAL, AclOperation, AclPermissionType, PatternType
from aclog.authorizer.interface import Action, InvalidRequestError, RequestContext
from aclog.authorizer.settings import Generation, Settings, check_topic_name, controllers_decide, is_set, parse_name
from aclog.authorizer.standard import ALL_KNOWN, NO_KEY, Premises, StandardAuthorizer
from aclog.console.live import LivePremises, LiveState, ReadState, none_unknown
from aclog.console.pdp.mapping import (
    BadRequestError,
    EnvoyMapping,
    ForeignType,
    Mapped,
    NotReadyError,
    Template,
    Words,
)
from aclog.console.pdp.workers import AnsweredOffsets
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.json_object import json_string
from aclog.metalog.primitives import elapsed_seconds
from aclog.metalog.values import define, frozen
from aclog.snapshots.deciding_kafka import deciding_kafka
from aclog.snapshots.image import Image
from aclog.sources.logs import ReplacedError
from aclog.terminal.columns import json_text

# The sender of a request.


REQUEST_ID = "X-Request-ID"


@frozen(kw_only=True)
class Asker:
    """The other end of a connection, and the id that it gives to a request."""

    address: str
    """The address, such as 127.0.0.1:50006, or [::1]:50006."""
    request_id: str | None

    @staticmethod
    def of(request: HTTPConnection) -> "Asker":
        """Return the sender of a request."""
        return Asker.at(request.client, request.headers.get(REQUEST_ID))

    @staticmethod
    def at(client: tuple[str, int] | None, request_id: str | None) -> "Asker":
        """Return the sender of a request at an address."""
        host, port = ("", 0) if client is None else client
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return Asker(address=address, request_id=request_id)


# Requests of the Authorization API, parsed: missing or mistyped keys are errors, unknown ones are ignored.


Json = Mapping[str, Any]
THIS_MACHINE = "127.0.0.1"
_NO_PROPERTIES: Json = MappingProxyType({})
_LONGEST = 32_767
"""Characters of a type, an id or an action: Kafka's own strings end there. A batch repeats what its questions share."""


class Entity(NamedTuple):
    """A subject or a resource; `id` is empty in the searched entity."""

    type: str
    id: str
    properties: Json = _NO_PROPERTIES


class ActionName(NamedTuple):
    """An action."""

    name: str
    properties: Json = _NO_PROPERTIES


class Circumstances(NamedTuple):
    """The relevant keys of a request's context."""

    host: str = THIS_MACHINE
    """The client's address, as rules have it."""
    as_of: str | None = None
    """An end offset or a time: the state to decide from; None for the newest."""


class Evaluation(NamedTuple):
    """One question."""

    subject: Entity
    action: ActionName
    resource: Entity
    circumstances: Circumstances


PlainWords: TypeAlias = tuple[str, str, str, str, str]
"""The type and the id of a subject, the name of an action, the type and the id of a resource."""


def plain_words(body: Json) -> PlainWords | None:
    """Return the words of a question without properties and context; None: another question, valid or not.

    Most questions are such, and need none of the objects of `parse_evaluation`.
    """
    subject, action, resource = body.get("subject"), body.get("action"), body.get("resource")
    if not (type(subject) is dict and type(action) is dict and type(resource) is dict):
        return None
    if not len(subject) == len(resource) == 2 or len(action) != 1 or body.get("context") is not None:
        return None
    try:
        words = subject["type"], subject["id"], action["name"], resource["type"], resource["id"]
    except KeyError:
        return None
    # Unrolled: a loop over the five takes a fifth of the time of a question.
    one, two, three, four, five = words
    if not type(one) is type(two) is type(three) is type(four) is type(five) is str:
        return None
    is_short = len(one) + len(two) + len(three) + len(four) + len(five) <= _LONGEST
    return words if one and two and three and four and five and is_short else None


def parse_evaluation(body: Json) -> Evaluation:
    """Return the question in an object. Raises BadRequestError."""
    return Evaluation(
        subject=parse_entity(body, "subject"),
        action=parse_action(body),
        resource=parse_entity(body, "resource"),
        circumstances=parse_context(body),
    )


def parse_entity(body: Json, key: str, *, searched: bool = False) -> Entity:
    """Return a subject or a resource; the id of one that is searched for is ignored. Raises BadRequestError."""
    value = _object(body, key)
    return Entity(
        type=_text(value, key, "type"),
        id="" if searched else _text(value, key, "id"),
        properties=_properties(value, key),
    )


def parse_action(body: Json) -> ActionName:
    """Return the action. Raises BadRequestError."""
    value = _object(body, "action")
    return ActionName(name=_text(value, "action", "name"), properties=_properties(value, "action"))


def parse_context(body: Json) -> Circumstances:
    """Return the context, which may be missing. Raises BadRequestError."""
    value = body.get("context")
    if value is None:
        return Circumstances()
    if not isinstance(value, dict):
        raise BadRequestError("context: expected an object")
    as_of = value.get("as_of")
    key = "ip" if value.get("host") is None else "host"
    host = value.get(key)
    if isinstance(as_of, int) and not isinstance(as_of, bool):
        as_of = str(as_of)
    if as_of is not None and not isinstance(as_of, str):
        raise BadRequestError("context: as_of: expected an offset or a time")
    address = THIS_MACHINE if host is None else parse_host(host, f"context.{key}")
    return Circumstances(host=address, as_of=as_of)


def parse_host(value: object, where: str) -> str:
    """Return a client's address as rules have it.

    Raises:
        BadRequestError: it is no address. No rule has such a host, so a DENY of the client's real one would not count.

    """
    if not isinstance(value, str):
        raise BadRequestError(f"{where}: expected a client's address")
    try:
        return host_address(value)
    except ConfigError as error:
        raise BadRequestError(f"{where}: {error}") from None


def _object(body: Json, key: str) -> Json:
    value = body.get(key)
    if value is None:
        raise BadRequestError(f"{key} is missing")
    if not isinstance(value, dict):
        raise BadRequestError(f"{key}: expected an object")
    return value


def _text(value: Json, where: str, key: str) -> str:
    text = value.get(key)
    if not isinstance(text, str):
        raise BadRequestError(f"{where}.{key} is missing" if text is None else f"{where}.{key}: expected a text")
    if len(text) > _LONGEST:
        raise BadRequestError(f"{where}.{key}: longer than any name: expected at most {_LONGEST:,} characters")
    return text


def _properties(value: Json, where: str) -> Json:
    properties = value.get("properties")
    if properties is None:
        return {}
    if not isinstance(properties, dict):
        raise BadRequestError(f"{where}.properties: expected an object")
    return properties


# Decides foreign questions from one state.


_REMEMBERED = 100_000
"""Answers that are remembered."""
_MOST_MEANINGS = 1024
"""Combinations of types and actions that are remembered."""
_LONGEST_KEPT = 4096
"""Characters of an answer that is remembered for its rule."""
_SHORT = 1024
"""Characters of a question that is cached: memory is bounded by both."""


ALLOWED_ONLY_ON = "allowedOnlyOn"
"""The key of `Answer.only_on`, as in the answers of `aclog authorize --requests`."""


class Answer(NamedTuple):
    """A decision, and why; `rule` as Kafka's audit log names it, None if the question is not mapped."""

    decision: bool
    rule: str | None
    reason: str
    unknown: tuple[str, ...] = ()
    """The names of settings that are unknown, and could turn the decision."""
    only_on: tuple[str, ...] = ()
    """The versions of Kafka that allow what is denied, where it is unknown which one decides: the stricter one counts.
    """

    def text(self, offset: int) -> str:
        """Return AuthZEN's decision as JSON; `offset` is the end of the state that it was made from."""
        unknown = f',"premises":{json_text(self.unknown)}' if self.unknown else ""
        only_on = f',"{ALLOWED_ONLY_ON}":{json_text(self.only_on)}' if self.only_on else ""
        return f"{self.before_offset()}{offset}{unknown}{only_on}{_END}"

    def before_offset(self) -> str:
        """Return the beginning of the text, which does not change with the offset."""
        rule = "" if self.rule is None else f'"rule":{json_string(self.rule)},'
        decision = "true" if self.decision else "false"
        return f'{{"decision":{decision},"context":{{{rule}"reason":{json_string(self.reason)},"offset":'


_END = "}}"

Decided: TypeAlias = tuple[str, bool]
"""AuthZEN's decision as JSON, and whether it is ALLOWED."""


class KafkaRequest(NamedTuple):
    """A question in Kafka's terms; if the pattern type is PREFIXED, on all names that begin so."""

    principal: str
    host: str
    operation: int
    resource_type: int
    name: str
    pattern_type: int = PatternType.LITERAL


PlainMeaning: TypeAlias = tuple[Template, int, int, Template]
"""The template of principals, an operation, a type of resource and the template of names."""


@define(eq=False, kw_only=True)
class Decider:
    """One state, its settings, and a mapping. Safe for any number of threads."""

    acls: AclsImage
    authorizer: StandardAuthorizer
    """The authorizer with these ACLs; complete, and no longer changed."""
    policy: Policy
    """The same, for questions on all names that begin with a prefix."""
    mapping: Mapped
    offset: int
    """The end offset of the state; 0 where there are no offsets."""
    super_users: frozenset[str] = frozenset()
    premises: Premises = ALL_KNOWN
    """Unknown premises of the settings."""
    policies: Mapping[Generation, Policy] = field(factory=dict)
    """If several generations of Kafka may decide differently: the policy of each; `policy` is that of the oldest."""
    only_controllers: tuple[Generation, ...] = ()
    """Those of them that decide only what a controller decides."""
    _answers: dict[KafkaRequest, Answer] = field(factory=dict)
    _by_key: dict[int, tuple[str, Answer]] = field(factory=dict)
    """By the key of a decision (StandardAuthorizer.decision_key): one entry for each rule that decides. With the
    beginning of its text: the offset changes with records of every kind."""
    _meanings: dict[tuple[str, str, str], PlainMeaning | None] = field(factory=dict)
    """By the type of a subject, the name of an action and the type of a resource; None: they need `request_of`."""
    _is_keyed: bool = field(init=False)
    """Whether one policy decides, without unknown premises."""
    _end: str = field(init=False)
    """The text of an answer, from the offset on."""

    def __attrs_post_init__(self) -> None:
        self._is_keyed = not self.policies and not self.premises
        self._end = f"{self.offset}{_END}"

    @staticmethod
    def of(image: Image, settings: Settings, mapping: Mapped, premises: Premises = ALL_KNOWN) -> "Decider":
        """Return the decider of a state with these settings; each generation of Kafka that may decide counts."""
        kafka, each = deciding_kafka(image, settings.generation), dict[Generation, Policy]()
        for generation in kafka.generations:
            own = settings.of_generation(generation)
            each[generation] = Policy(image.acls.with_options(documented=own.documented, cidr=own.cidr), own)
        policy = each[kafka.generations[0]]
        return Decider(
            acls=policy.acls,
            authorizer=policy.authorizer,
            policy=policy,
            mapping=mapping,
            offset=image.end_offset,
            super_users=settings.super_users,
            premises=premises,
            policies={} if kafka.is_known else each,
            only_controllers=kafka.only_controllers,
        )

    def evaluate(self, question: Evaluation, *, exact: bool = False) -> Answer:
        """Return the decision on a question; a question that is not mapped is denied.

        `exact`: the resource's id is the exact name of a client's request.
        """
        host = question.circumstances.host
        request = self.request_of(question.subject, question.action, question.resource, host, exact=exact)
        return request if isinstance(request, Answer) else self.decide(request)

    def plainly_decided(self, words: PlainWords) -> Decided | None:
        """Return the decision on a plain question; None: its words need `request_of`."""
        subject_type, user, action, resource_type, thing = words
        key = subject_type, action, resource_type
        try:
            meaning = self._meanings[key]
        except KeyError:
            meaning = self._plain_meaning(*key)
        if meaning is None:
            return None
        principals, operation, code, names = meaning
        principal, name = principals.name_of(user), names.name_of(thing)
        if WILDCARD in name:
            return None
        if self._is_keyed:  # without the object of a request: most questions have a rule that others had before
            keyed = self._by_key.get(self.authorizer.decision_key(principal, THIS_MACHINE, operation, code, name))
            if keyed is not None:
                return keyed[0] + self._end, keyed[1].decision
        return self.decided(KafkaRequest(principal, THIS_MACHINE, operation, code, name))

    def _plain_meaning(self, subject_type: str, action: str, resource_type: str) -> PlainMeaning | None:
        subjects, resources = self.mapping.subject_type(subject_type), self.mapping.resource_type(resource_type)
        meaning = None
        if subjects is not None and resources is not None and subjects.only is not None and resources.only is not None:
            operation, target = resources.operation(action, _NO_PROPERTIES), resources.only
            if operation is not None:
                meaning = subjects.only.template, int(operation), int(target.resource_type), target.template
        if len(subject_type) + len(action) + len(resource_type) <= _SHORT:
            if len(self._meanings) >= _MOST_MEANINGS:
                self._meanings.clear()
            self._meanings[subject_type, action, resource_type] = meaning
        return meaning

    def request_of(
        self, subject: Entity, action: ActionName, resource: Entity, host: str, *, exact: bool = False
    ) -> KafkaRequest | Answer:
        """Return a question in Kafka's terms; or the answer, if it has none."""
        kind = self.mapping.subject_type(subject.type)
        principal = None if kind is None else kind.forward(subject.id, subject.properties)
        if principal is None:
            return _unmapped("subject", subject.type, self.mapping.subjects)
        mapped = self.action_of(action, resource, exact=exact)
        if isinstance(mapped, Answer):
            return mapped
        operation, pattern = mapped
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
        """Return the resource in Kafka's terms; or the answer, if it has none."""
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

    def decide(self, request: KafkaRequest) -> Answer:
        """Return the decision on a request of Kafka's."""
        keyed = self._keyed(request)
        answer = self._answers.get(request) if keyed is None else keyed[1]
        if answer is None:
            answer = self._decided(request)
            if len(request.principal) + len(request.host) + len(request.name) <= _SHORT:
                if len(self._answers) >= _REMEMBERED:
                    self._answers.clear()
                self._answers[request] = answer
        return answer

    def decided(self, request: KafkaRequest) -> Decided:
        """Return the same as JSON: at the price of a look-up, if another request has had the same rule."""
        keyed = self._keyed(request)
        if keyed is not None:
            return keyed[0] + self._end, keyed[1].decision
        answer = self.decide(request)
        return answer.text(self.offset), answer.decision

    def _keyed(self, request: KafkaRequest) -> tuple[str, Answer] | None:
        """Return the answer that all requests with the same rule share; None: the core does not determine the rule."""
        if not self._is_keyed:
            return None
        principal, host, operation, resource_type, name, pattern_type = request
        if pattern_type != PatternType.LITERAL:
            return None
        key = self.authorizer.decision_key(principal, host, operation, resource_type, name)
        if key == NO_KEY:
            return None
        keyed = self._by_key.get(key)
        if keyed is None:
            answer = self._decided(request)
            keyed = answer.before_offset(), answer
            if len(keyed[0]) <= _LONGEST_KEPT:
                if len(self._by_key) >= _REMEMBERED:
                    self._by_key.clear()
                self._by_key[key] = keyed
        return keyed

    def _decided(self, request: KafkaRequest) -> Answer:
        pattern = ResourcePattern(
            resource_type=request.resource_type, name=request.name, pattern_type=request.pattern_type
        )
        context = RequestContext(principal=request.principal, host=request.host)
        action = Action(operation=request.operation, resource_pattern=pattern)
        try:
            if self._is_keyed:
                decision = _decision(self.policy, context, action)
                return Answer(decision=bool(decision), rule=decision.text, reason=decision.basis.value)
            decisions = {
                generation: _decision(policy, context, action)
                for generation, policy in self._deciding(request.resource_type, request.operation).items()
            }
        except (InvalidRequestError, ConfigError) as error:
            return Answer(decision=False, rule=None, reason=str(error))
        # The stricter one, where it is unknown which one decides.
        decision = next((each for each in decisions.values() if not each), next(iter(decisions.values())))
        return Answer(
            decision=bool(decision),
            rule=decision.text,
            reason=decision.basis.value,
            unknown=self._unknown(pattern, bool(decision)),
            only_on=()
            if decision
            else tuple(each.value for each, own in decisions.items() if each is not None and own),
        )

    def _deciding(self, resource_type: int, operation: int) -> Mapping[Generation | None, Policy]:
        """Return the policies by which a request may be decided."""
        if not self.policies:
            return {None: self.policy}
        left_out = () if controllers_decide(resource_type, operation) else self.only_controllers
        return {generation: policy for generation, policy in self.policies.items() if generation not in left_out}

    def _unknown(self, pattern: ResourcePattern, allowed: bool) -> tuple[str, ...]:  # the decision
        if not self.premises:
            return ()
        return self.premises.bearing_on(allowed=allowed, has_candidate=self.acls.covers(pattern)).names


def _decision(policy: Policy, context: RequestContext, action: Action) -> Decision:
    """Return a decision. Raises InvalidRequestError: Kafka's authorizer throws; ConfigError: as decide_set."""
    if is_set(action.resource_pattern):
        return decide_set(policy, context, action).decision
    return policy.authorizer.decide(context, action)


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


# The answers of a decision point.


class Reply(NamedTuple):
    """An answer, and how many decisions are in it."""

    text: str
    """JSON."""
    allowed: int = 0
    denied: int = 0

    @staticmethod
    def of_decision(text: str, *, decision: bool) -> "Reply":
        """Return an answer that is one decision."""
        return Reply(text=text, allowed=int(decision), denied=int(not decision))


# Envoy's external authorization over HTTP: whether the subject in a header may request this path by this method.


PREFIX = "/ext_authz"
_ODD = ("%25", "%2f", "%3b", "%5c", "%2e", "%23", "%3f", ";", "#", "\\", "//")
"""Parts that some servers read as the path of another name: decoded once more, as a separator, or cut off."""
_ANYBODY = ""
_BROKEN = re.compile("%(?![0-9a-f]{2})")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def envoy_answer(
    mapping: EnvoyMapping | None,
    method: str,
    raw_path: str,
    subjects: Sequence[str],
    state: Callable[[str | None], Decider],
) -> tuple[Answer, int]:
    """Return whether a request may pass, and the offset of the state that decided.

    `raw_path` is as it was sent, `subjects` the values of the header, each byte a character (ISO 8859-1).

    Raises:
        NotReadyError: as AuthZen.evaluation.

    """
    decider = state(None)
    if mapping is None:
        return _no("the mapping has no key envoy"), decider.offset
    if len(subjects) != 1 or not subjects[0]:
        return _no(f"expected the header {mapping.header} once"), decider.offset
    path = raw_path.partition("?")[0].removeprefix(PREFIX)
    if not raw_path.startswith(f"{PREFIX}/"):  # the prefix itself with escapes, or after a host
        return _no("the path has more than one reading"), decider.offset
    try:
        subject, name = subjects[0].encode("latin-1").decode(), unquote(path, errors="strict")
    except UnicodeError:
        return _no("the path or the header is not UTF-8"), decider.offset
    if _is_odd(path.lower(), name):
        return _no("the path has more than one reading"), decider.offset
    question = Evaluation(
        subject=Entity(type=mapping.subject_type, id=subject),
        action=ActionName(name=method),
        resource=Entity(type=mapping.resource_type, id=name),
        circumstances=Circumstances(),
    )
    return decider.evaluate(question, exact=True), decider.offset


def path_warning(decider: Decider) -> str | None:
    """Return a warning about DENY rules on single paths that other spellings may bypass; None: no such rules."""
    rules = list(_passable(decider))
    if not rules:
        return None
    count = f"{len(rules):,} DENY rule{'s' * (len(rules) != 1)}"
    name, principal = rules[0].resource_name[:80], rules[0].principal[:80]
    return (
        f"Envoy's paths: {count} on a single path below an allowed prefix, such as that of {principal} on {name}: "
        f"{name}. and {name}%20 and {name}/ and {name.upper()} are other paths, and allowed, though a server may take "
        "them for it: deny the prefix, or allow single paths (docs/decision-point.md)"
    )


def _passable(decider: Decider) -> Iterator[StandardAcl]:
    """Yield LITERAL DENY rules on paths where a longer name, such as with a dot behind, may be allowed."""
    mapping = decider.mapping.envoy
    kind = None if mapping is None else decider.mapping.resource_type(mapping.resource_type)
    if kind is None:
        return
    for resource_type in {case.to.resource_type for case in kind.cases}:
        denies = [
            rule
            for rule in _rules(decider, resource_type, AclPermissionType.DENY, PatternType.LITERAL)
            if any(case.to.template.id_of(rule.resource_name) is not None for case in kind.cases)
            and rule.resource_name != WILDCARD
        ]
        if denies:
            wide = _WideRules.of(decider, resource_type)
            yield from (rule for rule in denies if wide.let_pass(rule))


@frozen(kw_only=True)
class _WideRules:
    """Rules on many paths, by their prefix: that of rules on the resource `*` is empty."""

    allowed: Mapping[tuple[str, str], set[int]]
    """Operations, by prefix and principal; by `_ANYBODY` those of all principals."""
    denied: Mapping[tuple[str, str], set[tuple[int, str]]]
    """Operations and hosts, by prefix and principal."""
    lengths: Sequence[int]
    """The lengths of all prefixes."""
    allow_everyone: bool

    @classmethod
    def of(cls, decider: Decider, resource_type: int) -> Self:
        """Return those of a type of resource."""
        allowed = defaultdict[tuple[str, str], set[int]](set)
        denied = defaultdict[tuple[str, str], set[tuple[int, str]]](set)
        for prefix, rule in _wide(decider, resource_type, AclPermissionType.ALLOW):
            for principal in (rule.principal, _ANYBODY):
                allowed[prefix, principal].add(rule.operation)
        for prefix, rule in _wide(decider, resource_type, AclPermissionType.DENY):
            denied[prefix, rule.principal].add((rule.operation, rule.host))
        lengths = sorted({len(prefix) for prefix, _ in (*allowed, *denied)})
        everyone = decider.policy.settings.allow_everyone
        return cls(allowed=dict(allowed), denied=dict(denied), lengths=lengths, allow_everyone=everyone)

    def let_pass(self, deny: StandardAcl) -> bool:
        """Return whether names beside that of a DENY are allowed: by rules on prefixes, or for lack of rules."""
        prefixes = [deny.resource_name[:length] for length in self.lengths if length <= len(deny.resource_name)]
        everybody = deny.principal == WILDCARD_PRINCIPAL
        principals = (_ANYBODY,) if everybody else (deny.principal, WILDCARD_PRINCIPAL)
        keys = [(prefix, principal) for prefix in prefixes for principal in (deny.principal, WILDCARD_PRINCIPAL)]
        hidden = {
            (operation, host) for operation in (deny.operation, AclOperation.ALL) for host in (deny.host, WILDCARD)
        }
        if any(not hidden.isdisjoint(self.denied.get(key, ())) for key in keys):
            return False
        return self.allow_everyone or any(
            _meet(deny.operation, self.allowed.get((prefix, principal), set()))
            for prefix in prefixes
            for principal in principals
        )


def _wide(decider: Decider, kind: int, permission: int) -> Iterator[tuple[str, StandardAcl]]:
    """Yield rules on more than one name, with their prefixes."""
    for rule in _rules(decider, kind, permission, PatternType.PREFIXED):
        yield rule.resource_name, rule
    for rule in _rules(decider, kind, permission, PatternType.LITERAL):
        if rule.resource_name == WILDCARD:
            yield "", rule


def _rules(decider: Decider, kind: int, permission: int, pattern: int) -> Iterator[StandardAcl]:
    binding = AclBindingFilter(resource_type=kind, permission_type=permission, pattern_type=pattern)
    return (each.acl for each in decider.acls.matching(binding))


def _meet(denied: int, allowed: set[int]) -> bool:
    """Return whether a denied request may be allowed by one of these operations; READ and others imply DESCRIBE."""
    implied = denied in (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
    anything = bool(allowed) and (implied or denied == AclOperation.ALL)
    return anything or denied in allowed or AclOperation.ALL in allowed


def _is_odd(path: str, name: str) -> bool:
    """Return whether servers may read a path, in lower case, as another name than it has once it is decoded."""
    is_broken = _BROKEN.search(path) is not None or _CONTROL.search(name) is not None
    return is_broken or any(odd in path for odd in _ODD) or not {"..", "."}.isdisjoint(path.split("/"))


def _no(reason: str) -> Answer:
    return Answer(decision=False, rule=None, reason=reason)


# The deciders of moments: made when the state changes, and cached.


_MOST_PAST = 8
_CATCH_UP_S, _BETWEEN_S = 0.1, 0.002
"""How long a request waits for a state from which another process has answered, and between two reads, in seconds."""


@define(eq=False, kw_only=True)
class Deciders:
    """Makes deciders from the states of a source. Safe for any number of threads."""

    live: LiveState
    settings: Settings
    mapping: Mapped
    """Read once for each question: it may be replaced at any time."""
    max_age: float
    """The oldest state that is used for decisions, in seconds since its last confirmation."""
    premises: LivePremises = field(factory=none_unknown)
    """Unknown premises of the settings."""
    warn: Callable[[str], None] = field(default=lambda _: None)
    """Called with warnings about the mapping and the first state that is decided by it."""
    answered: AnsweredOffsets | None = None
    """What other processes have answered from; None: there are no others."""
    _missed: int = field(default=-1, init=False)
    """The offset that a request last waited for in vain: the next ones do not wait for it."""
    _warned_of: Mapped | None = field(default=None, init=False)
    _newest: tuple[Image, Decider] | None = field(default=None, init=False)
    _past: "OrderedDict[int, tuple[Image, Decider]]" = field(factory=OrderedDict, init=False)
    """By the identity of an image, which is kept with it."""
    _keeping: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self.live.prepare = self._prepare

    def at(self, as_of: str | None) -> Decider:
        """Return the decider of a moment, None for now.

        Raises:
            NotReadyError: there is no state yet, it is too old, or another log is where its log was.
            BadRequestError: no such moment.

        """
        return self._now() if as_of is None else self._then(as_of)

    def why_not_ready(self) -> str | None:
        """Return why nothing can be decided now; None if it can."""
        why, newest = self._why_unconfirmed(), self.live.newest
        if why is None and newest is not None and self.answered is not None:
            why = self.answered.why_not_joined(newest.image.end_offset)
        return why

    def _why_unconfirmed(self) -> str | None:
        age = self.live.age()
        if age is None:
            return self.live.trouble or "no state was read yet"
        if age > self.max_age:
            return f"the state has not been confirmed for {age:.0f} s: {self.live.trouble or 'the source is silent'}"
        return None

    def replace_mapping(self, mapping: Mapped) -> None:
        """Decide by another mapping from now on."""
        self.mapping = mapping
        if (newest := self.live.newest) is not None:
            self._warn(newest.image)

    def _prepare(self, image: Image) -> None:
        self.premises.look()
        self._warn(image)

    def _warn(self, image: Image) -> None:
        mapping = self.mapping
        if mapping.envoy is None or self._warned_of is mapping:
            return
        with suppress(NotReadyError):  # each answer has the reason
            warning = path_warning(self._decider(image, mapping))
            self._warned_of = mapping
            if warning is not None:
                self.warn(warning)

    def _now(self) -> Decider:
        why, newest, mapping = self._why_unconfirmed(), self.live.newest, self.mapping
        if why is not None or newest is None:
            raise NotReadyError(why or "no state was read yet")
        if self.answered is not None and not self.answered.admit(newest.image.end_offset):
            newest = self._caught_up(self.answered)
        image, current = newest.image, self._newest
        if current is not None and current[1].mapping is mapping and current[1].premises is self.premises.unknown:
            if current[0] is image:
                return current[1]
            if current[0].acls is image.acls and self._kafka(current[0]) == self._kafka(image):
                # records of other kinds were committed: cached decisions stay valid
                decider = evolve(current[1], offset=image.end_offset)
                self._newest = (image, decider)
                return decider
        decider = self._decider(image, mapping)
        self._newest = (image, decider)
        return decider

    def _caught_up(self, answered: AnsweredOffsets) -> ReadState:
        """Return a state as new as those that other processes have answered from, read at once.

        Raises:
            NotReadyError: the source has none, also not a moment later.

        """
        offset = answered.newest
        end = elapsed_seconds() + (0.0 if offset == self._missed else _CATCH_UP_S)
        while True:
            self.live.look()
            newest = self.live.newest
            if newest is not None and answered.admit(newest.image.end_offset):
                return newest
            if elapsed_seconds() >= end:
                self._missed = offset
                raise NotReadyError(
                    self.why_not_ready() or f"another worker has answered from offset {offset}, which is not read yet"
                )
            sleep(_BETWEEN_S)

    def _then(self, as_of: str) -> Decider:
        why, mapping = self.why_not_ready(), self.mapping
        if why is not None:
            raise NotReadyError(why)
        try:
            image = self.live.past(as_of)
        except ReplacedError as error:  # not an error of the request
            raise NotReadyError(f"context.as_of: {error}") from error
        except (MetadataError, OSError) as error:
            raise BadRequestError(f"context.as_of: {error}") from error
        if image is None:
            return self._now()
        with self._keeping:
            entry = self._past.get(id(image))
            if entry is None or entry[1].mapping is not mapping or entry[1].premises is not self.premises.unknown:
                entry = self._past[id(image)] = (image, self._decider(image, mapping))
            self._past.move_to_end(id(image))
            while len(self._past) > _MOST_PAST:
                self._past.popitem(last=False)
            return entry[1]

    def _decider(self, image: Image, mapping: Mapped) -> Decider:
        return Decider.of(image, self.settings, mapping, self.premises.unknown)

    def _kafka(self, image: Image) -> tuple[tuple[Generation, ...], tuple[Generation, ...]]:
        """Return the generations of Kafka that may decide: brokers may have been upgraded."""
        kafka = deciding_kafka(image, self.settings.generation)
        return kafka.generations, kafka.only_controllers
