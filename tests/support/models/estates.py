"""Estates and requests from hypothesis: few characters, so that names nest, meet and miss one another often."""

from itertools import product

from attrs import frozen
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER

TYPES = [kind for kind in ResourceType if kind > ResourceType.ANY]
OPERATIONS = [operation for operation in AclOperation if operation > AclOperation.ANY]
ABOVE_STAR = ["a", "b", "-", "é", "\ue000", "\uffff", "😀", "😁"]
"""Characters of names that all sort above `*`, some of them otherwise by UTF-16 units than by code points."""
BELOW_STAR = ["!", "#", "\x00"]
SPECIAL_NAMES = ["", "*", "**", "*a", "f", "fooa", "foobar", "foo", "hardcode", "hard", "h", "kafka-cluster"]
PRINCIPALS = ["User:a", "User:b", "User:ANONYMOUS", "Group:a", "user:a", "User:", "User:a:b", ":x", "User:*x"]
RULE_PRINCIPALS = [*PRINCIPALS, "User:*", "User:*", "Group:*"]
HOSTS = ["10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:1", "fe80:0:0:0:0:0:0:1%1", "255.255.255.255"]
"""Clients, in Java's form."""
RULE_HOSTS = ["*", "*", "*", *HOSTS, "::1", "2001:DB8::1", "10.0.0.1/32", ""]
CIDR_HOSTS = [
    "10.0.0.0/8", "10.0.0.1/32", "10.0.0.3/31", "0.0.0.0/0", "::/0", "2001:db8::/32", "fe80::/10",
    "::ffff:10.0.0.1/120",
    "10.0.0.0/33", "10.0.0.0/", "example.org/24",
]  # fmt: skip
TEXTUAL_HOSTS = {
    "10.0.0.1": "10.0.0.1",
    "::ffff:10.0.0.1": "10.0.0.1",
    "::FFFF:0a00:0001": "10.0.0.1",
    "::1": "0:0:0:0:0:0:0:1",
    "0:0:0:0:0:0:0:1": "0:0:0:0:0:0:0:1",
    "[::1]": "0:0:0:0:0:0:0:1",
    "2001:DB8:0::0:1": "2001:db8:0:0:0:0:0:1",
    "2001:0db8::0001": "2001:db8:0:0:0:0:0:1",
    "fe80::1%1": "fe80:0:0:0:0:0:0:1%1",
    "::": "0:0:0:0:0:0:0:0",
    "::10.0.0.1": "0:0:0:0:0:0:a00:1",
}
"""Addresses as people write them, and as Java writes them."""


@frozen(kw_only=True)
class Request:
    """A question; `resource_name` is None for authorizeByResourceType; `host` is in Java's form."""

    principal: str
    host: str
    operation: int
    resource_type: int
    resource_name: str | None


@frozen(kw_only=True)
class Estate:
    """A cluster: its rules, no two alike, and its two properties as they stand in a file."""

    acls: tuple[StandardAcl, ...]
    super_users: str | None
    allow_everyone: str | None


def names(*, below_star: bool = True) -> st.SearchStrategy[str]:
    """Names of resources; with `below_star` also those that send a real 4.3.1 into its endless loop."""
    letters = st.sampled_from(ABOVE_STAR + BELOW_STAR if below_star else ABOVE_STAR)
    return st.one_of(st.sampled_from(SPECIAL_NAMES), st.text(letters, max_size=4), st.text(letters, max_size=1))


def rules(*, odd: bool = False, below_star: bool = True, cidr: bool = False) -> st.SearchStrategy[StandardAcl]:
    """Rules as CreateAcls lets them through; `odd` adds what only a record can carry, codes unknown to Kafka too."""
    plain = st.builds(
        StandardAcl,
        resource_type=st.sampled_from([TOPIC, TOPIC, TOPIC, GROUP, *TYPES]),
        resource_name=names(below_star=below_star).filter(lambda name: name != "" or odd),
        pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
        principal=st.sampled_from(RULE_PRINCIPALS),
        host=st.sampled_from([*RULE_HOSTS, *CIDR_HOSTS] if cidr else RULE_HOSTS),
        operation=st.sampled_from([AclOperation.ALL, AclOperation.READ, AclOperation.DESCRIBE, *OPERATIONS]),
        permission_type=st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY]),
    )
    if not odd:
        return plain
    strange = st.builds(
        StandardAcl,
        resource_type=st.sampled_from([*ResourceType, TOPIC, TOPIC, 99, -1]),
        resource_name=names(below_star=below_star),
        pattern_type=st.sampled_from([*PatternType, 77]),
        principal=st.sampled_from([*RULE_PRINCIPALS, "nocolon"]),
        host=st.sampled_from(RULE_HOSTS),
        operation=st.sampled_from([*AclOperation, 99, -1]),
        permission_type=st.sampled_from([*AclPermissionType, 9]),
    )
    return st.one_of(plain, strange)


def requests(*, odd: bool = False, below_star: bool = True) -> st.SearchStrategy[Request]:
    """Questions; `odd` adds operations ANY and UNKNOWN, and the principal `User:*`, on which Kafka throws."""
    return st.builds(
        Request,
        principal=st.sampled_from([*PRINCIPALS, "User:*"] if odd else PRINCIPALS),
        host=st.sampled_from(HOSTS),
        operation=st.sampled_from([*AclOperation] if odd else OPERATIONS),
        resource_type=st.sampled_from([TOPIC, TOPIC, GROUP, *TYPES]),
        resource_name=st.one_of(st.none(), names(below_star=below_star), names(below_star=below_star)),
    )


def estates(
    *, odd: bool = False, below_star: bool = True, cidr: bool = False, max_size: int = 25
) -> st.SearchStrategy[Estate]:
    """Estates with up to `max_size` rules."""
    return st.builds(
        Estate,
        acls=st.lists(
            rules(odd=odd, below_star=below_star, cidr=cidr), max_size=max_size, unique_by=str
        ).map(tuple),
        super_users=st.sampled_from([None, None, None, "", " User:b ; ;Group:a"]),
        allow_everyone=st.sampled_from([None, None, "true", " TRUE ", "yes"]),
    )  # fmt: skip


def every_request(names_asked: list[str | None], *, types: tuple[int, ...] = (TOPIC, GROUP)) -> list[Request]:
    """All combinations of principals, some hosts, all operations and these names: many questions from one draw."""
    return [
        Request(principal=principal, host=host, operation=operation, resource_type=kind, resource_name=name)
        for kind, name, principal, host, operation in product(types, names_asked, PRINCIPALS, HOSTS[:3], OPERATIONS)
    ]
