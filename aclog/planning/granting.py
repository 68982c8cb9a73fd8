"""Granting and revoking: the fewest ACLs for an intent, and their side effects."""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from uuid import UUID

from attrs import evolve, field, frozen

from aclog.analysis.comparison import allowed, differences
from aclog.analysis.intents import Intent, Need
from aclog.analysis.policy import Policy, deciding, merged, only_on
from aclog.analysis.regions import (
    EVERYONE,
    LONGEST,
    Direction,
    Principals,
    Query,
    Region,
    is_legal_topic,
    only,
    operations_of,
    witness,
)
from aclog.analysis.rule_tests.case import Application, IntentNeeds, intent_needs, stream_needs
from aclog.analysis.who_can import Permission, permission_key, permissions
from aclog.authorizer.acl import (
    SUPPORTED_OPERATIONS,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
    acl_text,
    host_problem,
    resource_of,
)
from aclog.authorizer.acls_image import (
    AclsImage,
    RuleChange,
    acl_of_content,
    changed_acls,
    content_of,
    pattern_of_content,
)
from aclog.authorizer.control import refusal
from aclog.authorizer.index.layout import ALL_OPERATIONS, rule_mask
from aclog.authorizer.settings import Generation, Settings
from aclog.metalog.errors import ConfigError
from aclog.planning.plan import PatternSet, RefusedError

# The rules of a place that have a name in common with what is asked; no other rule matters to it.


def near_rules(contents: Iterable[bytes], patterns: Iterable[ResourcePattern]) -> tuple[StandardAcl, ...]:
    """Return the rules on a pattern that has a name in common with one of these, in a stable order."""
    named = PatternSet.of(patterns)
    near = (content for content in contents if named.meets(*pattern_of_content(content)[:3]))
    return tuple(map(acl_of_content, sorted(near)))


def policy_with(rules: Iterable[StandardAcl], settings: Settings) -> Policy:
    """Return the policy of some rules. They get ids, so that a change of it is cheap (`changed_policy`)."""
    numbered = (StandardAclWithId(id=UUID(int=number), acl=acl) for number, acl in enumerate(rules, 1))
    image = AclsImage.from_acls(numbered).with_options(documented=settings.documented, cidr=settings.cidr)
    return Policy(image, settings)


def changed_policy(policy: Policy, *, added: Iterable[StandardAcl] = (), removed: Iterable[StandardAcl] = ()) -> Policy:
    """Return the policy after some changes."""
    changes = [
        *(RuleChange(added=False, acl=acl) for acl in removed),
        *(RuleChange(added=True, acl=acl) for acl in added),
    ]
    return Policy(changed_acls(policy.acls, changes), policy.settings)


def by_rules_alone(settings: Settings) -> Settings:
    """Return the settings under which nothing but a rule allows anything."""
    return evolve(settings, allow_everyone=False, super_users=frozenset())


# The fewest of some rules that allow what all of them would allow together.


def least_rules(policies: Collection[Policy], rules: Sequence[StandardAcl], query: Query) -> tuple[StandardAcl, ...]:
    """Return the rules to add to policies; without them one of these allows less of the query than with all of `rules`.

    The policies have the same rules, and other settings. All of `rules` are ALLOWs for one principal, and wider ones
    come before those that they cover.
    """
    added: dict[StandardAcl, None] = {}
    now, looks_again = list(policies), True
    while looks_again:
        looks_again = False
        for rule in rules:
            if rule in added or now[0].acls.find(rule) is not None:
                continue
            then = [changed_policy(policy, added=(rule,)) for policy in now]
            if any(_gains(old, new, query, rule) for old, new in zip(now, then, strict=True)):
                added[rule], now = None, then
                # Where a name without rules is open, the first rule on it closes it: others may be needed then.
                looks_again = any(policy.settings.allow_everyone for policy in now)
    return tuple(added)


def _gains(old: Policy, new: Policy, query: Query, rule: StandardAcl) -> bool:
    return any(each.direction is Direction.GAINED for each in differences(old, new, query=query, changed=(rule,)))


# Patterns of rules as sets of names; LITERAL `*` has every name here.


def covers(outer: ResourcePattern, inner: ResourcePattern) -> bool:
    """Return whether a pattern has every name of another one."""
    if outer.resource_type != inner.resource_type:
        return False
    if is_every_name(outer):
        return True
    if outer.pattern_type == PatternType.PREFIXED:
        return not is_every_name(inner) and inner.name.startswith(outer.name)
    return inner == outer


