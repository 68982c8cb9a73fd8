"""Where HCL wants a line to end, and where it may not: the grammar of tree-sitter does not tell."""

from itertools import pairwise

from tree_sitter import Node

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.terraform.hcl.parse_tree import ParsedFile, parts_of

_OPENERS = frozenset(
    {"(", "tuple_start", "object_start", "[", "template_interpolation_start", "template_directive_start"}
)
_CLOSERS = frozenset({")", "tuple_end", "object_end", "]", "template_interpolation_end", "template_directive_end"})
_TEMPLATES = frozenset(
    {"heredoc_template", "quoted_template", "template_if", "template_for", "template_directive", "string_lit"}
)


def check_body_layout(file: ParsedFile, items: list[Node]) -> None:
    """Check that each attribute or block of a body begins on a line of its own.

    Raises:
        ConfigError: one does not, with the line.

    """
    for before, item in pairwise(items):
        if item.start_point[0] == before.end_point[0]:
            raise _wanted(file, item)


def check_block_layout(file: ParsedFile, parts: list[Node], items: list[Node]) -> None:
    """Check a block: its header on one line, and its body on lines of its own unless it is one attribute at most.

    Raises:
        ConfigError: it is laid out otherwise, with the line.

    """
    opening = next(part for part in parts if part.type == "block_start")
    closing = parts[-1]
    if opening.start_point[0] != parts[0].start_point[0]:
        raise file.error(opening, "a line ends inside the header of a block")
    if not items:
        return
    first_row, last_row = opening.start_point[0], closing.start_point[0]
    if first_row == last_row and len(items) == 1 and items[0].type == "attribute":
        return
    if items[0].start_point[0] == first_row:
        raise _wanted(file, items[0])
    if items[-1].end_point[0] == last_row:
        raise _wanted(file, closing)


def check_expression_layout(file: ParsedFile, attribute: Node) -> None:
    """Check that no line ends inside an expression, except within brackets.

    Raises:
        ConfigError: one does, with the line.

    """
    _check(file, attribute, free=False)


def _check(file: ParsedFile, node: Node, *, free: bool) -> None:
    """Check a node; free: it is within brackets, where lines may end."""
    if node.start_point[0] == node.end_point[0]:
        return
    parts = parts_of(node)
    if node.type == "object":
        _check_object(file, parts)
        return
    inside = free
    previous: Node | None = None
    for part in parts:
        if previous is not None and not inside and node.type not in _TEMPLATES and _crosses(previous, part):
            raise file.error(part, "a line ends inside an expression: put it in parentheses, or on one line")
        if part.type in _CLOSERS:
            inside = free
        _check(file, part, free=inside)
        if part.type in _OPENERS:
            inside = True
        previous = part


def _crosses(before: Node, after: Node) -> bool:
    return bool(after.start_point[0] > before.end_point[0])


def _check_object(file: ParsedFile, parts: list[Node]) -> None:
    for part in parts:
        if part.type == "object_elem":
            _check(file, part, free=False)


def _wanted(file: ParsedFile, node: Node) -> ConfigError:
    return file.error(node, "the end of a line is missing before this")
