"""The ACLs by which a state may allow more, against the whole comparison of both states."""

from random import Random

import pytest

from aclog.analysis.comparison import differences
from aclog.analysis.policy import Policy
from aclog.analysis.regions import Direction
from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.usage.decisions.intervals import Rules
from aclog.usage.gaining import gaining
from tests.support.builders.acls import acl

DENY, PREFIXED = AclPermissionType.DENY, PatternType.PREFIXED
NAMES = ("a", "a.b", "a.b.c", "ab", "b", "*", "*a", "é", "éa")
OPERATIONS = (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.WRITE, AclOperation.ALL)


def random_rule(random):
    return acl(
        random.choice(NAMES),
        random.choice(("User:p", "User:q", "User:*", "User:p", "none" if random.random() < 0.1 else "User:q")),
        random.choice(("*", "10.0.0.1", "10.0.0.2", "10.0.0.0/8", "10.0.0.0/30")),
        random.choice(OPERATIONS),
        resource_type=random.choice((ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP)),
        pattern_type=random.choice((PREFIXED, PatternType.LITERAL, PatternType.LITERAL)),
        permission_type=DENY if random.random() < 0.3 else AclPermissionType.ALLOW,
    )


def gained(old, new, settings, changed=None):
    states = (
        Policy(each.with_options(documented=settings.documented, cidr=settings.cidr), settings) for each in (old, new)
    )
    found = differences(*states, changed=changed)
    return {str(each) for each in found if each.direction is Direction.GAINED}


def image_of(rules):
    return AclsImage.from_acls(StandardAclWithId(id=None, acl=rule) for rule in rules)


def rows_of(rules):
    return gaining(*(Rules.of_image(image_of(each)).table for each in rules))


@pytest.mark.parametrize("seed", range(300))
@pytest.mark.sample(40)
def test_no_gain_is_missed(seed):
    random = Random(seed)
    old = list({random_rule(random): None for _ in range(random.randrange(12))})
    new = [rule for rule in old if random.random() < 0.8] + [random_rule(random) for _ in range(random.randrange(3))]
    new = list(dict.fromkeys(new))
    settings = Settings(cidr=random.random() < 0.5, documented=random.random() < 0.5)
    rows = rows_of((old, new))
    assert rows is not None
    states = image_of(old), image_of(new)
    assert bool(gained(*states, settings, rows)) == bool(gained(*states, settings))


READ_AB = acl("a.b", "User:p", "10.0.0.1", AclOperation.READ)


@pytest.mark.parametrize(
    "wide",
    [
        acl("a.", "User:p", "*", AclOperation.ALL, pattern_type=PREFIXED),
        acl("*", "User:*", "*", AclOperation.READ),
        acl("a.b", "User:*", "10.0.0.1", AclOperation.READ),
    ],
)
def test_a_covered_allow_gains_nothing(wide):
    assert rows_of(([wide], [READ_AB])) == []
    assert rows_of(([READ_AB], [wide])) == [wide]


def test_a_denial_counts_only_where_an_allow_may_meet_it():
    other = acl("x", "User:p", "*", AclOperation.READ, permission_type=DENY)
    meets = acl("a", "User:*", "*", AclOperation.ALL, permission_type=DENY, pattern_type=PREFIXED)
    implied = acl("a.b", "User:p", "*", AclOperation.DESCRIBE, permission_type=DENY)
    unmet = acl("a.b", "User:p", "*", AclOperation.WRITE, permission_type=DENY)
    assert set(rows_of(([READ_AB, other, meets, implied, unmet], [READ_AB]))) == {meets, implied}
    assert rows_of(([READ_AB, meets], [READ_AB, meets])) == []


def test_two_empty_states_and_no_rule_left():
    assert rows_of(([], [])) == []
    assert rows_of(([READ_AB], [])) == []


@pytest.mark.parametrize(
    ("allow", "deny"),
    [
        (acl("*", "User:p", pattern_type=PREFIXED), acl("*", "User:p", permission_type=DENY)),
        (acl("*a", "User:p"), acl("*", "User:p", permission_type=DENY)),
        (acl("", "User:p", pattern_type=PREFIXED), acl("a", "User:p", permission_type=DENY)),
    ],
)
def test_a_denial_may_overrule_an_odd_allow(allow, deny):
    assert rows_of(([allow, deny], [allow])) == [deny]
