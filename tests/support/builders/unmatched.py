"""ACLs that match nobody, each with what is told about it."""

from aclog.authorizer.codes import AclOperation, ResourceType
from tests.support.builders.acls import acl

OWNER = acl("owner1", resource_type=ResourceType.USER, operation=AclOperation.CREATE_TOKENS)
UNMATCHED = [
    (OWNER, "never matches: the USER resource 'owner1' is not a principal"),
    (acl(host="localhost"), "never matches: the host 'localhost' is neither * nor an address"),
    (acl(host=""), "never matches: the host '' is neither * nor an address"),
    (acl(host="10.0.0.0/99"), "neither * nor an address"),
    (acl(host="::1"), "only 0:0:0:0:0:0:0:1 matches that address"),
    (acl(host="10.0.0.0/8"), "the host 10.0.0.0/8 is a CIDR range, which matches clients from Kafka 4.4 on only"),
    (
        acl(principal="User:bob,User:eve"),
        "probably never matches: User:bob,User:eve is one principal whose name has a comma",
    ),
]
