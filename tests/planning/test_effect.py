"""What one deletion takes away, beside a plain model that is asked for every class of requests."""

from random import Random

from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.analysis.policy import Policy
from aclog.analysis.regions import Direction, contains
from aclog.authorizer.acl import StandardAcl, acl_text
from aclog.authorizer.acls_image import content_of
from aclog.authorizer.acls_image import image_of as image_of_contents
from aclog.authorizer.codes import WILDCARD, AclOperation, AclPermissionType, PatternType
from aclog.authorizer.settings import Settings
from aclog.planning.effect import Nothing, TakenAway, taken_away
from tests.support.analysis.cells import Cells
from tests.support.analysis.model import EVERY_OPERATION, PolicyModel
from tests.support.analysis.policies import distinct, image_of, random_rule, random_settings
from tests.support.builders.acls import acl
from tests.support.runs.profiles import examples

CASES = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck), database=None)
RANDOMS = st.integers(0, 2**32 - 1).map(Random)
OF_MASK = range(EVERY_OPERATION.bit_length())


def random_case(random: Random) -> tuple[list[StandardAcl], StandardAcl, Settings]:
    """Rules, one that was deleted, which often resembles one of them, and settings."""
    rules = [random_rule(random) for _ in range(random.randint(0, 8))]
    gone = random_rule(random)
    if rules and random.random() < 0.6:
        near = random.choice(rules)
        gone = evolve(near, **{field: getattr(gone, field) for field in random.sample(
            ["resource_name", "pattern_type", "principal", "host", "operation", "permission_type"], 2)})  # fmt: skip
    return [each for each in distinct(rules) if str(each) != str(gone)], gone, random_settings(random)


def policy(rules, decided: Settings) -> Policy:
    made = image_of(list(rules)).with_options(documented=decided.documented, cidr=decided.cidr)
    return Policy(made, decided)


def all_but(found: Settings) -> Settings:
    return evolve(found, super_users=frozenset(), allow_everyone=False)


def masks(cells: Cells, model: PolicyModel) -> list[int]:
    return [model.allowed(who, host, kind, name) for kind, name, who, host in cells.all()]


@CASES
@given(RANDOMS)
def test_what_it_takes_away_is_what_the_model_decides_otherwise(random):
    rules, gone, decided = random_case(random)
    end, more = policy(rules, decided), policy([*rules, gone], decided)
    found = taken_away(end, gone)
    cells = Cells.of(end, more, regions=[each.region for each in found.differences])
    with_it, without = PolicyModel(more), PolicyModel(end)
    for kind, name, who, host in cells.all():
        was, is_ = with_it.allowed(who, host, kind, name), without.allowed(who, host, kind, name)
        told = dict.fromkeys(Direction, 0)
        for each in found.differences:
            region = each.region
            if (
                region.resource_type == kind
                and who in region.principals
                and host in region.hosts
                and contains(region.names, name)
            ):
                told[each.direction] |= region.operations
        assert told == {Direction.GAINED: is_ & ~was, Direction.LOST: was & ~is_}
    assert (found.nothing is None) is bool(found.differences)
    if found.nothing is not None:
        check_reason(found, rules, decided, cells)


def check_reason(found: TakenAway, rules: list[StandardAcl], decided: Settings, cells: Cells) -> None:
    """Hold a reason against single rules, each decided on by itself."""
    gone, plain = found.acl, all_but(decided)
    everything = [
        StandardAcl(resource_type=kind, resource_name="", pattern_type=PatternType.PREFIXED, principal="User:*",
            host=WILDCARD, operation=AclOperation.ALL, permission_type=AclPermissionType.ALLOW)
        for kind in range(2, 8)
    ]  # fmt: skip
    gives = masks(cells, PolicyModel(policy([gone], plain)))
    leaves = masks(cells, PolicyModel(policy([*everything, gone], plain)))
    about = [given | (EVERY_OPERATION & ~left) for given, left in zip(gives, leaves, strict=True)]
    if found.nothing is Nothing.UNUSABLE:
        assert not any(about)
    elif found.nothing is Nothing.SUPER_USER:
        assert gone.principal in decided.super_users
    elif found.nothing is Nothing.ALLOWED:
        assert found.other in rules
        others = masks(cells, PolicyModel(policy([found.other], plain)))
        assert not any(mine & ~its for mine, its in zip(gives, others, strict=True))
        assert any(gives)
    elif found.nothing is Nothing.DENIED:
        assert found.other in rules
        others = masks(cells, PolicyModel(policy([*everything, found.other], plain)))
        assert not any(mine & its for mine, its in zip(about, others, strict=True))
    elif found.nothing is Nothing.NEVER_ALLOWED:
        ends = masks(cells, PolicyModel(policy(rules, decided)))
        asked = [who not in decided.super_users for _, _, who, _ in cells.all()]
        assert not any(each and mine & its for each, mine, its in zip(asked, about, ends, strict=True))


ORDERS = acl("orders", "User:a")
EVERYBODYS = acl("orders", "User:*", operation=AclOperation.ALL)


def told(rules, gone, **decided) -> tuple[Nothing | None, StandardAcl | None]:
    found = taken_away(policy(rules, Settings(**decided)), gone)
    return found.nothing, found.other


def test_each_reason():
    deny = evolve(EVERYBODYS, permission_type=AclPermissionType.DENY)
    read_too = evolve(ORDERS, principal="User:*")
    assert told([], ORDERS) == (None, None)
    assert told([EVERYBODYS], ORDERS) == (Nothing.ALLOWED, EVERYBODYS)
    assert told([EVERYBODYS, deny], ORDERS) == (Nothing.DENIED, deny)
    assert told([], deny) == (Nothing.NEVER_ALLOWED, None)
    assert told([], ORDERS, super_users=frozenset({"User:a"})) == (Nothing.SUPER_USER, None)
    assert told([], evolve(ORDERS, host="10.0.0.0/33", resource_type=99)) == (Nothing.UNUSABLE, None)
    halves = [evolve(read_too, operation=operation) for operation in (AclOperation.READ, AclOperation.WRITE)]
    every = [operation for operation in AclOperation if operation > AclOperation.ALL]
    all_of_them = [evolve(read_too, operation=operation) for operation in every]
    assert told(halves, evolve(ORDERS, operation=AclOperation.ALL)) == (None, None)
    assert told(all_of_them, evolve(ORDERS, operation=AclOperation.ALL)) == (Nothing.TOGETHER, None)


def test_a_state_without_ids_answers_the_same():
    plain = Policy(image_of_contents({content_of(EVERYBODYS)}), Settings())
    found = taken_away(plain, ORDERS)
    assert (found.nothing, found.other) == (Nothing.ALLOWED, EVERYBODYS)
    assert found.text() == f"still allowed by {acl_text(EVERYBODYS)}"
    [lost] = taken_away(Policy(image_of_contents(set())), ORDERS).differences
    assert lost.direction is Direction.LOST
