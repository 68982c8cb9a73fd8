"""Timelines: the intervals of a log in which the answer to a question was yes."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache, cached_property
from heapq import merge
from itertools import chain, groupby
from typing import Final, NamedTuple, Protocol, Self, TypeAlias, TypeVar

from attrs import evolve, field

from aclog.analysis.comparison import allowed, denied, differences
from aclog.analysis.engine.host_classes import is_address, partition
from aclog.analysis.intents import Need
from aclog.analysis.policy import Policy, is_allowed
from aclog.analysis.regions import (
    EVERYONE,
    REQUESTED,
    Direction,
    Principals,
    Query,
    Region,
    Request,
    common,
    everyone_but,
    only,
    query_of_region,
    root_of_pattern,
    within,
    witness,
)
from aclog.analysis.who_can import holders, is_about, names_that_exist, rule_order, rules_on
from aclog.authorizer.acl import ResourcePattern, StandardAcl, StandardAclWithId, code_name, is_cidr
from aclog.authorizer.acls_image import AclsImage, Decision
from aclog.authorizer.codes import WILDCARD_PRINCIPAL, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.explain import ExplainOptions, Explanation, explain, explain_set
from aclog.authorizer.index.layout import known_type, matched_operations
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.settings import Generation, Settings, controllers_decide, is_set, pattern_text
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.snapshots.deciding_kafka import KafkaChange
from aclog.snapshots.history import Change, ChangeKind
from aclog.snapshots.image import Image

_T = TypeVar("_T")


# Questions about each state of a log.


@define
class AnyAllowed:
    """Whether any request of a query is allowed."""

    query: Query
    _example: Request | None = field(default=None, init=False)
    """A request that was allowed in the previous state."""

    @property
    def queries(self) -> tuple[Query, ...]:
        """The requests on which the answer depends."""
        return (self.query,)

    def concerns(self, rule: StandardAcl, settings: Settings) -> bool:
        """Return whether an ACL can affect the answer."""
        return concerns(self.query, rule, settings)

    def holds(self, old: Policy, new: Policy, changed: StandardAcl | None) -> bool:
        """Return whether a request is allowed in `new`."""
        if self._example is not None and is_allowed(new, self._example):
            return True
        if self._example is None and changed is not None:
            if not _may_allow(old, new, changed):
                return False
            gained = differences(old, new, query=_from_its_host(self.query, changed), changed=(changed,))
            region = next((each.region for each in gained if each.direction is Direction.GAINED), None)
        else:
            region = next(allowed(new, self.query), None)
        self._example = None if region is None else witness(region)
        return self._example is not None


def _may_allow(old: Policy, new: Policy, changed: StandardAcl) -> bool:
    """Return whether adding or removing an ACL may allow requests that were denied."""
    if new.settings.allow_everyone or ":" not in changed.principal:  # one without a colon makes the authorizer throw
        return True
    is_added = len(new.acls) > len(old.acls)
    return is_added is (changed.permission_type == AclPermissionType.ALLOW)


def _from_its_host(query: Query, changed: StandardAcl) -> Query:
    """Return the requests of a query that an ACL can match, if its host is a single address; otherwise the query."""
    has_one_host = is_address(changed.host) and ":" in changed.principal
    return evolve(query, host=changed.host) if has_one_host and query.host is None else query


@frozen(kw_only=True)
class IntentHeld:
    """Whether an intent holds for any of some principals."""

    needs: tuple[Need, ...]
    principals: Principals
    host: str | None = None
    """In the form of `host_address`; None for any host."""

    @cached_property
    def queries(self) -> tuple[Query, ...]:
        """The requests on which the answer depends."""
        return tuple(need.query(self.principals) for need in self.needs)

    def concerns(self, rule: StandardAcl, settings: Settings) -> bool:
        """Return whether an ACL can affect the answer."""
        return any(concerns(query, rule, settings) for query in self.queries)

    def holds(self, old: Policy, new: Policy, changed: StandardAcl | None) -> bool:  # noqa: ARG002
        """Return whether the intent holds for any of the principals in `new`."""
        return next(holders(new, self.needs, principals=self.principals, host=self.host), None) is not None


def question_of(query: Query, needs: tuple[Need, ...]) -> AnyAllowed | IntentHeld:
    """Return the question of an intent, or, without needs, the question whether any request of a query is allowed."""
    if needs:
        return IntentHeld(needs=needs, principals=query.principals, host=query.host)
    return AnyAllowed(query)


def concerns(query: Query, rule: StandardAcl, settings: Settings) -> bool:
    """Return whether an ACL can affect the decision on a request of a query."""
    who = rule.principal
    # Where resources without ACLs are open, any ACL closes its resource; one without a colon makes the authorizer
    # throw.
    if ":" in who and not settings.allow_everyone:
        is_of_others = who != WILDCARD_PRINCIPAL and who not in query.principals
        if is_of_others or not matched_operations(rule.operation, rule.permission_type) & query.operations:
            return False
    literal = rule.pattern_type == PatternType.LITERAL
    root = root_of_pattern(known_type(rule.resource_type), rule.resource_name, literal=literal)
    return root is not None and any(within(root, query.roots))


# The decision on all names with a prefix, which exists only if all of them are decided alike.


class NamesDifferError(ConfigError):
    """Some of the names are allowed and others denied."""


@frozen(kw_only=True)
class SetDecision:
    """The decision on all names of a set, with the basis for one name."""

    decision: Decision
    example: str


def decide_set(policy: Policy, context: RequestContext, action: Action) -> SetDecision:
    """Return the decision on all names with the prefix of an action.

    Illegal topic names do not count, unless the prefix itself is illegal.

    Raises:
        NamesDifferError: the decision differs between names; the message has an allowed and a denied name.
        ConfigError: not a request operation, or no resource can have such a name.
        InvalidRequestError: Kafka's authorizer throws on them.

    """
    resource = action.resource_pattern
    if not REQUESTED >> max(action.operation, 0) & 1:
        name = code_name(AclOperation, action.operation)
        raise ConfigError(f"operation {name} on {_text(resource)}: expected a request operation such as READ")
    query = Query(
        resources=(resource,), operations=1 << action.operation, principals=only(context.principal), host=context.host
    )
    let_in, kept_out = _example(resource, allowed(policy, query)), _example(resource, denied(policy, query))
    if let_in is not None and kept_out is not None and let_in[1] != kept_out[1]:
        # One of the two has only illegal topic names.
        let_in, kept_out = (let_in, None) if let_in[1] else (None, kept_out)
    if let_in is not None and kept_out is not None:
        operation = code_name(AclOperation, action.operation)
        raise NamesDifferError(
            f"{_text(resource)}: the decision differs between names: {context.principal} {operation} is "
            f"ALLOWED on {let_in[0]!r} and DENIED on {kept_out[0]!r}: check one name, or who can {operation} "
            f"{pattern_text(resource)}"
        )
    candidate = let_in or kept_out
    if candidate is None:
        raise ConfigError(f"{_text(resource)}: not a legal resource name")
    example_action = Action(
        operation=action.operation,
        resource_pattern=ResourcePattern(resource_type=resource.resource_type, name=candidate[0]),
    )
    return SetDecision(decision=policy.authorizer.decide(context, example_action), example=candidate[0])


def explained(policy: Policy, context: RequestContext, action: Action, options: ExplainOptions) -> Explanation:
    """Return the explanation of the decision on a name, or on all names with a prefix.

    Raises:
        NamesDifferError, ConfigError: as `decide_set`.
        InvalidRequestError: Kafka's authorizer throws on it.

    """
    if not is_set(action.resource_pattern):
        decision = policy.authorizer.decide(context, action)
        return explain(policy.acls, decision, context, action, options=options)
    answer = decide_set(policy, context, action)
    rules = sorted(dict.fromkeys(rules_on(policy, action.resource_pattern)), key=lambda entry: rule_order(entry.acl))
    return explain_set(
        policy.acls, answer.decision, context, action, example=answer.example, rules=rules, options=options
    )


def _example(resource: ResourcePattern, regions: Iterator[Region]) -> tuple[str, bool] | None:
    """Return a name of regions, and whether it is legal; a legal name if there is one."""
    illegal: tuple[str, bool] | None = None
    for region in regions:
        name = witness(region).resource_name
        if names_that_exist(ResourceType(resource.resource_type), region.names):
            return name, True
        illegal = illegal or (name, False)
    return illegal


def _text(resource: ResourcePattern) -> str:
    return f"{code_name(ResourceType, resource.resource_type)} {pattern_text(resource)}"


# The intervals in which the answer to a question was yes, each end with the change that caused it.


_MANY_CHANGES = 4096
"""The size from which an overlay is merged, unless it has most of the ACLs."""


class Question(Protocol):
    """A question about each state; it may remember the last answer, as states are passed in the order of the log."""

    @property
    def queries(self) -> tuple[Query, ...]:
        """The requests on which the answer depends."""
        ...

    def concerns(self, rule: StandardAcl, settings: Settings) -> bool:
        """Return whether an ACL can affect any answer."""
        ...

    def holds(self, old: Policy, new: Policy, changed: StandardAcl | None) -> bool:
        """Return whether the answer is yes in `new`, which differs in one ACL from `old`, the previous state.

        `changed` is None if any ACLs differ.
        """
        ...


@frozen(kw_only=True)
class Event:
    """An end of an interval. `change` is None if the log begins in this state, or if Kafka's generation changed.

    `offset` and `timestamp` (ms since 1970; -1: unknown) are those of the change's record, `end_offset` is that of the
    first state that includes it.
    """

    offset: int
    end_offset: int
    timestamp: int
    change: Change | KafkaChange | None


@frozen(kw_only=True)
class Interval:
    """From the first state in which the answer was yes to the first one in which it was not; None: up to now."""

    start: Event
    end: Event | None
    only: Generation | None = None
    """The only generation of Kafka in which the answer was yes, while several may have decided."""


def intervals(
    begin: Image,
    changes: Iterable[Change],
    question: Question,
    settings: Settings,
    kafka: Callable[[], Iterable[KafkaChange]] | None = None,
) -> Iterator[Interval]:
    """Yield the intervals in which the answer was yes, in the order of the log.

    `begin` is the first state of the history, `changes` are the later changes, in order; ACLs of the first state among
    them are skipped (aclog.snapshots.history.history_from). Changes that became visible together are one step: a state
    between them never existed.

    `kafka` returns which generations of Kafka may have decided when (snapshots.deciding_kafka), up to the same end; it
    is called only if an ACL whose host is a range can affect the answer. None: `settings` has the generation.
    """
    return _intervals(begin, begin.acls, changes, question, settings, kafka)


def _intervals(
    begin: Image,
    rules: Iterable[StandardAclWithId],
    changes: Iterable[Change],
    question: Question,
    settings: Settings,
    kafka: Callable[[], Iterable[KafkaChange]] | None,
) -> Iterator[Interval]:
    """Yield the same, with the ACLs of the first state in `rules`: at least those that can affect an answer."""
    start, answer = None, _NO
    for event, now in _answers(begin, rules, changes, question, settings, kafka):
        if start is not None and now != answer:
            yield Interval(start=start, end=event, only=answer.only)
            start = None
        if start is None and now.holds:
            start = event
        answer = now
    if start is not None:
        yield Interval(start=start, end=None, only=answer.only)


def intervals_by_principal(
    begin: Image,
    changes: Iterable[Change],
    question: Callable[[Principals], Question],
    settings: Settings,
    kafka: Callable[[], Iterable[KafkaChange]] | None = None,
) -> Iterator[tuple[Principals, Interval]]:
    """Yield the intervals of each principal that a rule of the history names, by name, and then of all others.

    `question` makes the question about some principals; the rest as `intervals`. The changes that can affect an answer
    are in memory.
    """
    everyone = question(EVERYONE)
    rules: dict[str, list[StandardAclWithId]] = {}
    for rule in begin.acls:
        if everyone.concerns(rule.acl, settings):
            rules.setdefault(rule.acl.principal, []).append(rule)
    concerned: dict[str, list[Change]] = {}
    for change in changes:
        if not change.first_seen and everyone.concerns(change.rule.acl, settings):
            concerned.setdefault(change.rule.acl.principal, []).append(change)
    texts = {*rules, *concerned}
    names = sorted({each for each in texts if ":" in each and each != WILDCARD_PRINCIPAL} | settings.super_users)
    # Where resources without ACLs are open, any ACL closes its resource to all principals.
    shared = texts if settings.allow_everyone else {each for each in texts if ":" not in each} | {WILDCARD_PRINCIPAL}
    kafka_once = None if kafka is None else cache(lambda: tuple(kafka()))  # few changes, read from the whole log
    for principals, own in (*((only(name), {name, *shared}) for name in names), (everyone_but(*names), shared)):
        present = (rule for name in own for rule in rules.get(name, ()))
        theirs = merge(*(concerned.get(name, ()) for name in own), key=lambda change: change.offset)
        for interval in _intervals(begin, present, theirs, question(principals), settings, kafka_once):
            yield principals, interval


def policy_after(begin: Image, changes: Iterable[Change], question: Question, settings: Settings) -> Policy:
    """Return the policy after changes of the state at `begin`: those of the ACLs that can affect the answer, alone."""
    return Policy(_of_matter(begin.acls, question, settings).apply(tuple(map(Change.record, changes))), settings)


def concerns_controllers(question: Question) -> bool:
    """Return whether controllers may decide some of the requests of a question."""
    return any(
        query.operations >> operation & 1 and controllers_decide(resource.resource_type, operation)
        for query in question.queries
        for resource in query.resources
        for operation in AclOperation
    )


class _Answer(NamedTuple):
    """Whether the answer is yes; `only`: the only generation of Kafka in which it is, if several may decide."""

    holds: bool
    only: Generation | None = None


_NO: Final = _Answer(holds=False)

_Step: TypeAlias = tuple[int, list[Change]]
"""Changes of ACLs that became visible together, at this end offset."""
_Moment: TypeAlias = tuple[int, list[Change] | KafkaChange]


def _answers(
    begin: Image,
    rules: Iterable[StandardAclWithId],
    changes: Iterable[Change],
    question: Question,
    settings: Settings,
    kafka: Callable[[], Iterable[KafkaChange]] | None,
) -> Iterator[tuple[Event, _Answer]]:
    """Yield the answer in the first state, and each later one that may differ, with the event that caused it."""
    acls = _of_matter(rules, question, settings)
    state = _State(question=question, policy=Policy(acls, settings))
    state.holds(None)
    concerned = (each for each in changes if not each.first_seen and question.concerns(each.rule.acl, settings))
    steps: Iterator[_Step] = ((end, list(step)) for end, step in groupby(concerned, lambda change: change.end_offset))
    if kafka is not None and any(is_cidr(rule.acl.host) for rule in acls):
        yield from _by_kafka(state, begin, steps, kafka())
        return
    yield _beginning(begin), _Answer(state.answer)
    for end, step in steps:
        if kafka is not None and any(is_cidr(change.rule.acl.host) for change in step):
            since = _by_kafka(state, begin, chain([(end, step)], steps), kafka())
            next(since)  # without a range all generations decide alike: the answer is unchanged
            yield from since
            return
        flipped = state.flipped(step)
        if flipped is not None:
            yield flipped, _Answer(state.answer)


def _by_kafka(
    state: "_State", begin: Image, steps: Iterable[_Moment], kafka: Iterable[KafkaChange]
) -> Iterator[tuple[Event, _Answer]]:
    """Yield the same if the generations of Kafka may differ; the first item is the answer before `steps`."""
    states = {generation: state.of_generation(generation) for generation in Generation}
    first, *later = kafka
    of_kafka: Iterable[_Moment] = ((each.end_offset, each) for each in later)
    moments = merge(of_kafka, steps, key=lambda moment: moment[0])
    deciding = first.kafka.generations
    yield _beginning(begin), _answer_of(states, deciding)
    for _, moment in groupby(moments, lambda each: each[0]):
        software, event = None, None
        for _, what in moment:
            if isinstance(what, KafkaChange):
                software, deciding = what, what.kafka.generations
                continue
            flipped = {generation: state.flipped(what) for generation, state in states.items()}
            flips = (flip for generation, flip in flipped.items() if generation in deciding and flip is not None)
            event = max(flips, key=lambda flip: flip.offset, default=None)
        if event is None and software is not None:
            event = Event(
                offset=software.offset,
                end_offset=software.end_offset,
                timestamp=software.timestamp,
                change=software,
            )
        if event is not None:
            yield event, _answer_of(states, deciding)


def _answer_of(states: Mapping[Generation, "_State"], deciding: Collection[Generation]) -> _Answer:
    yes = [generation for generation in deciding if states[generation].answer]
    only = yes[0] if len(yes) == 1 and len(deciding) > 1 else None
    return _Answer(holds=bool(yes), only=only)


def _of_matter(rules: Iterable[StandardAclWithId], question: Question, settings: Settings) -> AclsImage:
    """Return the ACLs that can affect the answer."""
    return AclsImage.from_acls(rule for rule in rules if question.concerns(rule.acl, settings))


def _beginning(image: Image) -> Event:
    return Event(offset=image.end_offset, end_offset=image.end_offset, timestamp=image.timestamp, change=None)


@define(kw_only=True)
class _State:
    """The current state of the relevant ACLs, and the answer in it."""

    question: Question
    policy: Policy
    answer: bool = False

    def holds(self, changed: StandardAcl | None, acls: AclsImage | None = None) -> bool:
        """Move to other ACLs, if given, and return the answer."""
        new = self.policy if acls is None else Policy(acls, self.policy.settings)
        self.answer = self.question.holds(self.policy, new, changed)
        self.policy = new
        return self.answer

    def of_generation(self, generation: Generation) -> Self:
        """Return the same state as decided by a Kafka of this generation."""
        settings = self.policy.settings.of_generation(generation)
        acls = self.policy.acls.with_options(documented=settings.documented, cidr=settings.cidr)
        state = type(self)(question=copy(self.question), policy=Policy(acls, settings))
        state.holds(None)
        return state

    def flipped(self, changes: Iterable[Change]) -> Event | None:
        """Apply changes that became visible together; return the one that changed the answer, if any."""
        before, last = self.answer, None
        step, start = list(changes), self.policy
        net = step if len(step) == 1 else _net(step)
        for change in net:
            was, acls = self.answer, self.policy.acls.apply((change.record(),))
            if acls.overlay_size > max(_MANY_CHANGES, len(acls) // 4):
                acls = acls.merged()
            if self.holds(change.rule.acl, acls) is not was:
                last = change
        if net is not step:  # whose ids may be others than those that stay
            self.policy = Policy(start.acls.apply(tuple(map(Change.record, step))).merged(), self.policy.settings)
        return event_of(last) if last is not None and self.answer is not before else None


def _net(step: Iterable[Change]) -> list[Change]:
    """Return the changes of a step without those that it reverts: no state between them existed."""
    of_acl: dict[StandardAcl, list[Change]] = {}
    for change in step:
        of_acl.setdefault(change.rule.acl, []).append(change)
    remaining = [
        each[-1] if each[0].kind is ChangeKind.ADDED else each[0]
        for each in of_acl.values()
        if each[0].kind is each[-1].kind
    ]
    return sorted(remaining, key=lambda change: change.offset)


def event_of(change: Change) -> Event:
    """Return the event that a change is."""
    return Event(offset=change.offset, end_offset=change.end_offset, timestamp=change.timestamp, change=change)


# Since when all requests of a region have been allowed: of each row of an answer about the last state.


def covered(policy: Policy, region: Region) -> bool:
    """Return whether a policy allows every request of a region."""
    return not any(_meet(each, region, cidr=policy.settings.cidr) for each in denied(policy, query_of_region(region)))


def _affects(query: Query, rule: StandardAcl, settings: Settings) -> bool:
    """Return whether an ACL can affect the decision on a request of a query: more closely than `concerns`."""
    return concerns(query, rule, settings) if settings.allow_everyone else is_about(rule, query, settings)


def _meet(one: Region, other: Region, *, cidr: bool) -> bool:
    """Return whether two regions of one type, operation and principal share a request."""
    if not common(one.names, other.names):
        return False
    texts = (text for each in (one.hosts, other.hosts) for text in (*each.entries, *each.except_addresses))
    classes = partition(texts, cidr=cidr)
    return bool(classes.classes_of(one.hosts) & classes.classes_of(other.hosts))


@frozen(eq=False, kw_only=True)
class RegionsSince:
    """The changes of a log up to a state, by which each region that the state allows is dated."""

    begin: Image
    settings: Settings
    _rules: Mapping[str, Sequence[StandardAclWithId]]
    _changes: Mapping[str, Sequence[Change]]

    @classmethod
    def of(cls, begin: Image, changes: Iterable[Change], policy: Policy, queries: Sequence[Query]) -> Self:
        """Return the changes that can affect queries of which the regions are parts; `changes` in order."""
        settings = policy.settings
        rules: dict[str, list[StandardAclWithId]] = {}
        changed: dict[str, list[Change]] = {}
        for rule in policy.acls:
            if any(concerns(query, rule.acl, settings) for query in queries):
                rules.setdefault(rule.acl.principal, []).append(rule)
        for change in changes:
            acl = change.rule.acl
            if not change.first_seen and any(concerns(query, acl, settings) for query in queries):
                changed.setdefault(acl.principal, []).append(change)
        return cls(begin=begin, settings=settings, rules=rules, changes=changed)

    def event(self, region: Region) -> Event:
        """Return the change since which all requests of a region have been allowed; without one: since the beginning.

        The region is one that the state allows. It is checked after each change backwards, down to the first state
        that denies a part of the region.
        """
        query = evolve(query_of_region(region), host=None)
        settings = self.settings
        rules = (rule for each in self._of(self._rules, region) for rule in each)
        live = {rule.id: rule for rule in rules if _affects(query, rule.acl, settings)}
        changes = [
            change
            for each in self._of(self._changes, region)
            for change in each
            if _affects(query, change.rule.acl, settings)
        ]
        changes.sort(key=lambda change: change.offset)
        steps = [list(step) for _, step in groupby(changes, lambda change: change.end_offset)]
        acls: AclsImage | None = None  # built when it is needed: most regions began with their only ALLOW
        for step in reversed(steps):
            for change in reversed(step):
                if change.kind is ChangeKind.ADDED:
                    live.pop(change.rule.id, None)
                else:
                    live[change.rule.id] = change.rule
            if acls is not None:
                acls = acls.apply(tuple(change.record(undo=True) for change in reversed(step)))
                if acls.overlay_size > max(_MANY_CHANGES, len(acls) // 4):
                    acls = acls.merged()
            if not any(map(self._may_grant, step)):
                continue
            if len(step) == 1 and not self._may_cover(live.values()):
                return event_of(step[0])
            acls = AclsImage.from_acls(live.values()) if acls is None else acls
            if not covered(Policy(acls, settings), region):
                return event_of(self._granting(step, acls, region))
        return _beginning(self.begin)

    def has_ranges(self, region: Region) -> bool:
        """Return whether a host that is a range of addresses may take part, so that the answer depends on the Kafka."""
        rules = (rule.acl for rules in self._of(self._rules, region) for rule in rules)
        changed = (change.rule.acl for changes in self._of(self._changes, region) for change in changes)
        return any(is_cidr(acl.host) for acl in chain(rules, changed))

    def _of(self, by_principal: Mapping[str, Sequence[_T]], region: Region) -> Iterator[Sequence[_T]]:
        """Yield what is about the principals of a region: for a complement, and if ACLs close resources, all."""
        if region.principals.complement or self.settings.allow_everyone:
            yield from by_principal.values()
            return
        for principal in {*region.principals.named, *self._shared}:
            if principal in by_principal:
                yield by_principal[principal]

    @cached_property
    def _shared(self) -> frozenset[str]:
        """The principals whose ACLs are about all: `User:*`, and those without a colon, as which Kafka throws."""
        return frozenset({WILDCARD_PRINCIPAL, *(each for each in (*self._rules, *self._changes) if ":" not in each)})

    def _may_cover(self, rules: Iterable[StandardAclWithId]) -> bool:
        """Return whether ACLs may allow anything."""
        has_allow = any(rule.acl.permission_type == AclPermissionType.ALLOW for rule in rules)
        return has_allow or self.settings.allow_everyone

    def _may_grant(self, change: Change) -> bool:
        """Return whether a change may allow a request that was denied before."""
        is_allow = change.rule.acl.permission_type == AclPermissionType.ALLOW
        has_plain_effect = ":" in change.rule.acl.principal and not self.settings.allow_everyone
        return (change.kind is ChangeKind.ADDED) is is_allow or not has_plain_effect

    def _granting(self, step: Sequence[Change], before: AclsImage, region: Region) -> Change:
        """Return the change of a step, from the state before it, with which the whole region became allowed."""
        last, acls, was = step[-1], before, False
        for change in step if len(step) > 1 else ():
            acls = acls.apply((change.record(),))
            now = covered(Policy(acls, self.settings), region)
            if now and not was:
                last = change
            was = now
        return last
