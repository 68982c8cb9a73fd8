"""Where ZooKeeper holds rules and their change events (kafka.zk.ZkAclStore, ZkAclChangeStore). Pure.

Literal rules are at `/kafka-acl/<Type>/<name>`, prefixed ones at `/kafka-acl-extended/prefixed/<Type>/<name>`.
A name stands in a path as it is: one that a path cannot hold cannot have rules.
"""

import re

from attrs import frozen

from aclog.authorizer.acl import PatternType, ResourcePattern, ResourceType, code_name
from aclog.metalog.errors import DecodeError, EncodeError


@frozen(kw_only=True)
class AclTree:
    """The rules of one pattern type, and the node whose children tell of their changes."""

    pattern_type: PatternType
    root: str
    changes: str


LITERAL_TREE = AclTree(pattern_type=PatternType.LITERAL, root="/kafka-acl", changes="/kafka-acl-changes")
PREFIXED_TREE = AclTree(
    pattern_type=PatternType.PREFIXED, root="/kafka-acl-extended/prefixed", changes="/kafka-acl-extended-changes"
)
TREES = (LITERAL_TREE, PREFIXED_TREE)

CHANGE_PREFIX = "acl_changes_"
"""What the name of a change event begins with; ten digits that ZooKeeper counts follow."""

RESOURCE_TYPES = tuple(kind for kind in ResourceType if kind > ResourceType.ANY)

_DIRECTORIES: dict[int, str] = {
    kind: "".join(word.capitalize() for word in kind.name.split("_")) for kind in RESOURCE_TYPES
}
"""Topic, Group, Cluster, TransactionalId, DelegationToken, User (SecurityUtils.resourceTypeName)."""

LEGACY_GROUP_DIRECTORIES = ("ConsumerGroup", "CONSUMER_GROUP")
"""What KIP-11 called a group's rules before its first release did; Kafka 3.9 looks into neither."""

_TYPES: dict[str, ResourceType] = {
    **{type_name: ResourceType(kind) for kind, type_name in _DIRECTORIES.items()},
    **dict.fromkeys(LEGACY_GROUP_DIRECTORIES, ResourceType.GROUP),
}

_NOT_IN_A_PATH = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")
"""ZooKeeper's PathUtils.validatePath; it looks at UTF-16 units, so what is beyond U+FFFF is out with its surrogates."""


def type_directory(resource_type: int) -> str:
    """The name of the node above a type's resources.

    Raises:
        EncodeError: a type that no rule can have.

    """
    if resource_type not in _DIRECTORIES:
        kind = code_name(ResourceType, resource_type)
        raise EncodeError(f"resource type {kind} ({resource_type}): expected one of {', '.join(_DIRECTORIES.values())}")
    return _DIRECTORIES[resource_type]


def type_of_directory(name: str) -> ResourceType | None:
    """The type whose rules are below a node of this name; None for a name that says nothing."""
    return _TYPES.get(name)


def tree_of(pattern_type: int) -> AclTree:
    """The tree with the rules of a pattern type.

    Raises:
        EncodeError: neither LITERAL nor PREFIXED.

    """
    for tree in TREES:
        if tree.pattern_type == pattern_type:
            return tree
    kind = code_name(PatternType, pattern_type)
    raise EncodeError(f"pattern type {kind} ({pattern_type}): expected LITERAL or PREFIXED")


def resource_path(pattern: ResourcePattern) -> str:
    """The node with the rules of a resource (ZkAclStore.path).

    Raises:
        EncodeError: a type or pattern type that no rule has; a name that a path cannot hold.

    """
    tree = tree_of(pattern.pattern_type)
    directory = type_directory(pattern.resource_type)
    problem = name_problem(pattern.name)
    if problem is not None:
        raise EncodeError(f"resource name {pattern.name!r}: {problem}")
    return f"{tree.root}/{directory}/{pattern.name}"


def name_problem(name: str) -> str | None:
    """Why ZooKeeper cannot hold the rules of a resource of this name; None where it can."""
    if not name:
        return "expected a name that is not empty"
    if "/" in name:
        return "expected no /, which parts the names in a path"
    if name in {".", ".."}:
        return "expected neither . nor .., which a path of ZooKeeper does not take"
    found = _NOT_IN_A_PATH.search(name)
    if found is not None:
        return f"expected no U+{ord(found[0]):04X} (at {found.start()}), which a path of ZooKeeper does not take"
    return None


def pattern_of(path: str) -> ResourcePattern:
    """The resource whose rules are in a node; the way back from `resource_path`, legacy directories included.

    Raises:
        DecodeError: no node of a resource.

    """
    for tree in TREES:
        if path.startswith(f"{tree.root}/"):
            directory, _, name = path.removeprefix(f"{tree.root}/").partition("/")
            kind = type_of_directory(directory)
            if kind is not None and name and "/" not in name:
                return ResourcePattern(resource_type=kind, name=name, pattern_type=tree.pattern_type)
    raise DecodeError("expected a node of a resource, such as /kafka-acl/Topic/orders", path=path)


def legacy_paths(pattern: ResourcePattern) -> tuple[str, ...]:
    """Other nodes in which rules of this resource may be, from before names were settled."""
    if pattern.resource_type != ResourceType.GROUP:
        return ()
    root = tree_of(pattern.pattern_type).root
    return tuple(f"{root}/{directory}/{pattern.name}" for directory in LEGACY_GROUP_DIRECTORIES)


def paths_of(pattern: ResourcePattern) -> tuple[str, ...]:
    """Every node that may hold rules of a resource; its own first. Raises EncodeError as `resource_path`."""
    return (resource_path(pattern), *legacy_paths(pattern))


def sequence_of(name: str) -> int | None:
    """The number of a change event; None for a node that is none."""
    digits = name.removeprefix(CHANGE_PREFIX)
    return int(digits) if digits != name and digits.isascii() and digits.isdigit() else None