def is_every_name(pattern: ResourcePattern) -> bool:
    """Return whether a pattern is LITERAL `*`."""
    return pattern.pattern_type == PatternType.LITERAL and pattern.name == WILDCARD


def all_names(pattern: ResourcePattern) -> ResourcePattern:
    """Return the pattern as a query has it: there `*` is just a name."""
    return evolve(pattern, name="", pattern_type=PatternType.PREFIXED) if is_every_name(pattern) else pattern


# What is to be granted or revoked, and the rules for it.


@frozen(kw_only=True)
class AccessRequest:
    """What a principal is to be allowed, or no longer."""

    principal: str
    """`User:*` is everyone."""
    needs: tuple[Need, ...]
    """Each on one pattern, as a rule has it, and on all of its names; one need a pattern."""
    hosts: tuple[str, ...] = field(default=())
    """Of rules; none: `*` when granting, all hosts when revoking."""

    @property
    def principals(self) -> Principals:
        """Whose requests are asked about."""
        return EVERYONE if self.principal == WILDCARD_PRINCIPAL else only(self.principal)

    def query(self, need: Need, operations: int) -> Query:
        """Return the query for some operations on all names of a need."""
        return Query(resources=tuple(map(all_names, need.patterns)), operations=operations, principals=self.principals)

    def rules(self) -> tuple[StandardAcl, ...]:
        """Return the rules that allow all that is asked, and no more; those on the widest patterns first."""
        rules = (
            StandardAcl(
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                pattern_type=pattern.pattern_type,
                principal=self.principal,
                host=host,
                operation=operation,
                permission_type=AclPermissionType.ALLOW,
            )
            for need in self.needs
            for pattern in need.patterns
            for operation in least_operations(need.operations)
            for host in self.hosts or (WILDCARD,)
        )
        return tuple(sorted(dict.fromkeys(rules), key=wide_first))


def least_operations(mask: int) -> tuple[AclOperation, ...]:
    """Return the fewest operations of a mask whose ALLOWs imply the rest of it."""
    operations = tuple(operations_of(mask))
    return tuple(
        each for each in operations if not any(each != other and gives(other) >> each & 1 for other in operations)
    )


def gives(operation: int) -> int:
    """Return all operations that an ALLOW of one allows, as a mask."""
    return rule_mask(operation, AclPermissionType.ALLOW) & ALL_OPERATIONS


def wide_first(acl: StandardAcl) -> tuple[object, ...]:
    """Return what sorts a rule before those that it covers."""
    is_prefix = acl.pattern_type == PatternType.PREFIXED
    is_all = not is_prefix and acl.resource_name == WILDCARD
    where = (acl.resource_type, not is_all, not is_prefix, len(acl.resource_name), acl.resource_name)
    return (*where, acl.host != WILDCARD, acl.host, acl.operation)


def one_address(host: str) -> str | None:
    """Return the host of a rule if it is an address of clients; None for `*`, a range, and what no client can have."""
    return None if host == WILDCARD or "/" in host or host_problem(host, cidr=True) else host


# Granting: the rules that are missing, those that give a part of it already, and what overrules them.


@frozen(kw_only=True)
class Overruled:
    """Requests that were asked for and stay denied, and a rule that denies one of them.

    None: Kafka's authorizer throws on them, as a rule there has a principal without a colon.
    """

    region: Region
    rule: StandardAcl | None
    only: Generation | None = None
    """That of Kafka which alone decides so, if several may."""


@frozen(kw_only=True)
class Grant:
    """What grants all that is asked, as far as no rule denies it."""

    added: tuple[StandardAcl, ...]
    reused: tuple[StandardAcl | str, ...]
    """What gives the rest already: rules, `SuperUser` or `DefaultAllow`."""
    overruled: tuple[Overruled, ...]
    reused_only: Mapping[StandardAcl | str, Generation] = field(factory=dict)
    """Of `reused`, what gives it by one generation of Kafka only, and which that is."""


