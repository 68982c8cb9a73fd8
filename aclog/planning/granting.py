"""Granting and revoking: the fewest ACLs for an intent, and their side effects."""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from uuid import UUID

from attrs import evolve, field

from aclog.analysis import regions
from aclog.analysis.comparison import allowed, differences
from aclog.analysis.intents import Intent, Need
from aclog.analysis.policy import Policy, deciding, merged, only_on
from aclog.analysis.regions import only
from aclog.analysis.rule_tests.case import Application, IntentNeeds, intent_needs, stream_needs
from aclog.analysis.who_can import Permission, permission_key, permissions
from aclog.authorizer.acl import (
    ResourcePattern,
    StandardAcl,
    StandardAclWithId,
    acl_text,
    host_problem,
    is_cidr,
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
from aclog.authorizer.codes import (
    SUPPORTED_OPERATIONS,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    is_legal_topic,
)
from aclog.authorizer.control import refusal
from aclog.authorizer.index.layout import ALL_OPERATIONS, rule_mask
from aclog.authorizer.settings import Generation, Settings
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.planning.plan import PatternSet, RefusedError

# The ACLs of a target that share a name with the requested patterns; no other ACL matters.


def near_rules(contents: Iterable[bytes], patterns: Iterable[ResourcePattern]) -> tuple[StandardAcl, ...]:
    """Return the ACLs on patterns that share a name with one of these, in a stable order."""
    named = PatternSet.of(patterns)
    near = (content for content in contents if named.meets(*pattern_of_content(content)[:3]))
    return tuple(map(acl_of_content, sorted(near)))


def policy_with(rules: Iterable[StandardAcl], settings: Settings) -> Policy:
    """Return the policy of some ACLs. They get ids, which makes changes of the policy cheap (`changed_policy`)."""
    numbered = (StandardAclWithId(id=UUID(int=number), acl=acl) for number, acl in enumerate(rules, 1))
    image = AclsImage.from_acls(numbered).with_options(documented=settings.documented, cidr=settings.cidr)
    return Policy(image, settings)


def changed_policy(policy: Policy, *, added: Iterable[StandardAcl] = (), removed: Iterable[StandardAcl] = ()) -> Policy:
    """Return the policy after adding and removing ACLs."""
    changes = [
        *(RuleChange(added=False, acl=acl) for acl in removed),
        *(RuleChange(added=True, acl=acl) for acl in added),
    ]
    return Policy(changed_acls(policy.acls, changes), policy.settings)


def by_rules_alone(settings: Settings) -> Settings:
    """Return the settings without super users and without access to resources that have no ACL."""
    return evolve(settings, allow_everyone=False, super_users=frozenset())


# The smallest subset of some ACLs that allows what all of them would allow together.


def least_rules(
    policies: Collection[Policy], rules: Sequence[StandardAcl], query: regions.Query
) -> tuple[StandardAcl, ...]:
    """Return the ACLs to add to policies so that each allows as much of the query as with all of `rules`.

    No ACL of the result can be left out. The policies have the same ACLs and different settings. All of `rules` are
    ALLOWs for one principal, and wider ones come before those that they cover.
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
                # Where resources without ACLs are open, the first ACL on one closes it: others may be needed then.
                looks_again = any(policy.settings.allow_everyone for policy in now)
    return tuple(added)


def _gains(old: Policy, new: Policy, query: regions.Query, rule: StandardAcl) -> bool:
    return any(
        each.direction is regions.Direction.GAINED for each in differences(old, new, query=query, changed=(rule,))
    )


# The patterns of ACLs as sets of names; LITERAL `*` contains every name here.


def covers(outer: ResourcePattern, inner: ResourcePattern) -> bool:
    """Return whether a pattern contains every name of another one."""
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
    """Return the pattern as queries express it: there `*` is an ordinary name."""
    return evolve(pattern, name="", pattern_type=PatternType.PREFIXED) if is_every_name(pattern) else pattern


# The access to grant or revoke, and the ACLs for it.


@frozen(kw_only=True)
class AccessRequest:
    """The access that a principal should gain or lose."""

    principal: str
    """`User:*` is everyone."""
    needs: tuple[Need, ...]
    """Each on one pattern, as an ACL has it, and on all of its names; one need per pattern."""
    hosts: tuple[str, ...] = field(default=())
    """The hosts of the ACLs; if empty: `*` when granting, all hosts when revoking."""

    @property
    def principals(self) -> regions.Principals:
        """The principals whose requests the query covers."""
        return regions.EVERYONE if self.principal == WILDCARD_PRINCIPAL else only(self.principal)

    def query(self, need: Need, operations: int) -> regions.Query:
        """Return the query for some operations on all names of a need."""
        return regions.Query(
            resources=tuple(map(all_names, need.patterns)), operations=operations, principals=self.principals
        )

    def ranges(self) -> Iterator[StandardAcl]:
        """Yield those of `rules` whose hosts are ranges of addresses."""
        return (rule for rule in self.rules() if is_cidr(rule.host))

    def rules(self) -> tuple[StandardAcl, ...]:
        """Return the ACLs that allow exactly the requested access, those on the widest patterns first."""
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
    """Return the fewest operations of a mask whose ALLOWs imply the whole mask."""
    operations = tuple(regions.operations_of(mask))
    return tuple(
        each for each in operations if not any(each != other and gives(other) >> each & 1 for other in operations)
    )


def gives(operation: int) -> int:
    """Return the operations that an ALLOW of one operation grants, as a mask."""
    return rule_mask(operation, AclPermissionType.ALLOW) & ALL_OPERATIONS


def wide_first(acl: StandardAcl) -> tuple[object, ...]:
    """Return a sort key that puts an ACL before those that it covers."""
    is_prefix = acl.pattern_type == PatternType.PREFIXED
    is_all = not is_prefix and acl.resource_name == WILDCARD
    where = (acl.resource_type, not is_all, not is_prefix, len(acl.resource_name), acl.resource_name)
    return (*where, acl.host != WILDCARD, acl.host, acl.operation)


def one_address(host: str) -> str | None:
    """Return the host of an ACL if it is a client address; None for `*`, ranges, and impossible addresses."""
    return None if host == WILDCARD or "/" in host or host_problem(host, cidr=True) else host


# Granting: the missing ACLs, the ACLs that grant a part of the access already, and the DENY ACLs that overrule them.


@frozen(kw_only=True)
class Overruled:
    """Requested access that stays denied, and an ACL that denies a part.

    The ACL is None where Kafka's authorizer throws, because an ACL there has a principal without a colon.
    """

    region: regions.Region
    rule: StandardAcl | None
    only: Generation | None = None
    """The only generation of Kafka that denies it, if several may decide."""


@frozen(kw_only=True)
class Grant:
    """The ACLs that grant the requested access, as far as no DENY overrules them."""

    added: tuple[StandardAcl, ...]
    reused: tuple[StandardAcl | str, ...]
    """What grants the rest already: ACLs, `SuperUser` or `DefaultAllow`."""
    overruled: tuple[Overruled, ...]
    reused_only: Mapping[StandardAcl | str, Generation] = field(factory=dict)
    """Those of `reused` that grant it in one generation of Kafka only, and that generation."""


def grant(
    request: AccessRequest, contents: AbstractSet[bytes], settings: Settings, generations: Collection[Generation] = ()
) -> Grant:
    """Return the fewest ACLs that allow the requested access, given the ACLs of a target (their contents).

    `generations`: the generations of Kafka, each of which must allow it; if empty, that of `settings`. Unless resources
    without ACLs are known to be open, `settings` must count them as closed: then ACLs allow all of the access.

    Raises:
        RefusedError: a DENY covers an operation on a whole pattern, so that no ALLOW helps; or an ACL would match no
            request.

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


def _query(request: AccessRequest) -> regions.Query:
    """Return the query for all operations on all requested names."""
    resources = (resource for need in request.needs for resource in request.query(need, 0).resources)
    return regions.Query(resources=tuple(resources), principals=request.principals)


def _check_rules(rules: Iterable[StandardAcl], *, cidr: bool, only: Generation | None) -> None:
    for each in rules:
        why = refusal(each, cidr=cidr) or host_problem(each.host, cidr=cidr)
        if why is not None:
            by = "" if only is None else f"{only} may decide: "
            raise RefusedError(f"{acl_text(each)}: {by}{why}")


def _overruled(rules: Iterable[StandardAcl], after: Policy, query: regions.Query) -> Iterator[Overruled]:
    """Yield the requests of a query that the desired ACLs alone would allow, and the policy with them denies."""
    alone = policy_with(rules, by_rules_alone(after.settings))
    for each in differences(alone, after, query=query):
        if each.direction is regions.Direction.LOST:
            rule = deciding(after, regions.witness(each.region))
            yield Overruled(region=each.region, rule=rule if isinstance(rule, StandardAcl) else None)


def _check_some_allowed(
    request: AccessRequest, rules: Iterable[StandardAcl], after: Policy, generation: Generation | None
) -> None:
    """Check that each operation is allowed on some name of each pattern."""
    hosts = dict.fromkeys(map(one_address, request.hosts or (WILDCARD,)))
    for need in request.needs:
        for operation in regions.operations_of(need.operations):
            for host in hosts:
                query = evolve(request.query(need, 1 << operation), host=host)
                if not any(True for _ in allowed(after, query)):
                    denying = evolve(next(_overruled(rules, after, query)), only=generation)
                    raise RefusedError(_denied_text(denying))


def _denied_text(denying: Overruled) -> str:
    rule = "an ACL whose principal has no colon" if denying.rule is None else acl_text(denying.rule)
    would = f"{denying.region} would stay denied{only_on(denying.only)}"
    return f"{would} by {rule}: no ALLOW overrules it; remove it first if the access is intended"


def _reused(
    request: AccessRequest, rules: Iterable[StandardAcl], added: Iterable[StandardAcl], policy: Policy
) -> Iterator[StandardAcl | str]:
    """Yield what already allows those of the desired ACLs that are not added."""
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


# The needs of an intent on the named resources.


_FLAGS = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
}


