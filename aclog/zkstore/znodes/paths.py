"""Paths of znodes: ACLs, users, delegation tokens, and their change events (kafka.zk.ZkData, ZkAclStore).

ACLs of LITERAL patterns are at `/kafka-acl/<Type>/<name>`, those of PREFIXED patterns at
`/kafka-acl-extended/prefixed/<Type>/<name>`. Resource names are not escaped, so a name that is not valid in a
ZooKeeper path cannot have ACLs.
"""

import re

from attrs import frozen

from aclog.authorizer.acl import PatternType, ResourcePattern, ResourceType, code_name
from aclog.metalog.errors import DecodeError, EncodeError


@frozen(kw_only=True)
class AclTree:
    """The ACLs of one pattern type: the root of their znodes, and the parent of their change events."""

    pattern_type: PatternType
    root: str
    changes: str


LITERAL_TREE = AclTree(pattern_type=PatternType.LITERAL, root="/kafka-acl", changes="/kafka-acl-changes")
PREFIXED_TREE = AclTree(
    pattern_type=PatternType.PREFIXED, root="/kafka-acl-extended/prefixed", changes="/kafka-acl-extended-changes"
)
TREES = (LITERAL_TREE, PREFIXED_TREE)

CHANGE_PREFIX = "acl_changes_"
"""Name prefix of ACL change events; ZooKeeper appends the ten digits of the sequence number."""

USERS_PATH = "/config/users"
"""Parent of one znode per user, named by the percent-encoded user name."""
CONFIG_CHANGES_PATH = "/config/changes"
CONFIG_CHANGE_PREFIX = f"{CONFIG_CHANGES_PATH}/config_change_"
"""ZooKeeper appends ten digits."""

TOKENS_PATH = "/delegation_token/tokens"
"""Parent of one znode per delegation token, named by the token id."""
TOKEN_CHANGES_PATH = "/delegation_token/token_changes"  # noqa: S105  # a path
"""Parent of token change events; the data of each is a token id."""
TOKEN_CHANGE_PREFIX = f"{TOKEN_CHANGES_PATH}/token_change_"
"""ZooKeeper appends ten digits."""
KIP_TOKENS_PATH = "/tokenauth/tokens"
"""The path in KIP-48's text. No Kafka release uses it; tokens found there are read, but never written."""

SENSITIVE_ROOTS = (USERS_PATH, TOKENS_PATH)
"""Not world-readable under zookeeper.set.acl (ZkData.SensitiveRootPaths): SCRAM keys, and token owners and renewers."""

RESOURCE_TYPES = tuple(kind for kind in ResourceType if kind > ResourceType.ANY)

_DIRECTORIES: dict[int, str] = {
    kind: "".join(word.capitalize() for word in kind.name.split("_")) for kind in RESOURCE_TYPES
}
"""Topic, Group, Cluster, TransactionalId, DelegationToken, User (SecurityUtils.resourceTypeName)."""

LEGACY_GROUP_DIRECTORIES = ("ConsumerGroup", "CONSUMER_GROUP")
"""Names of the Group type in drafts of KIP-11; Kafka 3.9 reads neither."""

_TYPES: dict[str, ResourceType] = {
    **{type_name: ResourceType(kind) for kind, type_name in _DIRECTORIES.items()},
    **dict.fromkeys(LEGACY_GROUP_DIRECTORIES, ResourceType.GROUP),
}

# ZooKeeper validates UTF-16 code units (PathUtils.validatePath): a character above U+FFFF is two surrogates there, and
# surrogates are not allowed.
_INVALID_IN_PATH = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")


def type_directory(resource_type: int) -> str:
    """Return the name of the znode that is the parent of a type's resources.

    Raises:
        EncodeError: not a resource type that ACLs can have.

    """
    if resource_type not in _DIRECTORIES:
        kind = code_name(ResourceType, resource_type)
        raise EncodeError(f"resource type {kind} ({resource_type}): expected one of {', '.join(_DIRECTORIES.values())}")
    return _DIRECTORIES[resource_type]


def type_of_directory(name: str) -> ResourceType | None:
    """Return the resource type of a directory, legacy names included; None if the name is unknown."""
    return _TYPES.get(name)


def tree_of(pattern_type: int) -> AclTree:
    """Return the tree of a pattern type.

    Raises:
        EncodeError: neither LITERAL nor PREFIXED.

    """
    for tree in TREES:
        if tree.pattern_type == pattern_type:
            return tree
    kind = code_name(PatternType, pattern_type)
    raise EncodeError(f"pattern type {kind} ({pattern_type}): expected LITERAL or PREFIXED")


def resource_path(pattern: ResourcePattern) -> str:
    """Return the path of the znode with a resource's ACLs (ZkAclStore.path).

    Raises:
        EncodeError: a type or pattern type that ACLs cannot have, or a name that is not valid in a ZooKeeper path.

    """
    tree = tree_of(pattern.pattern_type)
    directory = type_directory(pattern.resource_type)
    problem = name_problem(pattern.name)
    if problem is not None:
        raise EncodeError(f"resource name {pattern.name!r}: {problem}")
    return f"{tree.root}/{directory}/{pattern.name}"


def name_problem(name: str) -> str | None:
    """Return why a resource name cannot be a znode name; None if it can."""
    if not name:
        return "expected a non-empty name"
    if "/" in name:
        return "expected no /, which separates the names in a ZooKeeper path"
    if name in {".", ".."}:
        return "expected neither . nor .., which ZooKeeper rejects as znode names"
    found = _INVALID_IN_PATH.search(name)
    if found is not None:
        return f"expected no U+{ord(found[0]):04X} (at {found.start()}), which ZooKeeper rejects in paths"
    return None


def pattern_of(path: str) -> ResourcePattern:
    """Return the resource of a znode's path: the inverse of `resource_path`, which also accepts legacy directories.

    Raises:
        DecodeError: not the path of a resource.

    """
    for tree in TREES:
        if path.startswith(f"{tree.root}/"):
            directory, _, name = path.removeprefix(f"{tree.root}/").partition("/")
            kind = type_of_directory(directory)
            if kind is not None and name and "/" not in name:
                return ResourcePattern(resource_type=kind, name=name, pattern_type=tree.pattern_type)
    raise DecodeError("expected the path of a resource, such as /kafka-acl/Topic/orders", path=path)


def legacy_paths(pattern: ResourcePattern) -> tuple[str, ...]:
    """Return the paths in legacy directories at which a resource may also have ACLs; only groups have any."""
    if pattern.resource_type != ResourceType.GROUP:
        return ()
    root = tree_of(pattern.pattern_type).root
    return tuple(f"{root}/{directory}/{pattern.name}" for directory in LEGACY_GROUP_DIRECTORIES)


def paths_of(pattern: ResourcePattern) -> tuple[str, ...]:
    """Return all paths at which a resource may have ACLs, the current one first.

    Raises:
        EncodeError: as `resource_path`.

    """
    return (resource_path(pattern), *legacy_paths(pattern))


def sequence_of(name: str) -> int | None:
    """Return the sequence number of an ACL change event; None if the name is not one of a change event."""
    digits = name.removeprefix(CHANGE_PREFIX)
    return int(digits) if digits != name and digits.isascii() and digits.isdigit() else None


def is_sensitive(path: str) -> bool:
    """Return whether only the owner of a znode may read it (ZkData.sensitivePath)."""
    return any(path == root or path.startswith(f"{root}/") for root in SENSITIVE_ROOTS)