def grant(
    request: AccessRequest, contents: AbstractSet[bytes], settings: Settings, generations: Collection[Generation] = ()
) -> Grant:
    """Return the least rules that allow what is asked, given the rules of a place (their contents).

    `generations`: of Kafka, each of which must allow it; without any, it is that of `settings`. Unless it is known that
    uncovered names are open, `settings` must say that they are not: then rules allow it all.

    Raises:
        RefusedError: rules deny an operation on a whole pattern, so that no ALLOW helps; or a rule could match nobody.

    """
    rules, each = request.rules(), settings.by_generation(generations)
    for generation, own in each.items():
        _check_rules(rules, cidr=own.cidr, only=generation)
    near = near_rules(contents, map(resource_of, rules))
    policies = {generation: policy_with(near, own) for generation, own in each.items()}
    added = least_rules(policies.values(), rules, _query(request))
    after = {generation: changed_policy(policy, added=added) for generation, policy in policies.items()}
    overruled = {generation: list(_overruled(rules, policy, _query(request))) for generation, policy in after.items()}
    for generation, policy in after.items():
        if overruled[generation]:
            _check_some_allowed(request, rules, policy, generation)
    reused = {generation: _reused(request, rules, added, policy) for generation, policy in policies.items()}
    reasons = list(merged(reused))
    return Grant(
        added=added,
        reused=tuple(reason for reason, _ in reasons),
        overruled=tuple(evolve(item, only=only) for item, only in merged(overruled)),
        reused_only={reason: only for reason, only in reasons if only is not None},
    )


def _query(request: AccessRequest) -> Query:
    """Return the query for all operations on all names that are asked about."""
    resources = (resource for need in request.needs for resource in request.query(need, 0).resources)
    return Query(resources=tuple(resources), principals=request.principals)


def _check_rules(rules: Iterable[StandardAcl], *, cidr: bool, only: Generation | None) -> None:
    for each in rules:
        why = refusal(each, cidr=cidr) or host_problem(each.host, cidr=cidr)
        if why is not None:
            by = "" if only is None else f"{only} may decide there: "
            raise RefusedError(f"{acl_text(each)}: {by}{why}")


def _overruled(rules: Iterable[StandardAcl], after: Policy, query: Query) -> Iterator[Overruled]:
    """Yield what the wanted rules alone would allow of a query, and the policy with them does not."""
    alone = policy_with(rules, by_rules_alone(after.settings))
    for each in differences(alone, after, query=query):
        if each.direction is Direction.LOST:
            rule = deciding(after, witness(each.region))
            yield Overruled(region=each.region, rule=rule if isinstance(rule, StandardAcl) else None)


def _check_some_allowed(
    request: AccessRequest, rules: Iterable[StandardAcl], after: Policy, generation: Generation | None
) -> None:
    """Check that of each operation on each pattern something is allowed."""
    hosts = dict.fromkeys(map(one_address, request.hosts or (WILDCARD,)))
    for need in request.needs:
        for operation in operations_of(need.operations):
            for host in hosts:
                query = evolve(request.query(need, 1 << operation), host=host)
                if not any(True for _ in allowed(after, query)):
                    denying = evolve(next(_overruled(rules, after, query)), only=generation)
                    raise RefusedError(_denied_text(denying))


def _denied_text(denying: Overruled) -> str:
    rule = "a rule whose principal has no colon" if denying.rule is None else acl_text(denying.rule)
    would = f"{denying.region} would stay denied{only_on(denying.only)}"
    return f"{would}, by {rule}: no ALLOW overrules it; remove it first, if that is meant"


def _reused(
    request: AccessRequest, rules: Iterable[StandardAcl], added: Iterable[StandardAcl], policy: Policy
) -> Iterator[StandardAcl | str]:
    """Yield what allows the wanted rules that are not added."""
    reasons: set[StandardAcl | str] = set()
    new = set(added)
    for rule in rules:
        if rule in new:
            continue
        for reason in _reasons(request, rule, policy):
            if reason not in reasons:
                reasons.add(reason)
                yield reason


def _reasons(request: AccessRequest, rule: StandardAcl, policy: Policy) -> Iterator[StandardAcl | str]:
    need = next(each for each in request.needs if resource_of(rule) in each.patterns)
    query = request.query(need, 1 << rule.operation)
    for each in permissions(policy, query):
        for reason in each.rules:
            if isinstance(reason, str) or reason.principal in (request.principal, WILDCARD_PRINCIPAL):
                yield reason


# What an intent needs on the resources that are named.


_FLAGS = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
}


@frozen(kw_only=True)
class IntentResources:
    """The resources of an intent, as patterns of rules: LITERAL `*` is every name."""

    named: tuple[ResourcePattern, ...] = ()
    inputs: tuple[ResourcePattern, ...] = ()
    """Topics that a Streams application reads."""
    outputs: tuple[ResourcePattern, ...] = ()
    """Topics that it writes."""


