"""Values of a test in a file: operations, lists of one or more, and texts that something parses."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from aclog.analysis.regions.operations import REQUESTED
from aclog.analysis.rule_tests.tested_resource import TYPES, parse_resource
from aclog.authorizer.acl import AclOperation, ResourcePattern, parse_name
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.node import Node

_Value = TypeVar("_Value")

_OPERATIONS = tuple(operation for operation in AclOperation if operation >= AclOperation.ALL)


def operation_of(text: str, node: Node) -> AclOperation:
    """Return the operation of that name. Raises ConfigError: there is none; `node` is its value, for the place."""
    try:
        return parse_name(_OPERATIONS, text)
    except ConfigError as error:
        folded = text.upper().replace("-", "_") if text.isascii() else ""
        near = get_close_matches(folded, [each.name for each in _OPERATIONS], 1)
        what = f"{text[:40]!r}: did you mean {near[0]}?" if near else str(error)
        raise node.error(f"operation {what}") from error


def mask_of(operation: AclOperation) -> int:
    """Return an operation as a mask (aclog.analysis.regions.operations); ALL is each of the 13."""
    return REQUESTED if operation is AclOperation.ALL else 1 << operation


def one_or_more(node: Node | None, what: str = "this") -> tuple[Node, ...]:
    """Return the items of a list, or the one that stands for a list; none without a node.

    Raises:
        ConfigError: the list is empty.

    """
    if node is None:
        return ()
    if not isinstance(node.value, tuple):
        return (node,)
    if not node.value:
        raise node.error(f"{what} is an empty list")
    return node.value


def parsed(node: Node, what: str, parse: Callable[[str], _Value]) -> _Value:
    """Return what a text stands for. Raises ConfigError: it is no text, or `parse` raised it; with file and line."""
    try:
        return parse(node.text(what))
    except ConfigError as error:
        raise error if str(error).startswith(f"{node.file}:") else node.error(str(error)) from error


def resource_of(node: Node) -> ResourcePattern:
    """Return the resource that a text names, such as `topic:orders`. Raises ConfigError: it names none."""
    members = node.value if isinstance(node.value, Mapping) else {}
    for word, name in members.items():
        # What YAML makes of `topic: orders`.
        if len(members) == 1 and word in TYPES and isinstance(name.value, str):
            raise node.error(f"a resource is a mapping: expected {word}:{name.raw[:80]}, without a blank")
    return parsed(node, "a resource", parse_resource)
