"""Random pairs of policies with all oddities that rules and settings can have."""

from collections.abc import Sequence
from hashlib import blake2b
from random import Random
from uuid import UUID

from attrs import evolve

from aclog.analysis.policy import Policy
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acl import StandardAclWithId as Entry
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from tests.support.builders.acls import record_of, removal_of

NAMES = (
    "a",
    "ab",
    "abc",
    "abd",
    "b",
    "b.x",
    "b.xy",
    "*",
    "*a",
    "*ab",
    "!",
    "!b",
    "é",
    "\ue000",
    "😀",
    "😀a",
    "c c",
    "kafka-cluster",
)
PRINCIPALS = ("User:a", "User:b", "User:c", "Group:g", "User:", "User:a:b", "User:*", "User:*", "User:*")
ADDRESSES = (
    "10.0.0.1",
    "10.0.0.2",
    "10.0.1.1",
    "0:0:0:0:0:0:0:1",
    "fe80:0:0:0:0:0:0:1",
    "fe80:0:0:0:0:0:0:1%1",
    "0.0.0.0",
)
RANGES = (
    "10.0.0.0/30", "10.0.0.0/8", "10.0.0.1/32", "0.0.0.0/0", "10.0.0.77/24", "::/0",
     "fe80::/10", "fe80::1/128", "::ffff:10.0.0.0/104", "::1/127",
)  # fmt: skip
NO_ADDRESSES = ("::1", "h.prod", "10.0.0.*", "2001:DB8::1", "10.0.0.0/33", "", "010.0.0.1")
OPERATIONS = [operation for operation in AclOperation if operation >= AclOperation.ALL]
TYPES = [kind for kind in ResourceType if kind > ResourceType.ANY]
NAME_LETTERS = "ab*.!é\ue000😀"


def random_rule(random: Random, *, odd: int = 3, cidr: bool = False) -> StandardAcl:
    """One rule; `odd` of 100 are such as only a record can carry."""
    chance, choice = random.random, random.choice
    kind = choice([ResourceType.TOPIC] * 6 + TYPES)
    name = choice(NAMES) if chance() < 0.8 else "".join(random.choices(NAME_LETTERS, k=random.randint(1, 4)))
    if kind == ResourceType.CLUSTER and chance() < 0.7:
        name = "kafka-cluster"
    rule = StandardAcl(
        resource_type=kind,
        resource_name=name,
        pattern_type=choice([PatternType.LITERAL, PatternType.PREFIXED]),
        principal=choice(PRINCIPALS),
        host=_host(random, cidr=cidr),
        operation=choice([AclOperation.ALL, AclOperation.READ, AclOperation.DESCRIBE, *OPERATIONS]),
        permission_type=choice([AclPermissionType.ALLOW] * 3 + [AclPermissionType.DENY]),
    )
    return _odd(rule, random) if random.randrange(100) < odd else rule


def _host(random: Random, *, cidr: bool) -> str:
    turn = random.random()
    if turn < 0.55:
        return "*"
    if turn < 0.75:
        return random.choice(ADDRESSES)
    return random.choice(RANGES) if cidr or turn < 0.8 else random.choice(ADDRESSES + NO_ADDRESSES)


def _odd(rule: StandardAcl, random: Random) -> StandardAcl:
    values: dict[str, Sequence[object]] = {
        "resource_type": [0, 1, 99],
        "resource_name": [""],
        "pattern_type": [0, 1, 2, 77],
        "principal": ["nocolon", ":x"],
        "operation": [0, 1, 99],
        "permission_type": [0, 1, 9],
    }
    field = random.choice(list(values))
    return evolve(rule, **{field: random.choice(values[field])})


def random_settings(random: Random, *, cidr: bool = False, plain: float = 0.6) -> Settings:
    """Settings; `plain` is the share of those with neither super users nor allow.everyone.if.no.acl.found."""
    if random.random() < plain:
        return Settings(cidr=cidr)
    return Settings(
        super_users=frozenset(random.sample(["User:a", "User:b", "Group:g", "User:root"], random.randrange(3))),
        allow_everyone=random.random() < 0.4,
        documented=random.random() < 0.2,
        cidr=cidr,
    )


def distinct(rules: Sequence[StandardAcl]) -> list[StandardAcl]:
    """Rules without those that Kafka takes for another one (it knows no codes beyond its own)."""
    return list({str(rule): rule for rule in rules}.values())


def image_of(rules: Sequence[StandardAcl]) -> AclsImage:
    """An image of rules, under ids made of the rules themselves: the same rule has the same id in each image."""
    return AclsImage.from_acls(entry_of(rule) for rule in rules)


def entry_of(rule: StandardAcl) -> Entry:
    """A rule under an id of its own."""
    return Entry(id=UUID(bytes=blake2b(str(rule).encode(), digest_size=16).digest()), acl=rule)


def random_pair(
    random: Random, *, most: int = 12, more: int = 3, odd: int = 3, kafka: bool = False
) -> tuple[Policy, Policy]:
    """Two policies that have much in common; the second one's image is sometimes made of records after the first.

    With `kafka` neither has a setting that the real StandardAuthorizer has not.
    """
    cidr = not kafka and random.random() < 0.2
    old = distinct([random_rule(random, odd=odd, cidr=cidr) for _ in range(random.randint(0, most))])
    common = [rule for rule in old if random.random() < 0.8]
    come = [random_rule(random, odd=odd, cidr=cidr) for _ in range(random.randint(0, more))]
    new = distinct([*common, *come])
    before = random_settings(random, cidr=cidr)
    after = before if random.random() < 0.75 else random_settings(random, cidr=cidr != (random.random() < 0.2))
    if kafka:
        before, after = (evolve(each, documented=False, cidr=False) for each in (before, after))
    image = image_of(old)
    if random.random() < 0.5:
        removals = [removal_of(entry_of(rule)) for rule in old if rule not in new]
        records = [record_of(entry_of(rule)) for rule in new if rule not in old]
        changed = image.apply([*removals, *records])
    else:
        changed = image_of(new)
    return Policy(acls=image, settings=before), Policy(acls=changed, settings=after)


def changed_rules(old: Policy, new: Policy) -> list[tuple[bool, StandardAcl]]:
    """The rules that only one policy has: True and the rule if it was added, False and the rule if it was removed."""
    before, after = ({entry.acl for entry in policy.acls} for policy in (old, new))
    ordered = sorted((before - after) | (after - before), key=str)
    return [(rule in after, rule) for rule in ordered]