def asked_needs(intent: Intent, resources: IntentResources, *, whole: bool) -> tuple[Need, ...]:
    """Return what an intent needs on all of the resources that are named, a need for each pattern.

    With `whole`, all that the intent needs must be named: somebody who is granted half of it can do nothing with it.

    Raises:
        ConfigError: a resource that the intent has no use for, a name that hardly can be meant, or one is missing.

    """
    for each in (*resources.named, *resources.inputs, *resources.outputs):
        _check_name(each, for_new_rule=whole)
    needs = _stream(resources) if intent is Intent.STREAM else _plain(intent, resources)
    if whole and intent is Intent.STREAM and not (resources.inputs or resources.outputs):
        raise ConfigError("intent stream: expected --input-topic or --output-topic, too: what it reads, what it writes")
    if whole and needs.some:
        missing = ", ".join(dict.fromkeys(_FLAGS[ResourceType(need.resource_type)] for need in needs.some))
        raise ConfigError(f"intent {intent}: expected {missing}, too: a client needs all of it")
    return tuple(_by_pattern(needs.named))


def _plain(intent: Intent, resources: IntentResources) -> IntentNeeds:
    if resources.inputs or resources.outputs:
        raise ConfigError(f"intent {intent}: --input-topic and --output-topic are of intent stream: expected --topic")
    return intent_needs(intent, resources.named)


def _stream(resources: IntentResources) -> IntentNeeds:
    """Return the needs of a Streams application; a transactional id stands for exactly-once processing."""
    by_type: dict[int, list[ResourcePattern]] = {}
    for each in resources.named:
        by_type.setdefault(each.resource_type, []).append(each)
    groups, transactions = by_type.pop(ResourceType.GROUP, []), by_type.pop(ResourceType.TRANSACTIONAL_ID, [])
    if by_type.pop(ResourceType.TOPIC, None):
        raise ConfigError("intent stream: expected --input-topic and --output-topic: what it reads, and what it writes")
    if by_type or len(groups) != 1 or groups[0].pattern_type != PatternType.LITERAL or is_every_name(groups[0]):
        raise ConfigError("intent stream: expected one --group, literal: the application id")
    application = groups[0].name
    if transactions not in ([], [evolve(groups[0], resource_type=ResourceType.TRANSACTIONAL_ID)]):
        raise ConfigError(
            f"intent stream: expected --transactional-id {application}, literal, for exactly-once processing, or none"
        )
    return stream_needs(
        Application(
            id=application,
            inputs=resources.inputs,
            outputs=resources.outputs,
            exactly_once=bool(transactions),
        )
    )


def _by_pattern(needs: Iterable[Need]) -> Iterator[Need]:
    masks: dict[ResourcePattern, int] = {}
    for need in needs:
        for pattern in need.patterns:
            masks[pattern] = masks.get(pattern, 0) | need.operations
    for pattern, operations in masks.items():
        yield Need(
            resource_type=ResourceType(pattern.resource_type), operations=operations, patterns=(pattern,), every=True
        )


def _check_name(pattern: ResourcePattern, *, for_new_rule: bool) -> None:
    kind, name = ResourceType(pattern.resource_type).name, pattern.name
    if not name:
        raise ConfigError(f"a {kind} with an empty name: expected a name")
    if not for_new_rule or is_every_name(pattern):
        return
    if name == WILDCARD:
        raise ConfigError(f"{kind} {name!r}: expected it without prefix: that is every name")
    if name.endswith(WILDCARD) and pattern.resource_type == ResourceType.TOPIC:
        raise ConfigError(
            f"{kind} {name!r}: a rule does not take * for any text: expected {name[:-1]!r} and "
            "--resource-pattern-type prefixed; `aclog acls add` takes such a name as it is"
        )
    if pattern.resource_type == ResourceType.TOPIC and not _is_legal(pattern):
        raise ConfigError(f"TOPIC {name!r}: no topic can have such a name")


def _is_legal(pattern: ResourcePattern) -> bool:
    is_prefix = pattern.pattern_type == PatternType.PREFIXED and len(pattern.name) < LONGEST
    return is_legal_topic(f"{pattern.name}x" if is_prefix else pattern.name)


# Revoking: a principal's own rules that give what is asked, what else these gave, and what still allows it.


@frozen(kw_only=True)
class Still:
    """What is allowed nevertheless, and why."""

    permission: Permission
    only: Generation | None = None
    """That of Kafka which alone allows it, if several may decide."""


