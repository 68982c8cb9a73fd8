"""Values of a test in a file: operations, lists of one or more, and texts that something parses."""

from collections.abc import Callable
from typing import TypeVar

from aclog.analysis.regions.operations import REQUESTED
from aclog.authorizer.acl import AclOperation, parse_name
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.node import Node

_Value = TypeVar("_Value")

_OPERATIONS = tuple(operation for operation in AclOperation if operation >= AclOperation.ALL)


def operation_of(text: str, node: Node) -> AclOperation:
    """Return the operation of that name. Raises ConfigError: there is none; `node` is its value, for the place."""
    try:
        return parse_name(_OPERATIONS, text)
    except ConfigError as error:
        raise node.error(f"operation {error}") from error


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
