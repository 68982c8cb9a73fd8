"""Grants and revocations beside a brute force: a plain model of decisions, asked for every class of requests."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb
from random import Random

from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.analysis.intents import Need
from aclog.analysis.policy import Policy
from aclog.analysis.regions import Direction, Request
from aclog.authorizer.acl import ResourcePattern, StandardAcl
from aclog.authorizer.acls_image import RuleChange, content_of
from aclog.authorizer.codes import SUPPORTED_OPERATIONS, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.planning.granting import AccessRequest, grant, revoke, side_effects
from aclog.planning.plan import Batching, RefusedError
from aclog.planning.planner import ordered
from tests.support.analysis.cells import STRANGERS, Cells
from tests.support.analysis.model import IMPLIED, PolicyModel
from tests.support.analysis.policies import distinct, image_of, random_rule
from tests.support.runs.profiles import examples

CAMPAIGN = settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck), database=None)
MANY = 64
RANDOMS = st.integers(0, 2**32 - 1).map(Random)
ALLOW, ALL = AclPermissionType.ALLOW, AclOperation.ALL
MASKS = {
    ResourceType.TOPIC: [
        ("READ", "DESCRIBE"),
        ("WRITE", "DESCRIBE"),
        ("READ", "WRITE", "DESCRIBE", "CREATE", "DELETE"),
    ],
    ResourceType.GROUP: [("READ", "DESCRIBE")],
    ResourceType.TRANSACTIONAL_ID: [("WRITE", "DESCRIBE")],
}


def mask_of(operations) -> int:
    return sum(1 << operation for operation in operations)


def random_asked(random: Random) -> AccessRequest:
    found = {}
    for _ in range(random.randint(1, 2)):
        kind = random.choice([ResourceType.TOPIC, ResourceType.TOPIC, *MASKS])
        pattern = ResourcePattern(
            resource_type=kind,
            name=random.choice(("a", "ab", "abc", "b", "b.x", "*")),
            pattern_type=random.choice((PatternType.LITERAL, PatternType.PREFIXED)),
        )
        operations = mask_of(AclOperation[name] for name in random.choice(MASKS[kind]))
        found[pattern] = Need(resource_type=kind, operations=operations, patterns=(pattern,), every=True)
    return AccessRequest(
        principal=random.choice(("User:a", "User:a", "User:b", "User:*")),
        needs=tuple(found.values()),
        hosts=random.choice(((), (), ("*",), ("10.0.0.1",), ("10.0.0.1", "10.0.0.2"))),
    )


def random_place(random: Random, asked: AccessRequest, *, odd: int) -> tuple[list[StandardAcl], Settings]:
    """Rules, most of them about what is asked, and settings."""
    rules = []
    for _ in range(random.randrange(8)):
        rule = random_rule(random, odd=odd)
        if random.random() < 0.75:
            (pattern,) = random.choice(asked.needs).patterns
            rule = evolve(
                rule,
                resource_type=pattern.resource_type,
                resource_name=random.choice((pattern.name, pattern.name, "a", "ab", "b", "*")),
                pattern_type=random.choice((pattern.pattern_type, PatternType.LITERAL, PatternType.PREFIXED)),
                principal=random.choice((asked.principal, asked.principal, "User:b", "User:*")),
                host=random.choice(("*", "*", "10.0.0.1")),
                operation=random.choice((ALL, ALL, AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE)),
                permission_type=random.choice([ALLOW] * 4 + [AclPermissionType.DENY]),
            )
        rules.append(rule)
    supers = frozenset({"User:a"} if random.random() < 0.1 else ())
    return distinct(rules), Settings(super_users=supers, allow_everyone=random.random() < 0.3)


class World:
    """Every class of requests, and what states of rules allow of it."""

    def __init__(self, rules, asked: AccessRequest, options: Settings) -> None:
        self.options = options
        wanted = distinct([*asked.rules(), *rules])
        kinds = {need.resource_type for need in asked.needs}
        every = Cells.of(Policy(image_of(wanted), options)).all()
        self.cells = [cell for cell in every if cell[0] in kinds]

    def masks(self, rules, options: Settings | None = None) -> list[int]:
        model = PolicyModel(Policy(image_of(distinct(list(rules))), options or self.options))
        return [model.allowed(principal, host, kind, name) for kind, name, principal, host in self.cells]

    def alone(self, rules) -> list[int]:
        """What these rules allow by themselves."""
        return self.masks(rules, Settings())


@CAMPAIGN
@given(RANDOMS)
def test_a_grant_is_what_was_asked_with_the_fewest_rules(random: Random) -> None:
    asked = random_asked(random)
    rules, options = random_place(random, asked, odd=2)
    world = World(rules, asked, options)
    before, asks = world.masks(rules), world.alone(asked.rules())
    try:
        found = grant(asked, {content_of(rule) for rule in rules}, options)
    except RefusedError:
        assert is_one_operation_denied(world, rules, asked)
        return
    assert not is_one_operation_denied(world, rules, asked)
    after, best = world.masks([*rules, *found.added]), world.masks([*rules, *asked.rules()])
    mine = [asked.principal in ("User:*", cell[2]) for cell in world.cells]
    for was, now, ask, most, own in zip(before, after, asks, best, mine, strict=True):
        assert not now & ~was & ~ask  # nothing that nobody asked for
        assert not (own and ask & most & ~now)
    overruled = [each.region for each in found.overruled]
    for cell, ask, now in zip(world.cells, asks, after, strict=True):
        for operation in (each for each in AclOperation if ask >> each & 1):
            request = requested(cell, operation)
            assert any(request in region for region in overruled) is not bool(now >> operation & 1), request
    assert all(rule in asked.rules() and rule not in rules for rule in found.added)
    for fewer in smaller_sets(asked.rules(), len(found.added), random):
        less = world.masks([*rules, *fewer])
        assert any(ask & now & ~least for ask, now, least, own in zip(asks, after, less, mine, strict=True) if own), (
            fewer,
            found.added,
        )
    contents = {content_of(rule) for rule in rules}
    effects = side_effects(granted(asked, rules, options), contents, options, Direction.LOST)
    assert_regions(world, effects, before, after)


def smaller_sets(rules: Sequence[StandardAcl], size: int, random: Random) -> Iterator[tuple[StandardAcl, ...]]:
    """Every choice of fewer rules than `size`; of very many, some."""
    for fewer in range(size):
        if comb(len(rules), fewer) <= MANY:
            yield from combinations(rules, fewer)
        else:
            yield from (tuple(random.sample(rules, fewer)) for _ in range(MANY))


def requested(cell, operation) -> Request:
    kind, name, principal, host = cell
    return Request(principal=principal, host=host, operation=operation, resource_type=kind, resource_name=name)


def assert_regions(world, regions, more, less) -> None:
    """Assert that regions are exactly what the first masks have, and the second do not."""
    for cell, one, other in zip(world.cells, more, less, strict=True):
        for operation in AclOperation:
            if operation > ALL:
                request = requested(cell, operation)
                assert any(request in region for region in regions) is bool((one & ~other) >> operation & 1), request


def is_one_operation_denied(world, rules, asked) -> bool:
    """Whether with all rules that could help some operation on a whole pattern stays denied to all who ask."""
    after = world.masks([*rules, *asked.rules()])
    named = [asked.principal in ("User:*", cell[2]) for cell in world.cells]
    for need in asked.needs:
        (pattern,) = need.patterns
        for host in asked.hosts or ("*",):
            mine = [
                mask if own and cell[0] == pattern.resource_type and is_in(cell[1], pattern) else 0
                for cell, own, mask in zip(world.cells, named, after, strict=True)
                if host in ("*", cell[3])
            ]
            if any(not any(mask >> each & 1 for mask in mine) for each in AclOperation if need.operations >> each & 1):
                return True
    return False


@CAMPAIGN
@given(RANDOMS)
def test_a_revocation_takes_own_rules_and_keeps_what_else_they_gave(random: Random) -> None:
    asked = random_asked(random)
    rules, options = random_place(random, asked, odd=0)
    world = World(rules, asked, options)
    found = revoke(asked, {content_of(rule) for rule in rules}, options)
    left = [rule for rule in rules if rule not in found.removed]
    end = [*left, *found.added]
    assert set(found.removed) <= set(rules)
    assert not set(found.added) & set(left)
    assert all(is_own_and_within(rule, asked) for rule in found.removed)
    assert_nothing_else_is_lost(world, rules, end, asked, found)
    for fewer in smaller_sets(found.added, len(found.added), random):
        assert lost_of_the_rest(world, rules, [*left, *fewer], asked, found)
    for rule in end:
        if is_own_and_within(rule, asked):
            assert not any(own_bits(need) >> rule.operation & 1 for need in covering(rule, asked)), rule
    assert_still(world, end, asked, found)
    contents = {content_of(rule) for rule in rules}
    effects = side_effects(revoked(asked, rules, options), contents, options, Direction.GAINED)
    assert_regions(world, effects, world.masks(end), world.masks(rules))


@CAMPAIGN
@given(RANDOMS)
def test_killed_at_any_step_the_same_command_ends_the_same(random: Random) -> None:
    asked = random_asked(random)
    rules, options = random_place(random, asked, odd=2)
    work = random.choice((granted, revoked))
    steps = ordered(work(asked, rules, options), random.choice([Batching.RULE, Batching.RESOURCE]))
    end = after(rules, steps)
    for cut in {each.batch for each in steps}:
        held = after(rules, [each for each in steps if each.batch < cut])
        assert after(held, ordered(work(asked, held, options), Batching.RULE)) == end


def granted(asked, rules, options) -> list[RuleChange]:
    try:
        found = grant(asked, {content_of(rule) for rule in rules}, options)
    except RefusedError:
        return []
    return [RuleChange(added=True, acl=rule) for rule in found.added]


def revoked(asked, rules, options) -> list[RuleChange]:
    found = revoke(asked, {content_of(rule) for rule in rules}, options)
    added = [RuleChange(added=True, acl=rule) for rule in found.added]
    return [*added, *(RuleChange(added=False, acl=rule) for rule in found.removed)]


def after(rules, steps) -> set[StandardAcl]:
    gone = {each.acl for each in steps if not each.adds}
    return {*(rule for rule in rules if rule not in gone), *(each.acl for each in steps if each.adds)}


def own_bits(need: Need) -> int:
    """The operations of a need without what others of them imply, and ALL."""
    operations = {each for each in AclOperation if need.operations >> each & 1}
    return mask_of(operations - {IMPLIED[each] for each in operations if each in IMPLIED}) | 1 << ALL


def covering(rule, asked) -> list[Need]:
    return [need for need in asked.needs if any(has_all_names(pattern, rule) for pattern in need.patterns)]


def has_all_names(pattern, rule) -> bool:
    """Whether a pattern has each of a rule's names; LITERAL `*` has all."""
    if pattern.resource_type != rule.resource_type:
        return False
    if (pattern.name, pattern.pattern_type) == ("*", PatternType.LITERAL):
        return True
    all_names = (rule.resource_name, rule.pattern_type) == ("*", PatternType.LITERAL)
    if pattern.pattern_type == PatternType.PREFIXED:
        return rule.resource_name.startswith(pattern.name) and not all_names
    return (rule.resource_name, rule.pattern_type) == (pattern.name, PatternType.LITERAL)