@frozen(kw_only=True)
class Revocation:
    """What takes away what is asked, as far as a principal's own rules give it."""

    removed: tuple[StandardAcl, ...]
    added: tuple[StandardAcl, ...]
    """Rules for what else the removed ones gave."""
    still: tuple[Still, ...]


def revoke(
    request: AccessRequest, contents: AbstractSet[bytes], settings: Settings, generations: Collection[Generation] = ()
) -> Revocation:
    """Return what removes the rules of the principal that give what is asked, given the rules of a place.

    `generations`: of Kafka, that may decide; without any, it is that of `settings`. A rule on more names, or for more
    hosts, than is asked stays whole: only a DENY could cut it. DESCRIBE and DESCRIBE_CONFIGS stay with an operation
    that implies them.
    """
    patterns = [pattern for need in request.needs for pattern in need.patterns]
    near = near_rules(contents, patterns)
    targets = {acl: _targets(acl, request) for acl in near if _is_own(acl, request)}
    removed = tuple(acl for acl, mask in targets.items() if _gives_of(acl, mask))
    each = settings.by_generation(generations)
    added = _replacements({acl: targets[acl] for acl in removed}, near, each.values())
    still = {
        generation: _still(request, changed_policy(policy_with(near, own), removed=removed, added=added))
        for generation, own in each.items()
    }
    remains = (Still(permission=permission, only=only) for permission, only in merged(still, permission_key))
    return Revocation(removed=removed, added=added, still=tuple(remains))


def _is_own(acl: StandardAcl, request: AccessRequest) -> bool:
    return (
        acl.permission_type == AclPermissionType.ALLOW
        and acl.principal == request.principal
        and (not request.hosts or acl.host in request.hosts)
    )


def _targets(acl: StandardAcl, request: AccessRequest) -> int:
    """Return the operations that are to be taken away on all names of a rule."""
    mask = 0
    for need in request.needs:
        if any(covers(pattern, resource_of(acl)) for pattern in need.patterns):
            mask |= need.operations
    return mask


def _gives_of(acl: StandardAcl, mask: int) -> bool:
    """Return whether a rule gives one of these operations other than by implication."""
    return bool(mask) if acl.operation == AclOperation.ALL else bool(mask >> acl.operation & 1)


def _replacements(
    removed: Mapping[StandardAcl, int], near: Iterable[StandardAcl], each: Iterable[Settings]
) -> tuple[StandardAcl, ...]:
    """Return the least rules for what else the removed ones gave, on the same names and from the same hosts.

    Rules that deny do not count here: what they overrule today is kept for the day on which they go.
    """
    rules = sorted({each for acl, mask in removed.items() for each in _rest(acl, mask)}, key=wide_first)
    allows = [acl for acl in near if acl.permission_type == AclPermissionType.ALLOW and ":" in acl.principal]
    remaining = [acl for acl in allows if acl not in removed]
    return least_rules([policy_with(remaining, by_rules_alone(settings)) for settings in each], rules, Query())


def _rest(acl: StandardAcl, mask: int) -> Iterator[StandardAcl]:
    """Yield rules for the operations of a rule that its resource type supports and that are not taken away."""
    supported = SUPPORTED_OPERATIONS[ResourceType(acl.resource_type)]  # an intent asks about no other type
    rest = sum(1 << each for each in supported if gives(acl.operation) >> each & 1) & ~mask
    if acl.resource_type == ResourceType.TRANSACTIONAL_ID and mask >> AclOperation.WRITE & 1:
        # Kafka asks for it after WRITE, so it is of no use alone; and a Kafka 3.9 knows no such rule.
        rest &= ~(1 << AclOperation.TWO_PHASE_COMMIT)
    for operation in least_operations(rest):
        yield evolve(acl, operation=operation)


def _still(request: AccessRequest, after: Policy) -> Iterable[Permission]:
    """Return what is still allowed of the operations that no other one implies; what answers two needs, once."""
    still: dict[Hashable, Permission] = {}
    for need in request.needs:
        query = request.query(need, sum(1 << each for each in least_operations(need.operations)))
        for host in dict.fromkeys(map(one_address, request.hosts or (WILDCARD,))):
            for each in permissions(after, evolve(query, host=host)):
                if request.principal != WILDCARD_PRINCIPAL or each.region.principals.complement:
                    still.setdefault(permission_key(each), each)
    return still.values()


# Whose resources a new rule on a prefix, or on every name, also opens.


