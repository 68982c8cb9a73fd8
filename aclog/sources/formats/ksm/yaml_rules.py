"""Rules as Kafka Security Manager's YAML: users, their resources by name, and for each a list of operations."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from attrs import evolve

from aclog.authorizer.acl import WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.sources.formats.enum_names import concrete
from aclog.sources.formats.ksm.ksm_rule import ksm_rule
from aclog.sources.formats.located_rule import LocatedRule
from aclog.sources.formats.node import Node
from aclog.sources.formats.source_file import SourceFile
from aclog.sources.formats.statement import Statement, on_cluster

_TYPES: Mapping[str, ResourceType] = MappingProxyType(
    {
        "topics": ResourceType.TOPIC,
        "groups": ResourceType.GROUP,
        "transactional_ids": ResourceType.TRANSACTIONAL_ID,
        "clusters": ResourceType.CLUSTER,
    }
)
_OPERATIONS = {
    value.name.replace("_", "").lower(): value
    for value in concrete(AclOperation)
    if value <= AclOperation.IDEMPOTENT_WRITE  # KSM knows no later ones
}
MARKS = (b"user", b"topics", b"groups", b"transactional", b"clusters")
"""One of them stands in every file of KSM, but for one in which all is misspelled."""
_PERMISSIONS = {value.name.lower(): value for value in concrete(AclPermissionType)}
_HELPERS = MappingProxyType(
    {
        "consume": (AclOperation.DESCRIBE, AclOperation.READ),
        "produce": (AclOperation.DESCRIBE, AclOperation.CREATE, AclOperation.WRITE),
    }
)
"""What they mean on a topic; `produce` also creates topics anywhere."""
_BLANKS = "".join(map(chr, range(ord(" ") + 1)))
"""What Java's trim takes off."""


def is_ksm(documents: Sequence[Node]) -> bool:
    """Return whether some user has resources by name, which users of other tools do not have.

    With slips in keys as well, if what they hold are operations: `rules` refuses them.
    """
    users = (value for document in documents for value in _members(document).values())
    return any(_has_resources(user) for each in users for user in _members(each).values())


def _has_resources(user: Node) -> bool:
    """Return whether a list stands under a name, or operations do, of which one of the two may be a slip."""
    named = ((key, entries) for key, value in _members(user).items() for entries in _members(value).values())
    return any(
        (key in _TYPES) + isinstance(entries.value, tuple) + _is_operations(entries) > 1 for key, entries in named
    )


def _is_operations(entries: Node) -> bool:
    items = entries.value if isinstance(entries.value, tuple) else (entries,)
    return bool(items) and all(
        isinstance(each.value, str) and each.raw.split(",")[0].lower() in {*_OPERATIONS, *_HELPERS} for each in items
    )


def _members(node: Node) -> Mapping[str, Node]:
    return node.value if isinstance(node.value, dict) else {}


def rules(file: SourceFile) -> Iterator[LocatedRule]:
    """Yield the rules of a file. Raises ConfigError: what KSM refuses, or leaves out unsaid; with its line."""
    documents = file.documents
    if len(documents) != 1:
        raise file.error(
            documents[1].line if documents else 1, f"{len(documents)} YAML documents: expected one, with users"
        )
    root = documents[0]
    root.check_keys(("users",), "a file of Kafka Security Manager")
    for name, user in root.required("users").mapping("users").items():
        user.check_keys(tuple(_TYPES), f"user {name[:60]!r}")
        for key, resources in user.mapping().items():
            if not resources.is_null:
                yield from _of_resources(f"User:{name}", _TYPES[key], resources)


def _of_resources(principal: str, resource_type: ResourceType, resources: Node) -> Iterator[LocatedRule]:
    for key, entries in resources.mapping("resources").items():
        name = key.strip(_BLANKS)
        prefix = name.endswith("*") and name != "*"  # a star alone is the name of all resources
        for entry in entries.items(f"{key[:60]!r}"):
            base = Statement(
                where=entry,
                resource_type=resource_type,
                name=name[:-1] if prefix else name,
                operation=AclOperation.ALL,
                pattern_type=PatternType.PREFIXED if prefix else PatternType.LITERAL,
            )
            for statement in _said(base):
                yield ksm_rule(statement, principal)


def _said(base: Statement) -> Iterator[Statement]:
    """Yield what `Read`, `Consume`, `Produce` or `Write,Deny,10.0.0.1` says of a resource."""
    node, on_topic = base.where, base.resource_type == ResourceType.TOPIC
    parts = node.text("an operation").split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()  # as Java's split does
    operation = parts[0].lower()
    if len(parts) == 1 and on_topic and operation in _HELPERS:
        yield from (evolve(base, operation=each) for each in _HELPERS[operation])
        if operation == "produce":
            yield evolve(on_cluster(node, AclOperation.CREATE), name=WILDCARD)
        return
    if operation not in _OPERATIONS:
        names = ", ".join([*_OPERATIONS, *(_HELPERS if on_topic else ())])
        raise node.error(f"the operation {parts[0][:40]!r} is not one of {names}, in any case")
    if len(parts) == 1:
        yield evolve(base, operation=_OPERATIONS[operation])
        return
    permission = _PERMISSIONS.get(parts[1].lower())
    if len(parts) != 3 or permission is None:
        raise node.error(f"{node.raw[:60]!r}: expected OPERATION or OPERATION,Allow,HOST or OPERATION,Deny,HOST")
    yield evolve(base, operation=_OPERATIONS[operation], permission_type=permission, host=parts[2])