def is_own_and_within(rule, asked) -> bool:
    own = rule.principal == asked.principal and rule.permission_type == ALLOW
    return own and (not asked.hosts or rule.host in asked.hosts) and bool(covering(rule, asked))


def lost_of_the_rest(world, rules, end, asked, found) -> bool:
    """Whether ALLOW rules alone no longer give something that nobody asked to take away."""
    allows = [rule for rule in rules if rule.permission_type == ALLOW]
    before = world.alone(allows)
    after = world.alone(rule for rule in end if rule.permission_type == ALLOW)
    taken = [0] * len(world.cells)
    for rule in found.removed:
        bits = 0
        for need in covering(rule, asked):
            bits |= need.operations
        taken = [one | given & bits for one, given in zip(taken, world.alone([rule]), strict=True)]
    supported = {kind: mask_of(SUPPORTED_OPERATIONS[kind]) for kind in ResourceType if kind > 1}
    supported[ResourceType.TRANSACTIONAL_ID] &= ~(1 << AclOperation.TWO_PHASE_COMMIT)  # of no use without WRITE
    return any(
        was & ~now & ~gone & supported[cell[0]]
        for cell, was, now, gone in zip(world.cells, before, after, taken, strict=True)
    )


def assert_nothing_else_is_lost(world, rules, end, asked, found) -> None:
    assert not lost_of_the_rest(world, rules, end, asked, found)
    strict = evolve(world.options, allow_everyone=False)
    for was, now in zip(world.masks(rules, strict), world.masks(end, strict), strict=True):
        assert not now & ~was


def assert_still(world, end, asked, found) -> None:
    """Assert that it says exactly what is still allowed; when everyone is asked about, only what strangers may."""
    regions = [each.permission.region for each in found.still]
    everyone = asked.principal == "User:*"
    for cell, now in zip(world.cells, world.masks(end), strict=True):
        kind, name, principal, host = cell
        if principal not in (asked.principal, STRANGERS[0] if everyone else ""):
            continue
        asks = 0
        for need in asked.needs:
            (pattern,) = need.patterns
            if kind == pattern.resource_type and is_in(name, pattern) and is_asked_host(host, asked):
                asks |= own_bits(need)
        for operation in (each for each in AclOperation if each > ALL):
            request = requested(cell, operation)
            assert any(request in region for region in regions) is bool((asks & now) >> operation & 1), request
    assert all(each.permission.rules for each in found.still)


def is_asked_host(host, asked) -> bool:
    return not asked.hosts or "*" in asked.hosts or host in asked.hosts


def is_in(name, pattern) -> bool:
    if (pattern.name, pattern.pattern_type) == ("*", PatternType.LITERAL):
        return True
    return name.startswith(pattern.name) if pattern.pattern_type == PatternType.PREFIXED else name == pattern.name