@frozen(kw_only=True)
class Shared:
    """A pattern that is granted, and another principal who is allowed something on names of it."""

    pattern: ResourcePattern
    principal: str
    patterns: tuple[ResourcePattern, ...]
    """Of that principal's rules, sorted by name; each is the pattern itself or inside of it."""


def shared(added: Iterable[StandardAcl], contents: AbstractSet[bytes]) -> tuple[Shared, ...]:
    """Return who else has rules on the names of the prefixes that are granted."""
    granted = dict.fromkeys(resource_of(acl) for acl in added)
    wide = [each for each in granted if each.pattern_type == PatternType.PREFIXED or is_every_name(each)]
    if not wide:
        return ()
    own = {acl.principal for acl in added}
    by_holder: dict[tuple[ResourcePattern, str], set[ResourcePattern]] = {}
    for acl in _allowing(contents, PatternSet.of(wide), own):
        for pattern in wide:
            if covers(pattern, resource_of(acl)):
                by_holder.setdefault((pattern, acl.principal), set()).add(resource_of(acl))
    order = {pattern: number for number, pattern in enumerate(wide)}
    return tuple(
        Shared(
            pattern=pattern, principal=principal, patterns=tuple(sorted(by_holder[pattern, principal], key=_by_name))
        )
        for pattern, principal in sorted(by_holder, key=lambda key: (order[key[0]], key[1]))
    )


def _allowing(contents: Iterable[bytes], near: PatternSet, own: AbstractSet[str]) -> Iterator[StandardAcl]:
    for content in contents:
        kind, name, pattern_type, principal = pattern_of_content(content)
        if principal not in own and near.meets(kind, name, pattern_type):
            acl = acl_of_content(content)
            if acl.permission_type == AclPermissionType.ALLOW:
                yield acl


def _by_name(pattern: ResourcePattern) -> tuple[str, int]:
    return pattern.name, pattern.pattern_type


# What a grant takes away, and what a revocation gives: nobody asked for that.


def side_effects(
    changes: Sequence[RuleChange], contents: AbstractSet[bytes], settings: Settings, direction: Direction
) -> list[Region]:
    """Return the requests of any principal that a change moves in a direction in which it should move none.

    Where a name without rules is open (allow.everyone.if.no.acl.found), the first rule on it closes it to all others,
    and it opens to everyone when its last rule goes.
    """
    changed = [change.acl for change in changes]
    old = policy_with(near_rules(contents, map(resource_of, changed)), settings)
    new = changed_policy(
        old,
        added=[change.acl for change in changes if change.added],
        removed=[change.acl for change in changes if not change.added],
    )
    return [each.region for each in differences(old, new, changed=changed) if each.direction is direction]


# Topics that a principal may still use, when the groups or transactional ids that its clients use for it are gone.


_USED_FOR = {ResourceType.GROUP: AclOperation.READ, ResourceType.TRANSACTIONAL_ID: AclOperation.WRITE}
"""What clients do with topics by a resource of a type."""


@frozen(kw_only=True)
class Stranded:
    """Groups, or transactional ids, that go, and topics on which the principal's own rules still give what for."""

    lost: tuple[ResourcePattern, ...]
    operation: AclOperation
    topics: tuple[ResourcePattern, ...]
    """Sorted by name."""


def stranded(revocation: Revocation, contents: AbstractSet[bytes], principal: str) -> Iterator[Stranded]:
    """Yield what clients may no longer do, though nobody asked for it."""
    for kind, operation in _USED_FOR.items():
        lost = tuple(resource_of(acl) for acl in revocation.removed if acl.resource_type == kind)
        if lost:
            remaining = contents - set(map(content_of, revocation.removed)) | set(map(content_of, revocation.added))
            topics = {resource_of(acl) for acl in _on_topics(remaining, principal) if _allows(acl, operation)}
            if topics:
                yield Stranded(
                    lost=tuple(dict.fromkeys(lost)),
                    operation=operation,
                    topics=tuple(sorted(topics, key=lambda topic: (topic.name, topic.pattern_type))),
                )


def _on_topics(contents: Iterable[bytes], principal: str) -> Iterator[StandardAcl]:
    for content in contents:
        kind, _, _, who = pattern_of_content(content)
        if kind == ResourceType.TOPIC and who == principal:
            yield acl_of_content(content)


def _allows(acl: StandardAcl, operation: AclOperation) -> bool:
    return acl.permission_type == AclPermissionType.ALLOW and acl.operation in (operation, AclOperation.ALL)
