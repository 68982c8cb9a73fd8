"""Estates and requests in bulk: hypothesis draws a shape and a seed, a generator makes hundreds of requests of it.

Names come from few characters and requests from the names of the rules, changed a little, so that literal names,
prefixes and `*` meet and just miss one another.
"""

from random import Random
from uuid import UUID

from attrs import evolve, frozen
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from tests.support.kafka.oracle import Ask, Estate

ALPHABETS = ("ab", "a", "a*", "a.-_", "aé\ue000😀\uffff", "abcdefghijklmnopqrstuvwxyz", "h")
SPECIAL = ("*", "", "hardcode", "hard", "h", "**", "*a", "kafka-cluster")
ODD_PATTERNS = (PatternType.UNKNOWN, PatternType.ANY, PatternType.MATCH, 5, 77, -1)
"""Pattern types that only a record can carry; Kafka reads a code that it does not know as UNKNOWN."""
HOSTS = ("10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:1")
RANGE_CLIENTS = (
    *HOSTS, "10.1.2.3", "10.1.2.130", "192.168.7.7", "0.0.0.0", "2001:db8:1:2:0:0:0:3", "fe80:0:0:0:0:0:0:1%1",
)  # fmt: skip
RANGES = (
    "10.0.0.0/8", "10.1.2.3/8", "10.0.0.0/7", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.128/25", "10.1.2.3/32", "0.0.0.0/0",
    "192.168.0.0/16", "0.0.0.0/32", "10.0.0.0/33", "10/8", "a/b",
    "::/0", "2001:db8::/32", "2001:db8::1/32", "2001:db8:1::/48", "2001:db8:0:0:0:0:0:1/128", "fe80::/10",
    "::ffff:a00:0/104", "::/129", "host:80/24",
)  # fmt: skip
"""Nested ranges and others, ranges with bits below the prefix, and what is no range."""
RARE_RANGES = (
    "010.1.2.3/32", "[2001:db8::]/32", "2001:db8::/+32", "00002001:db8::/32", "fe80::1%1/64", "::ffff:10.0.0.0/104",
    "::/\u0661",
)  # fmt: skip
"""Spellings that hardly anybody uses, and nearly ranges."""
ODD_HOSTS = ("::1", "10.0.0.1/32", "", "2001:DB8::1")
TYPES = [kind for kind in ResourceType if kind > ResourceType.ANY]
OPERATIONS = [operation for operation in AclOperation if operation > AclOperation.ANY]


@frozen(kw_only=True)
class Shape:
    """How an estate looks; the seed makes the rest. Shares are of 100."""

    seed: int
    rules: int
    alphabet: str
    longest: int
    principals: int
    operations: int
    types: int
    prefixed: int
    deny: int
    special: int
    any_host: int
    odd: int
    changes: int
    super_users: str | None
    allow_everyone: str | None
    odd_patterns: int = 0
    ranges: int = 0
    """Of hosts; then clients come from addresses in and out of them."""


SHARES = (0, 5, 20, 50, 80, 100)
CHOICES = {
    "rules": (0, 1, 2, 3, 6, 12, 25, 50, 100, 300),
    "alphabet": ALPHABETS,
    "longest": (1, 2, 4, 9, 40),
    "principals": (1, 2, 5, 40),
    "operations": (1, 2, 4, len(OPERATIONS)),
    "types": (1, 1, 2, len(TYPES)),
    "prefixed": SHARES,
    "deny": SHARES,
    "special": (0, 5, 20, 60),
    "any_host": (100, 80, 20),
    "odd": (0, 0, 0, 3, 20),
    "changes": (0, 0, 10, 50, 100),
    "super_users": (None, None, "", " User:u1 ; ;Group:u0", "User:*"),
    "allow_everyone": (None, None, "true", " TRUE ", "yes"),
    "odd_patterns": (0, 0, 0, 20),
}
"""What a shape is drawn from; small estates are as likely as large ones."""
ODD = {
    "rules": (2, 3, 4, 6, 9, 12, 25, 50),
    "alphabet": ("a!# ", "!*", "a+*!", "a*", "ab", "! ", "aé\ue000😀\uffff!"),
    "longest": (1, 2, 2, 4),
    "principals": (1, 1, 2),
    "operations": (1, 1, 2),
    "types": (1, 1, 2),
    "deny": (0, 0, 5, 20, 50),
    "special": (20, 60, 80),
    "any_host": (100, 100, 80),
    "odd": (0, 0, 0, 3),
    "odd_patterns": (20, 50, 80, 100),
}
"""Choices for rules of odd pattern types, whose names meet at `*`, at the empty name and below `*`."""

RANGED = {
    "ranges": (5, 20, 50, 100),
    "any_host": (100, 50),
    "alphabet": ("ab", "a", "a*"),
    "longest": (1, 2, 4),
    "principals": (1, 2, 5),
}
"""Choices for rules for ranges: few names and principals, so that many rules meet."""


def shapes(**only: tuple[object, ...]) -> st.SearchStrategy[Shape]:
    """Shapes for hypothesis; `only` narrows the choice of a field."""
    choices = {name: st.sampled_from(values) for name, values in (CHOICES | only).items()}
    return st.builds(Shape, seed=st.integers(0, 2**32 - 1), **choices)


