"""Statements about topics, groups and transactional ids (AclsBindingsBuilder)."""

from collections.abc import Iterator

from aclog.authorizer.acl import WILDCARD, AclOperation, PatternType, ResourceType
from aclog.sources.formats.node import Node
from aclog.sources.formats.plain_text import plain_text
from aclog.sources.formats.statement import Statement


def on_topic(
    where: Node, name: str, *operations: AclOperation, pattern_type: PatternType = PatternType.LITERAL
) -> Iterator[Statement]:
    """Yield statements about a topic, or a prefix."""
    yield from _on(where, ResourceType.TOPIC, name, pattern_type, operations)


def on_group(
    where: Node, name: str, *operations: AclOperation, pattern_type: PatternType = PatternType.LITERAL
) -> Iterator[Statement]:
    """Yield statements about a group, or a prefix."""
    yield from _on(where, ResourceType.GROUP, name, pattern_type, operations)


def on_starred(where: Node, resource_type: ResourceType, name: str, *operations: AclOperation) -> Iterator[Statement]:
    """Yield statements about a name, or about a prefix if it ends in a star; a star alone is every name."""
    if len(name) > 1 and name.endswith(WILDCARD):
        yield from _on(where, resource_type, name.removesuffix(WILDCARD), PatternType.PREFIXED, operations)
    else:
        yield from _on(where, resource_type, name, PatternType.LITERAL, operations)


def _on(
    where: Node, resource_type: ResourceType, name: str, pattern_type: PatternType, operations: tuple[AclOperation, ...]
) -> Iterator[Statement]:
    for operation in operations:
        yield Statement(
            where=where, resource_type=resource_type, name=name, pattern_type=pattern_type, operation=operation
        )


def optional_text(of: Node, key: str, default: str) -> tuple[Node, str]:
    """Return a member as text, and where it stands; the default if it is missing or null. Raises as plain_text."""
    found = of.get(key)
    return (of, default) if found is None else (found, plain_text(found, key))


def listed(of: Node, key: str) -> tuple[Node, ...]:
    """Return the items of a list; none if it is missing or null. Raises ConfigError: no list, or an item is null."""
    found = of.get(key)
    if found is None:
        return ()
    for item in found.items(key):
        if item.is_null:
            raise item.error(f"an item of {key} is null")
    return found.items(key)
