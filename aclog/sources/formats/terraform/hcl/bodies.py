"""Files of HCL: their attributes and blocks."""

from tree_sitter import Node

from aclog.sources.formats.terraform.hcl.expressions import ExpressionReader
from aclog.sources.formats.terraform.hcl.layout import (
    check_block_layout,
    check_body_layout,
    check_expression_layout,
)
from aclog.sources.formats.terraform.hcl.literals import unquoted
from aclog.sources.formats.terraform.hcl.parse_tree import ParsedFile, parse_hcl, parts_of
from aclog.sources.formats.terraform.hcl.syntax import Attribute, Block, Body, Expression

_DEEPEST = 50
_MARK = "aclog_end_of_template"


def read_body(content: bytes, name: str) -> Body:
    """Return the body of a file.

    Raises:
        ConfigError: not HCL, with the line.

    """
    file = parse_hcl(content, name)
    body = next((part for part in file.root.children if part.type == "body"), None)
    return _body(ExpressionReader(file), body, 0)


def read_template(text: str, name: str, line: int = 1) -> Expression:
    """Return the template in a text: a file for templatefile(), or a string in JSON; `line` is that of its beginning.

    Raises:
        ConfigError: not a template, with the line.

    """
    # The grammar knows templates within expressions only.
    start = f"x = <<{_MARK}\n".encode()
    content = start + text.encode() + f"\n{_MARK}\n".encode()
    file = parse_hcl(content, name, first_line=line - 1)
    node = file.root.children[0].children[0].children[-1].children[0].children[0]
    return ExpressionReader(file).bare_template(node, (len(start), len(start) + len(text.encode())))


def read_expression(text: str, name: str, line: int) -> Expression:
    """Return the expression in a text, such as a type in JSON. Raises ConfigError: it is none, with the line."""
    body = read_body(f"x = {text}\n".encode(), f"{name}:{line}")
    if list(body.attributes) != ["x"] or body.blocks:
        raise parse_hcl(b"", name, first_line=line).error(parse_hcl(b"", name).root, "not one expression")
    return body.attributes["x"].value


def _body(reader: ExpressionReader, node: Node | None, depth: int) -> Body:
    items = parts_of(node) if node is not None else []
    check_body_layout(reader.file, items)
    attributes: dict[str, Attribute] = {}
    blocks = []
    for item in items:
        if item.type == "block":
            blocks.append(_block(reader, item, depth + 1))
            continue
        attribute = _attribute(reader, item)
        if attribute.name in attributes:
            first = attributes[attribute.name].line
            raise reader.file.error(item, f"{attribute.name} is set twice, first on line {first}")
        attributes[attribute.name] = attribute
    return Body(attributes, tuple(blocks))


def _attribute(reader: ExpressionReader, node: Node) -> Attribute:
    file = reader.file
    if node.start_point[0] != node.end_point[0]:
        check_expression_layout(file, node)
    parts = parts_of(node)
    return Attribute(file.name, file.line(node), file.text(parts[0]), reader.read(parts[-1]))


def _block(reader: ExpressionReader, node: Node, depth: int) -> Block:
    file, parts = reader.file, parts_of(node)
    if depth > _DEEPEST:
        raise file.error(node, f"blocks nested more than {_DEEPEST} deep")
    body = next((part for part in parts if part.type == "body"), None)
    check_block_layout(file, parts, parts_of(body) if body is not None else [])
    labels = [_label(file, part) for part in parts[1:] if part.type in ("string_lit", "identifier")]
    return Block(file.name, file.line(node), file.text(parts[0]), tuple(labels), _body(reader, body, depth))


def _label(file: ParsedFile, node: Node) -> str:
    text = file.text(node)
    return unquoted(text[1:-1]) if node.type == "string_lit" else text
