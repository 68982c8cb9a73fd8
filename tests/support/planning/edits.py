"""Edits of the rules of one user, in each of which a consumer of his can go on."""

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclPermissionType, PatternType, ResourceType
from tests.support.builders.acls import acl


def reads(user: str, *numbers: int, kind: int = PatternType.LITERAL) -> list[StandardAcl]:
    """READ on a topic and a group of each number, `USER-NUMBER`."""
    return [
        acl(f"{user}-{number}", f"User:{user}", resource_type=resource, pattern_type=kind)
        for number in numbers
        for resource in (ResourceType.TOPIC, ResourceType.GROUP)
    ]


def edits(user: str) -> list[list[StandardAcl]]:
    """What is wanted after each edit, from five of `reads` on: topic and group 1 can be read in all of them."""
    resources = (ResourceType.TOPIC, ResourceType.GROUP)
    elsewhere = acl(f"{user}-1", f"User:{user}", "10.9.8.7", permission_type=AclPermissionType.DENY)
    return [
        reads(user, *range(1, 7)),  # two rules more
        reads(user, *range(1, 6), kind=PatternType.PREFIXED),  # every rule is another one
        [acl("*", f"User:{user}", resource_type=each) for each in resources],
        reads(user, 1),
        [*reads(user, 1), elsewhere],
        reads(user, *range(1, 6)),
    ]
