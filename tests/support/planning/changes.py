"""Random changes of random rules, most of them on the same few resources."""

from random import Random

from attrs import evolve

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import RuleChange
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from tests.support.analysis.policies import distinct, random_rule

NAMES = ("a", "ab", "abc", "b", "*", "*a", "*ab")
PRINCIPALS = ("User:a", "User:b", "User:*")
HOSTS = ("*", "*", "*", "10.0.0.1")


def close_rule(random: Random, *, odd: int = 0) -> StandardAcl:
    """One rule of few that are possible, so that rules meet; `odd` of 100 are such as only a record can carry."""
    rule = random_rule(random, odd=odd)
    if odd and random.random() < 0.3:
        return rule
    return evolve(
        rule,
        resource_type=random.choice([ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP]),
        resource_name=random.choice(NAMES) if rule.resource_name else "",
        pattern_type=rule.pattern_type if odd else random.choice([PatternType.LITERAL, PatternType.PREFIXED]),
        principal=random.choice(PRINCIPALS) if ":" in rule.principal else rule.principal,
        host=random.choice(HOSTS),
        operation=random.choice([AclOperation.ALL, AclOperation.READ, AclOperation.DESCRIBE]),
    )


def random_change(random: Random, *, odd: int = 0) -> tuple[list[StandardAcl], list[RuleChange]]:
    """Some rules, and changes of them in no order; adds and removes of distinct rules."""
    base = distinct([close_rule(random, odd=odd) for _ in range(random.choice([0, 1, 3, 6]))])
    removed = [rule for rule in base if random.random() < random.choice([0.3, 1])]
    come = [close_rule(random, odd=odd) for _ in range(random.choice([0, 1, 2, 4, 6]))]
    added = [rule for rule in distinct([*base, *come]) if rule not in base]
    changes = [RuleChange(added=rule in added, acl=rule) for rule in (*removed, *added)]
    random.shuffle(changes)
    return base, changes


def random_settings(random: Random, *, allow_everyone: bool) -> Settings:
    """Settings that change what is covered, and for whom."""
    return Settings(
        super_users=frozenset(random.choice([(), (), ("User:a",)])),
        allow_everyone=allow_everyone,
        documented=random.random() < 0.2,
        cidr=False,
    )
