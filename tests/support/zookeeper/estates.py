"""Estates that ZooKeeper can hold, and requests about them: few characters, so that names nest and meet often."""

from collections.abc import Sequence
from random import Random

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from tests.support.zookeeper.real_acl_authorizer import Ask

TYPES = [kind for kind in ResourceType if kind > ResourceType.ANY]
OPERATIONS = [code for code in AclOperation if AclOperation.ANY < code < AclOperation.TWO_PHASE_COMMIT]
"""Those of Kafka 3.9."""
LETTERS = ["a", "b", "-", "é", "\uffef", "!", "#", "%", "*", " ", ":", "."]
NAMES = ["*", "**", "*a", "f", "fooa", "foobar", "foo", "hardcode", "h", "kafka-cluster", "%2F", "...", "User:a", "a b"]
PRINCIPALS = [
    "User:a",
    "User:b",
    "User:ANONYMOUS",
    "Group:a",
    "user:a",
    "User:",
    "User:a:b",
    ":x",
    "User:*x",
    "User:é😀",
]
RULE_PRINCIPALS = [*PRINCIPALS, "User:*", "User:*", "User:*", "Group:*", 'User:"\\\u2028\x00\x7f</']
HOSTS = ["10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:1"]
RULE_HOSTS = [*["*"] * 8, *HOSTS, "::1", "10.0.0.0/8", "", "example.org", "é"]
SUPER_USERS = [None, None, "User:b", " User:b ; Group:a;", "User:*"]
ALLOW_EVERYONE = [None, None, "true", " TRUE ", "false"]


def name(random: Random) -> str:
    """A name that a path can hold."""
    text = random.choice(NAMES) if random.randrange(2) else "".join(random.choices(LETTERS, k=random.randint(1, 4)))
    return "a" if text in {".", ".."} else text


def rule(random: Random, types: Sequence[ResourceType]) -> StandardAcl:
    """A rule that Kafka 3.9 takes."""
    kind = random.choice(types)
    return StandardAcl(
        resource_type=kind,
        resource_name="kafka-cluster" if kind == ResourceType.CLUSTER else name(random),
        pattern_type=random.choice([PatternType.LITERAL, PatternType.PREFIXED]),
        principal=random.choice(RULE_PRINCIPALS),
        host=random.choice(RULE_HOSTS),
        operation=random.choice([AclOperation.ALL, AclOperation.READ, AclOperation.DESCRIBE, *OPERATIONS]),
        permission_type=AclPermissionType.DENY if random.randrange(4) == 0 else AclPermissionType.ALLOW,
    )


def estate(random: Random, most: int = 60) -> list[StandardAcl]:
    """Rules, no two alike, on one type or on all."""
    types = [random.choice(TYPES)] if random.randrange(2) else TYPES
    count = random.randint(0, random.choice([10, most]))
    return list(dict.fromkeys(rule(random, types) for _ in range(count)))


def properties(random: Random) -> dict[str, str]:
    """Super users and allow.everyone.if.no.acl.found, or neither."""
    values = {
        "super.users": random.choice(SUPER_USERS),
        "allow.everyone.if.no.acl.found": random.choice(ALLOW_EVERYONE),
    }
    return {key: value for key, value in values.items() if value is not None}


def asks(random: Random, acls: Sequence[StandardAcl], count: int) -> list[Ask]:
    """Requests, most of them near the rules; one in five is for authorizeByResourceType, some are malformed."""
    return [_ask(random, acls) for _ in range(count)]


def _ask(random: Random, acls: Sequence[StandardAcl]) -> Ask:
    near = random.choice(acls) if acls and random.randrange(4) else rule(random, TYPES)
    resource = near.resource_name + random.choice(["", "", "x", "*"]) if random.randrange(3) else name(random)
    operation = near.operation if random.randrange(2) else random.choice([*OPERATIONS, *AclOperation])
    by_type = random.randrange(5) == 0
    kind = near.resource_type if random.randrange(8) else random.choice([*ResourceType])
    if kind == ResourceType.ANY and not by_type:
        kind = ResourceType.UNKNOWN  # Kafka's ResourcePattern cannot be of ANY
    return Ask(
        principal=near.principal if random.randrange(2) else random.choice([*PRINCIPALS, "User:*"]),
        host=random.choice([near.host if near.host in HOSTS else HOSTS[0], *HOSTS]),
        operation=operation,
        resource_type=kind,
        name=None if by_type else random.choice(["", resource, resource, resource, resource]),
    )
