"""HCL by tree-sitter: bytes in, a concrete syntax tree out.

The grammar does not know all of HCL: it takes the ends of lines for spaces (hcl/layout.py checks them), and it stumbles
over numbers such as 1e5, and over a key in parentheses on the line after one that ends in a name. Both are masked, in
place, so that positions stay.
"""

import re
from collections.abc import Iterator
from functools import cache

import tree_sitter_hcl
from attrs import frozen
from tree_sitter import Language, Node, Parser

from aclog.metalog.errors import ConfigError

_NUMBER = re.compile(rb"(?<![\w.])(?<![\w]-)\d+[eE][+-]?\d+(?![\w.])")
_NAME_THEN_KEY = re.compile(rb"=[ \t]*[A-Za-z_][\w-]*[ \t]*(?:(?:#|//)[^\n]*)?\r?\n\s*([ \t])\(")


@frozen
class ParsedFile:
    """A file's bytes and its tree."""

    name: str
    content: bytes
    root: Node
    first_line: int = 1

    def text(self, node: Node) -> str:
        """Return what a node covers."""
        return self.content[node.start_byte : node.end_byte].decode()

    def line(self, node: Node) -> int:
        """Return the line on which a node begins."""
        return int(node.start_point[0]) + self.first_line

    def error(self, node: Node, what: str) -> ConfigError:
        """Return an error at a node."""
        return ConfigError(f"{self.name}:{self.line(node)}: {what}")


def parts_of(node: Node) -> list[Node]:
    """Return the children of a node, without comments."""
    return [child for child in node.children if child.type != "comment"]


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_hcl.language()))


def parse_hcl(content: bytes, name: str, *, first_line: int = 1) -> ParsedFile:
    """Return the tree of a file, or of text whose first line is that of a file.

    Raises:
        ConfigError: not UTF-8, or not HCL, with the line.

    """
    content = content.removeprefix(b"\xef\xbb\xbf")
    _check_text(content, name)
    root = _parser().parse(content).root_node
    if root.has_error:
        masked = _masked(content)
        repaired = _parser().parse(masked).root_node if masked != content else root
        if repaired.has_error:
            raise _syntax_error(ParsedFile(name, content, root, first_line))
        root = repaired
    return ParsedFile(name, content, root, first_line)


def _check_text(content: bytes, name: str) -> None:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{name}:{line}: byte {error.start} is not UTF-8") from error
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise ConfigError(f"{name}:{line}: a zero byte, which HCL does not allow")


def _masked(content: bytes) -> bytes:
    """Return the content with what the grammar does not know in another form of the same length."""
    masked = bytearray(content)
    for found in _NUMBER.finditer(content):
        masked[found.start() : found.end()] = b"0" * (found.end() - found.start())
    for found in _NAME_THEN_KEY.finditer(content):
        masked[found.start(1) : found.end(1)] = b","
    return bytes(masked)


def _syntax_error(file: ParsedFile) -> ConfigError:
    node = next(_errors(file.root), file.root)
    if node.is_missing:
        return file.error(node, f"not HCL: {node.type!r} is missing")
    text = file.content[node.start_byte : node.end_byte].decode(errors="replace").strip()
    shown = text.splitlines()[0][:20] if text else ""
    # A string may be a secret.
    return file.error(node, f"not HCL: unexpected {shown!r}" if shown and '"' not in shown else "not HCL")


def _errors(root: Node) -> Iterator[Node]:
    """Yield the erroneous nodes, the innermost ones: they are closest to the fault."""
    pending = [root]
    while pending:
        node = pending.pop()
        broken = [child for child in node.children if child.has_error or child.is_missing]
        if broken and not node.is_missing:
            pending.extend(reversed(broken))
        else:
            yield node
