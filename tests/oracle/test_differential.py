"""Our decisions against those of the real StandardAuthorizer 4.3.1, which runs in a JVM.

More than 200,000 decisions in all; `make oracle-long` makes 5 million with the same generator, `make
oracle-odd-patterns` 400,000 on pattern types that only records can carry.
"""

import random
from itertools import combinations, product
from uuid import UUID

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, seed, settings

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from tests.support.builders.acls import acl
from tests.support.kafka.oracle import Ask, Estate, OracleProcess
from tests.support.models.differential import compare, differences, image_of, other_paths, with_few_hangs
from tests.support.models.shapes import ODD, Maker, Shape, shapes
from tests.support.runs.profiles import examples

PARTS = range(8)
"""Each part is a test, so that several cores share the work."""
EXAMPLES, REQUESTS = 50, 540
CAMPAIGN = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=pytest.mark.tier("test")) if part == 0 else part for part in PARTS]
)
def test_every_decision_and_its_rule_are_those_of_kafka(part: int, oracle: OracleProcess) -> None:
    asked = 0

    @seed(random.getrandbits(32) + part)  # the global seed alone is the same for each part
    @CAMPAIGN
    @given(shapes())
    def campaign(shape: Shape) -> None:
        nonlocal asked
        maker = Maker(shape)
        asks = maker.asks(REQUESTS)
        image = image_of(maker.estate.acls, changes=shape.changes, random=maker.random)
        assert compare(oracle, maker.estate, image, asks) == []
        asked += len(asks)

    campaign()
    assert asked >= EXAMPLES * REQUESTS


def test_the_reference_model_answers_as_kafka_too(oracle: OracleProcess) -> None:
    @settings(CAMPAIGN, max_examples=examples(60))
    @given(shapes())
    def campaign(shape: Shape) -> None:
        maker = Maker(shape)
        asks = maker.asks(100)
        oracle.load(maker.estate)
        image = AclsImage.from_acls(maker.estate.acls)
        assert differences(maker.estate, image, asks, oracle.decide(asks), reference=True) == []

    campaign()


def test_where_kafka_loops_for_ever_or_throws_rule_1_decides(oracle: OracleProcess) -> None:
    """Names below `*`: compare with Kafka if it returns, else with the reference model."""
    letters = ""

    @settings(CAMPAIGN, max_examples=examples(30))
    @given(shapes(alphabet=("a!# ", "!*", "! ")))
    def campaign(shape: Shape) -> None:
        nonlocal letters
        maker = Maker(evolve(shape, odd=0, rules=min(shape.rules, 50)))
        asks = with_few_hangs(maker.estate, maker.asks(150), most=1)
        image = image_of(maker.estate.acls, changes=shape.changes, random=maker.random)
        oracle.load(maker.estate)
        answers = oracle.decide(asks, hang_millis=60)
        assert differences(maker.estate, image, asks, answers, reference=True) == []
        letters += "".join(answer.letter for answer in answers)

    campaign()
    assert set(letters) == set("ADEH")


@pytest.mark.parametrize("part", range(2))
def test_pattern_types_that_only_a_record_can_carry(part: int, oracle: OracleProcess) -> None:
    """ANY, MATCH and unknown codes on names around `*`: decision and rule, explained and in bulk too."""
    odd = 0

    @seed(random.getrandbits(32) + part)
    @settings(CAMPAIGN, max_examples=examples(100))
    @given(shapes(**ODD))
    def campaign(shape: Shape) -> None:
        nonlocal odd
        maker = Maker(shape)
        asks = with_few_hangs(maker.estate, maker.asks(200), most=0)
        image = image_of(maker.estate.acls, changes=shape.changes, random=maker.random)
        oracle.load(maker.estate)
        answers = oracle.decide(asks)
        assert differences(maker.estate, image, asks, answers, reference=True) == []
        assert other_paths(maker.estate, image, asks, explained=20) == []
        odd += sum(answer.rule >= 0 and answer.letter == "A" for answer in answers)

    campaign()
    assert odd > 1000


def rule(name: str, pattern: PatternType, permission: AclPermissionType) -> StandardAcl:
    return acl(name, "User:u", pattern_type=pattern, permission_type=permission)


@pytest.mark.parametrize("permission", [AclPermissionType.DENY, AclPermissionType.ALLOW])
def test_which_of_the_wildcard_and_the_empty_prefix_is_named_when_both_match(
    permission: AclPermissionType, oracle: OracleProcess
) -> None:
    """Every estate of the two and any of six more ACLs, some of which change the order of the scan."""
    both = [rule("*", PatternType.LITERAL, permission), rule("", PatternType.PREFIXED, permission)]
    others = [
        rule(name, pattern, AclPermissionType.ALLOW)
        for name, pattern in (
            ("*", PatternType.PREFIXED),
            ("*", PatternType.MATCH),
            ("a", PatternType.LITERAL),
            ("+", PatternType.PREFIXED),
            ("!", PatternType.LITERAL),
            ("é", PatternType.PREFIXED),
        )
    ]
    names = ["a", "ab", "b", "+", "+x", "*", "**", "", "!", "!z", " ", "é", "z"]
    named = set()
    for more in (chosen for count in range(7) for chosen in combinations(others, count)):
        acls = [StandardAclWithId(id=UUID(int=7 + i), acl=acl) for i, acl in enumerate((*both, *more))]
        estate = Estate(acls=acls)
        operations = (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.WRITE)
        every = [
            Ask(False, "User:u", "10.0.0.1", operation, ResourceType.TOPIC, name)
            for operation, name in product(operations, names)
        ]
        asks = with_few_hangs(estate, every, most=0)
        oracle.load(estate)
        answers = oracle.decide(asks)
        assert differences(estate, AclsImage.from_acls(acls), asks, answers, reference=True) == []
        named |= {answer.rule for answer in answers}
    assert 1 in named, "the empty prefix"
    assert (0 in named) is (permission is AclPermissionType.DENY), "the wildcard: never the last that allows"


@pytest.mark.tier("test")
def test_a_difference_is_seen(oracle: OracleProcess) -> None:
    """The comparison notices a missing ACL and one with the opposite permission."""
    maker = Maker(Shape(**ORDINARY))
    asks = maker.asks(500)
    acls = list(maker.estate.acls)
    assert compare(oracle, maker.estate, AclsImage.from_acls(acls), asks) == []
    assert compare(oracle, maker.estate, AclsImage.from_acls(acls[1:]), asks) != []
    turned = evolve(acls[0], acl=evolve(acls[0].acl, permission_type=5 - acls[0].acl.permission_type))
    assert compare(oracle, maker.estate, AclsImage.from_acls([turned, *acls[1:]]), asks) != []


ORDINARY = {
    "seed": 3, "rules": 6, "alphabet": "ab", "longest": 2, "principals": 2, "operations": 4, "types": 1,
    "prefixed": 50, "deny": 20, "special": 5, "any_host": 80, "odd": 0, "changes": 0,
    "super_users": None, "allow_everyone": None,
}  # fmt: skip