def random_shape(random: Random, **only: tuple[object, ...]) -> Shape:
    """A shape without hypothesis, for long campaigns; `only` narrows the choice of a field."""
    choices = CHOICES | only
    return Shape(seed=random.getrandbits(32), **{name: random.choice(values) for name, values in choices.items()})


class Maker:
    """One estate of a shape, and requests to it."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.random = shape, Random(shape.seed)
        random = self.random
        users = [f"User:u{number}" for number in range(shape.principals)]
        self.principals = [*users, "Group:u0", "User:ANONYMOUS", "user:u0", "User:u0:b", "User:"]
        self.rule_principals = [*users, *users, *self.principals, "User:*", "User:*", "Group:*"]
        self.operations = random.sample(OPERATIONS, shape.operations)
        self.types = random.sample(TYPES, shape.types)
        # no two that Kafka takes for the same rule: it has one value, UNKNOWN, for all codes that it does not know
        rules = list({str(acl): acl for acl in (self._rule() for _ in range(shape.rules))}.values())
        acls = [StandardAclWithId(id=UUID(int=random.getrandbits(128)), acl=acl) for acl in rules]
        self.estate = Estate(acls=acls, super_users=shape.super_users, allow_everyone=shape.allow_everyone)
        self._askers = [*self.principals, *(["User:*"] if shape.odd else ())]
        self._clients = RANGE_CLIENTS if shape.ranges else HOSTS
        self._any_operation = [*AclOperation] if shape.odd else OPERATIONS

    def _chance(self, share: int) -> bool:
        return self.random.randrange(100) < share

    def _name(self) -> str:
        if self._chance(self.shape.special):
            return self.random.choice(SPECIAL)
        length = self.random.randint(1, self.shape.longest)
        return "".join(self.random.choices(self.shape.alphabet, k=length))

    def _pattern(self) -> int:
        if self._chance(self.shape.odd_patterns):
            return self.random.choice(ODD_PATTERNS)
        return PatternType.PREFIXED if self._chance(self.shape.prefixed) else PatternType.LITERAL

    def _rule(self) -> StandardAcl:
        choice = self.random.choice
        acl = StandardAcl(
            resource_type=choice(self.types),
            resource_name=self._name(),
            pattern_type=self._pattern(),
            principal=choice(self.rule_principals),
            host="*" if self._chance(self.shape.any_host) else choice(HOSTS),
            operation=choice([*self.operations, AclOperation.ALL]),
            permission_type=AclPermissionType.DENY if self._chance(self.shape.deny) else AclPermissionType.ALLOW,
        )
        if self.shape.ranges and self._chance(self.shape.ranges):
            acl = evolve(acl, host=choice(RARE_RANGES if self._chance(5) else RANGES))
        return self._odd(acl) if self._chance(self.shape.odd) else acl

    def _odd(self, acl: StandardAcl) -> StandardAcl:
        """What only a record can carry, codes that Kafka does not know among them."""
        choice = self.random.choice
        return evolve(
            acl,
            resource_type=choice([acl.resource_type, acl.resource_type, 0, 99]),
            pattern_type=choice([*PatternType, 77]),
            principal=choice([*self.rule_principals, "nocolon"]),
            host=choice([acl.host, *ODD_HOSTS]),
            operation=choice([*AclOperation, 99]),
            permission_type=choice([*AclPermissionType, 9]),
        )

    def asks(self, count: int) -> list[Ask]:
        """That many requests: two in three begin with a rule and change something, the rest are from the blue."""
        return [self._aimed() if self.estate.acls and self.random.randrange(3) else self._blind() for _ in range(count)]

    def _blind(self) -> Ask:
        choice = self.random.choice
        operation = choice(self.operations if self.random.randrange(3) else self._any_operation)
        return self._ask(choice(self._askers), choice(self._clients), operation, choice(TYPES), self._name())

    def _aimed(self) -> Ask:
        random = self.random
        acl = random.choice(self.estate.acls).acl
        asker, host, operation, kind = acl.principal, acl.host, acl.operation, acl.resource_type
        turn = random.randrange(10)
        if turn == 0 or asker not in self.principals:
            asker = random.choice(self._askers)
        if turn == 1 or host not in self._clients:
            host = random.choice(self._clients)
        if 2 <= turn <= 4 or operation not in self._any_operation:
            operation = random.choice(self._any_operation)
        if turn == 5 or kind not in TYPES:
            kind = random.choice(self.types)
        return self._ask(asker, host, operation, kind, self._name_near(acl.resource_name))

    def _ask(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> Ask:
        by_type = self.random.randrange(10) == 0
        return Ask(by_type, principal, host, operation, resource_type, "" if by_type else name)

    def _name_near(self, name: str) -> str:
        """A name at an edge: that of a rule, one character more or less or another."""
        random = self.random
        turn = random.randrange(8)
        if turn == 0:
            return name[:-1]
        if turn == 1:
            return name[:-1] + random.choice(self.shape.alphabet)
        if turn <= 4:
            return name + random.choice(self.shape.alphabet) * random.randint(1, 2)
        return name