@frozen(kw_only=True)
class IntentResources:
    """The resources of an intent, as ACL patterns: LITERAL `*` is every name."""

    named: tuple[ResourcePattern, ...] = ()
    inputs: tuple[ResourcePattern, ...] = ()
    """The topics that a Streams application reads."""
    outputs: tuple[ResourcePattern, ...] = ()
    """The topics that a Streams application writes."""


def asked_needs(intent: Intent, resources: IntentResources, *, whole: bool) -> tuple[Need, ...]:
    """Return the needs of an intent on the named resources, one need per pattern.

    With `whole`, every resource that the intent needs must be named: a client cannot work with a partial grant.

    Raises:
        ConfigError: a resource that the intent does not use, a missing resource, or a name that is probably a mistake.

    """
    for each in (*resources.named, *resources.inputs, *resources.outputs):
        _check_name(each, for_new_rule=whole)
    needs = _stream(resources) if intent is Intent.STREAM else _plain(intent, resources)
    if whole and intent is Intent.STREAM and not (resources.inputs or resources.outputs):
        raise ConfigError("intent stream: expected --input-topic or --output-topic: the topics that it reads or writes")
    if whole and needs.some:
        missing = ", ".join(dict.fromkeys(_FLAGS[ResourceType(need.resource_type)] for need in needs.some))
        raise ConfigError(f"intent {intent}: missing {missing}: expected every resource that the client needs")
    return tuple(_by_pattern(needs.named))


def _plain(intent: Intent, resources: IntentResources) -> IntentNeeds:
    if resources.inputs or resources.outputs:
        raise ConfigError(f"intent {intent}: --input-topic and --output-topic require intent stream: expected --topic")
    return intent_needs(intent, resources.named)


def _stream(resources: IntentResources) -> IntentNeeds:
    """Return the needs of a Streams application; a transactional id means exactly-once processing."""
    by_type: dict[int, list[ResourcePattern]] = {}
    for each in resources.named:
        by_type.setdefault(each.resource_type, []).append(each)
    groups, transactions = by_type.pop(ResourceType.GROUP, []), by_type.pop(ResourceType.TRANSACTIONAL_ID, [])
    if by_type.pop(ResourceType.TOPIC, None):
        raise ConfigError("intent stream: expected --input-topic and --output-topic (topics read and written)")
    if by_type or len(groups) != 1 or groups[0].pattern_type != PatternType.LITERAL or is_every_name(groups[0]):
        raise ConfigError("intent stream: expected one literal --group: the application id")
    application = groups[0].name
    if transactions not in ([], [evolve(groups[0], resource_type=ResourceType.TRANSACTIONAL_ID)]):
        raise ConfigError(
            f"intent stream: expected --transactional-id {application} (literal, for exactly-once processing), or none"
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
        raise ConfigError(f"{kind} {name!r} as a prefix: expected a literal name: a literal * is every name")
    if name.endswith(WILDCARD) and pattern.resource_type == ResourceType.TOPIC:
        raise ConfigError(
            f"{kind} {name!r}: an ACL does not expand * inside a name: expected {name[:-1]!r} and "
            "--resource-pattern-type prefixed (`aclog acls add` accepts such a name literally)"
        )
    is_prefix = pattern.pattern_type == PatternType.PREFIXED
    if pattern.resource_type == ResourceType.TOPIC and not is_legal_topic(pattern.name, is_prefix=is_prefix):
        raise ConfigError(f"TOPIC {name!r}: not a legal topic name")


# Revoking: the principal's own ACLs that grant the access, what else they grant, and what still allows the access.


@frozen(kw_only=True)
class Still:
    """Access that stays allowed, and why."""

    permission: Permission
    only: Generation | None = None
    """The only generation of Kafka that allows it, if several may decide."""


@frozen(kw_only=True)
class Revocation:
    """The changes that revoke the access, as far as the principal's own ACLs grant it."""

    removed: tuple[StandardAcl, ...]
    added: tuple[StandardAcl, ...]
    """ACLs for the other access that the removed ones granted."""
    still: tuple[Still, ...]


def revoke(
    request: AccessRequest, contents: AbstractSet[bytes], settings: Settings, generations: Collection[Generation] = ()
) -> Revocation:
    """Return the changes that remove the principal's ACLs that grant the access, given the ACLs of a target.

    `generations`: the generations of Kafka that may decide; if empty, that of `settings`. An ACL on more names, or for
    more hosts, than requested stays: only a DENY could narrow it. DESCRIBE and DESCRIBE_CONFIGS stay with an operation
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
    """Return the operations to revoke on all names of an ACL."""
    mask = 0
    for need in request.needs:
        if any(covers(pattern, resource_of(acl)) for pattern in need.patterns):
            mask |= need.operations
    return mask


def _gives_of(acl: StandardAcl, mask: int) -> bool:
    """Return whether an ACL grants one of these operations itself, not by implication."""
    return bool(mask) if acl.operation == AclOperation.ALL else bool(mask >> acl.operation & 1)


def _replacements(
    removed: Mapping[StandardAcl, int], near: Iterable[StandardAcl], each: Iterable[Settings]
) -> tuple[StandardAcl, ...]:
    """Return the fewest ACLs for the other access that the removed ones granted, on the same names and hosts.

    DENY ACLs are ignored: an access that a DENY overrules today is kept for the time after its removal.
    """
    rules = sorted({each for acl, mask in removed.items() for each in _rest(acl, mask)}, key=wide_first)
    allows = [acl for acl in near if acl.permission_type == AclPermissionType.ALLOW and ":" in acl.principal]
    remaining = [acl for acl in allows if acl not in removed]
    return least_rules([policy_with(remaining, by_rules_alone(settings)) for settings in each], rules, regions.Query())


def _rest(acl: StandardAcl, mask: int) -> Iterator[StandardAcl]:
    """Yield ACLs for those operations of an ACL that its resource type supports and that are not revoked."""
    supported = SUPPORTED_OPERATIONS[ResourceType(acl.resource_type)]  # intents use only these types
    rest = sum(1 << each for each in supported if gives(acl.operation) >> each & 1) & ~mask
    if acl.resource_type == ResourceType.TRANSACTIONAL_ID and mask >> AclOperation.WRITE & 1:
        # Kafka requires it after WRITE, so it is useless alone; and Kafka 3.9 does not know such an ACL.
        rest &= ~(1 << AclOperation.TWO_PHASE_COMMIT)
    for operation in least_operations(rest):
        yield evolve(acl, operation=operation)


def _still(request: AccessRequest, after: Policy) -> Iterable[Permission]:
    """Return the revoked operations that are still allowed, without implied ones; one that answers two needs, once."""
    still: dict[Hashable, Permission] = {}
    for need in request.needs:
        query = request.query(need, sum(1 << each for each in least_operations(need.operations)))
        for host in dict.fromkeys(map(one_address, request.hosts or (WILDCARD,))):
            for each in permissions(after, evolve(query, host=host)):
                if request.principal != WILDCARD_PRINCIPAL or each.region.principals.complement:
                    still.setdefault(permission_key(each), each)
    return still.values()


# Other principals with ACLs under a newly granted prefix, or under every name.


@frozen(kw_only=True)
class Shared:
    """A granted pattern, and another principal with access to some of its names."""

    pattern: ResourcePattern
    principal: str
    patterns: tuple[ResourcePattern, ...]
    """The patterns of that principal's ACLs, sorted by name; each equals the granted pattern or lies inside it."""


def shared(added: Iterable[StandardAcl], contents: AbstractSet[bytes]) -> tuple[Shared, ...]:
    """Return the other principals with ACLs on names under the granted prefixes."""
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


# Side effects: access that a grant takes away, and access that a revocation opens.


def side_effects(
    changes: Sequence[RuleChange], contents: AbstractSet[bytes], settings: Settings, direction: regions.Direction
) -> list[regions.Region]:
    """Return the requests of any principal that a change moves in a direction in which it should move none.

    Where resources without ACLs are open (allow.everyone.if.no.acl.found), the first ACL on one closes it to everyone
    else, and the removal of its last ACL opens it to everyone.
    """
    changed = [change.acl for change in changes]
    old = policy_with(near_rules(contents, map(resource_of, changed)), settings)
    new = changed_policy(
        old,
        added=[change.acl for change in changes if change.added],
        removed=[change.acl for change in changes if not change.added],
    )
    return [each.region for each in differences(old, new, changed=changed) if each.direction is direction]


# Topics that a principal may still use after the groups or transactional ids that its clients use with them are gone.


_USED_FOR = {ResourceType.GROUP: AclOperation.READ, ResourceType.TRANSACTIONAL_ID: AclOperation.WRITE}
"""The operation on topics for which clients use a resource of this type."""


@frozen(kw_only=True)
class Stranded:
    """Revoked groups or transactional ids, and the topics on which own ACLs of the principal still grant it."""

    lost: tuple[ResourcePattern, ...]
    operation: AclOperation
    topics: tuple[ResourcePattern, ...]
    """Sorted by name."""


def stranded(revocation: Revocation, contents: AbstractSet[bytes], principal: str) -> Iterator[Stranded]:
    """Yield the work that clients can no longer do as a side effect."""
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
