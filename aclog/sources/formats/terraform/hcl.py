"""The syntax of HCL and of Terraform's JSON, by tree-sitter: a tree whose parts have their lines."""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

import tree_sitter_hcl
from attrs import evolve, fields, has
from tree_sitter import Language, Node, Parser

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.sources.formats.terraform.values import (
    FALSE,
    NULL,
    TRUE,
    Value,
    ValueFault,
    boolean,
    number,
    parse_number,
    string,
)

# JSON whose objects have their lines: by the standard library's decoder, and one pass over the text beside it.


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?|[{}]', re.DOTALL)


class Digits(str):
    """A number as it is written."""

    __slots__ = ()


class LocatedObject(dict[str, object]):
    """An object; each member has a line, and it has that on which it begins."""

    __slots__ = ("_lines", "line")

    def __init__(self, members: list[tuple[str, object]], line: int, lines: list[int]) -> None:
        """Hold members, in order, with their lines."""
        super().__init__(members)
        self.line = line
        self._lines = lines

    def line_of(self, key: str) -> int:
        """Return the line of a member."""
        return self._lines[list(self).index(key)]


def parse_located(content: bytes, name: str) -> object:
    """Parse JSON; numbers as Digits.

    Raises:
        ConfigError: not JSON, or a duplicate key in an object, with the line.

    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{name}:{line}: byte {error.start} is not UTF-8") from error
    closings = iter(_closings(text))

    def _make(members: list[tuple[str, object]]) -> LocatedObject:
        line, lines = next(closings)
        result = LocatedObject(members, line, lines)
        if len(result) < len(members):
            keys: set[str] = set()
            for (key, _), at in zip(members, lines, strict=True):
                if key in keys:
                    raise ConfigError(f"{name}:{at}: duplicate key {key[:60]!r}")
                keys.add(key)
        return result

    def _refuse(word: str) -> None:
        raise ConfigError(f"{name}: not JSON: {word}")

    try:
        return json.loads(text, object_pairs_hook=_make, parse_int=Digits, parse_float=Digits, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{name}:{error.lineno}: not JSON: {error.msg}") from error
    except RecursionError as error:
        raise ConfigError(f"{name}: nested too deeply") from error


def _closings(text: str) -> list[tuple[int, list[int]]]:
    """Return for each object, in the order in which they end, the line on which it begins, and those of its keys."""
    ends = [match.start() for match in re.finditer("\n", text)]
    opened: list[tuple[int, list[int]]] = []
    closed = []
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word == "{":
            opened.append((bisect_right(ends, token.start()) + 1, []))
        elif word == "}":
            if opened:
                closed.append(opened.pop())
        elif token[1] is not None and opened:
            opened[-1][1].append(bisect_right(ends, token.start()) + 1)
    return closed


# Literal text of HCL: its escapes.


_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.|\Z)|(\$\$|%%)(?=\{)", re.DOTALL)
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}


def unquoted(text: str) -> str:
    """Return the value of text between quotes.

    Raises:
        ValueFault: an escape that HCL does not define, or a line that ends within the quotes.

    """
    if "\n" in text:
        raise ValueFault("a line ends inside quotes: use a heredoc, or \\n")
    if "\\" not in text and "{" not in text:
        return text
    return _ESCAPE.sub(_unescape, text)


def unescaped_template(text: str) -> str:
    """Return the value of the text of a heredoc or a template file: only `$${` and `%%{` are escapes there."""
    return text.replace("$${", "${").replace("%%{", "%{")


def _unescape(match: re.Match[str]) -> str:
    if match[2]:
        return match[2][0]
    code = match[1]
    if code in _SIMPLE:
        return _SIMPLE[code]
    if code[:1] in ("u", "U") and len(code) > 1:
        point = int(code[1:], 16)
        if point <= 0x10FFFF and not 0xD800 <= point < 0xE000:
            return chr(point)
    raise ValueFault(f'\\{code} is not an escape of HCL: expected one of \\n \\r \\t \\" \\\\ \\uNNNN \\UNNNNNNNN')


# HCL by tree-sitter: bytes in, a concrete syntax tree out.
#
# The grammar does not know all of HCL: it takes the ends of lines for spaces (hcl/layout.py checks them), and it
# stumbles over numbers such as 1e5, and over a key in parentheses on the line after one that ends in a name. Both are
# masked, in place, so that positions stay.


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
        """Return the text of a node."""
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
    """Return the content, with unsupported syntax replaced by other text of the same length."""
    masked = bytearray(content)
    for match in _NUMBER.finditer(content):
        masked[match.start() : match.end()] = b"0" * (match.end() - match.start())
    for match in _NAME_THEN_KEY.finditer(content):
        masked[match.start(1) : match.end(1)] = b","
    return bytes(masked)


def _syntax_error(file: ParsedFile) -> ConfigError:
    node = next(_errors(file.root), file.root)
    if node.is_missing:
        return file.error(node, f"not HCL: {node.type!r} is missing")
    text = file.content[node.start_byte : node.end_byte].decode(errors="replace").strip()
    excerpt = text.splitlines()[0][:20] if text else ""
    # A string may be a secret.
    return file.error(node, f"not HCL: unexpected {excerpt!r}" if excerpt and '"' not in excerpt else "not HCL")


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


# Where HCL requires the end of a line, and where it forbids one: the grammar of tree-sitter does not check it.


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
            raise _line_end_error(file, item)


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
        raise _line_end_error(file, items[0])
    if items[-1].end_point[0] == last_row:
        raise _line_end_error(file, closing)


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


def _line_end_error(file: ParsedFile, node: Node) -> ConfigError:
    return file.error(node, "the end of a line is missing before this")


# The syntax tree of Terraform's language. Every part has its line, from 1.


@frozen
class Literal:
    """A number, a bool, null, or a string without templates."""

    line: int
    value: Value


@frozen
class Template:
    """A string with interpolations and directives: the texts of its parts, joined."""

    line: int
    parts: "tuple[Expression, ...]"


@frozen
class TemplateLoop:
    """`%{ for ... }`: the text of its body for each element, joined."""

    line: int
    names: tuple[str | None, str]
    collection: "Expression"
    body: "Expression"


@frozen
class GetAttribute:
    """`.name`, one step of a traversal."""

    line: int
    name: str


@frozen
class GetIndex:
    """`[key]`, one step of a traversal."""

    line: int
    key: "Expression"


Step: TypeAlias = GetAttribute | GetIndex


@frozen
class Traversal:
    """`root.name[key]...`, which begins with a name."""

    line: int
    root: str
    steps: tuple[Step, ...]


@frozen
class Relative:
    """Steps from the value of any other expression."""

    line: int
    source: "Expression"
    steps: tuple[Step, ...]


ITEM = "*"
"""The name of the element at hand in the `each` of a splat."""


@frozen
class Splat:
    """`source[*]...` or `source.*...`: the rest, for each element."""

    line: int
    source: "Expression"
    each: "Expression"


@frozen
class Call:
    """A call of a function; `expand`: the last argument is a sequence of arguments."""

    line: int
    name: str
    arguments: "tuple[Expression, ...]"
    expand: bool


@frozen
class Conditional:
    """`condition ? yes : no`."""

    line: int
    condition: "Expression"
    yes: "Expression"
    no: "Expression"


@frozen
class Binary:
    """An operator between two operands."""

    line: int
    operator: str
    first: "Expression"
    second: "Expression"


@frozen
class Unary:
    """`-` or `!` and its operand."""

    line: int
    operator: str
    operand: "Expression"


@frozen
class TupleOf:
    """`[a, b]`."""

    line: int
    items: "tuple[Expression, ...]"


@frozen
class ObjectOf:
    """`{a = b}`; keys are expressions."""

    line: int
    items: "tuple[tuple[Expression, Expression], ...]"


@frozen
class For:
    """`[for ...]`, or `{for ...}` if it has a key; `group`: values of the same key are collected."""

    line: int
    names: tuple[str | None, str]
    """The names of the key, if used, and of the element."""
    collection: "Expression"
    key: "Expression | None"
    value: "Expression"
    condition: "Expression | None"
    group: bool


Expression: TypeAlias = (
    Literal
    | Template
    | TemplateLoop
    | Traversal
    | Relative
    | Splat
    | Call
    | Conditional
    | Binary
    | Unary
    | TupleOf
    | ObjectOf
    | For
)


@frozen
class Attribute:
    """`name = expression`."""

    file: str
    line: int
    name: str
    value: Expression


@frozen
class Block:
    """`type "label" { ... }`."""

    file: str
    line: int
    type: str
    labels: tuple[str, ...]
    body: "Body"


@frozen
class Body:
    """The attributes and blocks of a file or a block."""

    attributes: Mapping[str, Attribute]
    blocks: tuple[Block, ...]

    def of_type(self, kind: str) -> list[Block]:
        """Return the blocks of a type."""
        return [block for block in self.blocks if block.type == kind]


def structure(part: object) -> object:
    """Return a part of the syntax tree without its places: equal for equal code, wherever it is."""
    kind = type(part)
    if has(kind):
        names = [each.name for each in fields(kind) if each.name not in ("file", "line")]
        return kind.__name__, *(structure(getattr(part, name)) for name in names)
    if isinstance(part, Mapping):
        return tuple((key, structure(value)) for key, value in part.items())
    return tuple(map(structure, part)) if isinstance(part, tuple | list) else part


def references(part: object) -> Iterator[Traversal]:
    """Yield the references in a part of the syntax tree, at any depth."""
    if isinstance(part, Traversal):
        yield part
    kind = type(part)
    if has(kind):
        for each in fields(kind):
            yield from references(getattr(part, each.name))
    elif isinstance(part, Mapping):
        yield from references(tuple(part.values()))
    elif isinstance(part, tuple | list):
        for item in part:
            yield from references(item)


def literal_text(expression: Expression | None) -> str | None:
    """Return the text of a string without templates; None: it is anything else, or absent."""
    payload = expression.value.payload if isinstance(expression, Literal) else None
    return payload if isinstance(payload, str) else None


# Templates: text with `${ }` and `%{ }`, in quotes, in heredocs and in files.


@frozen
class Text:
    """Literal text, without escapes; in a heredoc up to the end of a line."""

    line: int
    text: str


@frozen
class Marker:
    """`${ }` or `%{ }`, and whether it strips the space before and after it."""

    line: int
    word: str
    """`value`, `if`, `else`, `endif`, `for` or `endfor`."""
    strips_before: bool
    strips_after: bool
    expression: Expression | None = None
    names: tuple[str | None, str] = (None, "")


Piece = Text | Marker


def stripped(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces, with the space removed that `~` strips: within the adjacent piece of text only."""
    result = list(pieces)
    for index, (before, after) in enumerate(pairwise(pieces)):
        if isinstance(before, Marker) and before.strips_after and isinstance(after, Text):
            result[index + 1] = evolve(after, text=after.text.lstrip())
        neighbour = result[index]
        if isinstance(neighbour, Text) and isinstance(after, Marker) and after.strips_before:
            result[index] = evolve(neighbour, text=neighbour.text.rstrip())
    return result


def unindented(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces of a `<<-` heredoc without the indentation that all its lines share, blank ones aside."""
    result, widths, begins = list(pieces), list[int](), True
    adjust = []
    for index, piece in enumerate(pieces):
        if begins:
            begins = False
            if isinstance(piece, Marker):
                widths.append(0)
            elif piece.text.strip() or not piece.text.endswith("\n"):
                widths.append(len(piece.text) - len(piece.text.lstrip()))
                adjust.append(index)
        begins = begins or (isinstance(piece, Text) and piece.text.endswith("\n"))
    for index in adjust:
        piece = result[index]
        if isinstance(piece, Text):
            result[index] = evolve(piece, text=piece.text[min(widths) :])
    return result


def template_of(pieces: Sequence[Piece], line: int) -> Expression:
    """Return the template that the pieces make: of a single `${ }` its very value, else a string.

    Raises:
        ValueFault: a misplaced directive.

    """
    parts, _ = _Reader(iter(pieces)).until(())
    if not parts:
        return Literal(line, string(""))
    only = parts[0]
    is_alone = len(parts) == 1 and len(pieces) == 1
    if is_alone and (isinstance(only, Literal) or isinstance(pieces[0], Marker)):
        return only
    return Template(line, tuple(parts))


@define
class _Reader:
    """Reads pieces in order; owned by template_of."""

    pieces: Iterator[Piece]

    def until(self, ends: tuple[str, ...]) -> tuple[list[Expression], Marker | None]:
        """Return the parts before one of the directives, and it; at the end of the template None."""
        parts: list[Expression] = []
        for piece in self.pieces:
            if isinstance(piece, Text):
                if piece.text:
                    parts.append(Literal(piece.line, string(piece.text)))
            elif piece.word == "value":
                parts.append(_expression(piece))
            elif piece.word == "if":
                parts.append(self._if(piece))
            elif piece.word == "for":
                parts.append(self._for(piece))
            elif piece.word in ends:
                return parts, piece
            else:
                raise ValueFault(f"%{{ {piece.word} }} has no beginning")
        if ends:
            raise ValueFault(f"%{{ {ends[-1]} }} is missing in a template")
        return parts, None

    def _if(self, marker: Marker) -> Expression:
        yes, end = self.until(("else", "endif"))
        no: list[Expression] = []
        if end is not None and end.word == "else":
            no, _ = self.until(("endif",))
        line = marker.line
        return Conditional(line, _expression(marker), Template(line, tuple(yes)), Template(line, tuple(no)))

    def _for(self, marker: Marker) -> Expression:
        body, _ = self.until(("endfor",))
        return TemplateLoop(marker.line, marker.names, _expression(marker), Template(marker.line, tuple(body)))


def _expression(marker: Marker) -> Expression:
    if marker.expression is None:
        raise ValueFault(f"%{{ {marker.word} }} has no expression")
    return marker.expression


# Expressions: from the concrete syntax tree to the abstract one.


_DEEPEST = 200
"""Expressions within expressions. People do not come near."""

_OPERATORS = frozenset({"+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||"})

_WORDS = MappingProxyType(
    {
        "template_interpolation": "value",
        "template_if_intro": "if",
        "template_else_intro": "else",
        "template_if_end": "endif",
        "template_for_start": "for",
        "template_for_end": "endfor",
    }
)


@define(eq=False)
class ExpressionReader:
    """Reads the expressions of one file; owned by the reader of the file."""

    file: ParsedFile
    depth: int = 0

    def read(self, node: Node) -> Expression:
        """Return the expression of an `expression` node.

        Raises:
            ConfigError: an escape, a number or a template that HCL does not have, or nested too deep; with the line.

        """
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.file.error(node, f"nested more than {_DEEPEST} deep")
        try:
            return self._terms(parts_of(node))
        except ValueFault as fault:
            raise self.file.error(node, str(fault)) from fault
        finally:
            self.depth -= 1

    def _terms(self, terms: list[Node]) -> Expression:
        """Return a term and the steps that follow it."""
        first, *rest = terms
        if first.type == "(":
            return self._steps(self.read(terms[1]), terms[3:])
        if first.type == "variable_expr":
            return self._chain(self.file.text(first), self.file.line(first), rest)
        return self._steps(self._term(first), rest)

    def _chain(self, name: str, line: int, nodes: list[Node]) -> Expression:
        """Return a name and the steps that follow it."""
        count = next((n for n, step in enumerate(nodes) if step.type == "splat"), len(nodes))
        return self._steps(Traversal(line, name, tuple(map(self._step, nodes[:count]))), nodes[count:])

    def _steps(self, source: Expression, nodes: list[Node]) -> Expression:
        while nodes:
            line = self.file.line(nodes[0])
            if nodes[0].type != "splat":
                count = next((n for n, step in enumerate(nodes) if step.type == "splat"), len(nodes))
                source, nodes = Relative(line, source, tuple(map(self._step, nodes[:count]))), nodes[count:]
                continue
            inner = nodes[0].children[0]
            following = [*parts_of(inner)[1:], *nodes[1:]]
            # After `[*]` all that follows is for each element, after `.*` the attributes that follow at once.
            end = len(following) if inner.type == "full_splat" else _count_attributes(following)
            source, nodes = Splat(line, source, self._chain(ITEM, line, following[:end])), following[end:]
        return source

    def _step(self, node: Node) -> Step:
        line = self.file.line(node)
        if node.type == "get_attr":
            return GetAttribute(line, self.file.text(parts_of(node)[-1]))
        inner = node.children[0]
        if inner.type == "legacy_index":
            return GetIndex(line, Literal(line, number(int(self.file.text(inner).lstrip(". \t")))))
        return GetIndex(line, self.read(parts_of(inner)[1]))

    def _term(self, node: Node) -> Expression:
        read = _TERMS.get(node.type)
        if read is None:
            raise self.file.error(node, f"{node.type} is not understood")
        return read(self, node)

    def _literal(self, node: Node) -> Expression:
        child, line = node.children[0], self.file.line(node)
        text = self.file.text(child)
        if child.type == "string_lit":
            return Literal(line, string(unquoted(text[1:-1])))
        if child.type == "numeric_lit":
            parsed = parse_number(text)
            if parsed is None or not text[0].isdigit() or text[:2].lower() in ("0x", "0b", "0o"):
                raise self.file.error(node, "not a number")
            return Literal(line, number(parsed))
        return Literal(line, {"true": TRUE, "false": FALSE}.get(text, NULL))

    def _operation(self, node: Node) -> Expression:
        inner, line = node.children[0], self.file.line(node)
        parts = parts_of(inner)
        if inner.type == "unary_operation":
            return Unary(line, self.file.text(parts[0]), self._nested(parts[1:]))
        middle = next(n for n, part in enumerate(parts) if part.type in _OPERATORS)
        first, second = self._nested(parts[:middle]), self._nested(parts[middle + 1 :])
        return Binary(line, self.file.text(parts[middle]), first, second)

    def _nested(self, terms: list[Node]) -> Expression:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.file.error(terms[0], f"nested more than {_DEEPEST} deep")
        try:
            return self._terms(terms)
        finally:
            self.depth -= 1

    def _conditional(self, node: Node) -> Expression:
        parts, line = parts_of(node), self.file.line(node)
        condition, yes, no = (self.read(parts[index]) for index in (0, 2, 4))
        if isinstance(condition, Conditional) and parts[0].children[0].type == "conditional":
            # The grammar groups `a ? b : c ? d : e` from the left.
            return Conditional(line, condition.condition, condition.yes, Conditional(line, condition.no, yes, no))
        return Conditional(line, condition, yes, no)

    def _collection(self, node: Node) -> Expression:
        inner, line = node.children[0], self.file.line(node)
        if inner.type == "tuple":
            return TupleOf(line, tuple(self.read(part) for part in parts_of(inner) if part.type == "expression"))
        self._check_elements(parts_of(inner))
        elements = [parts_of(part) for part in parts_of(inner) if part.type == "object_elem"]
        return ObjectOf(line, tuple((self._key(parts[0]), self.read(parts[-1])) for parts in elements))

    def _check_elements(self, parts: list[Node]) -> None:
        for before, part in pairwise(parts):
            if part.type == before.type == "object_elem" and part.start_point[0] == before.end_point[0]:
                raise self.file.error(part, "a comma or the end of a line is missing before this element")
            if part.type == "," and part.start_point[0] != before.end_point[0]:
                raise self.file.error(part, "a comma on the line after its element")

    def _key(self, node: Node) -> Expression:
        """Return the key of an object's element: a bare name is the key itself."""
        key = self.read(node)
        if node.children[0].type == "(":
            return key
        if isinstance(key, Traversal):
            if key.steps:
                raise self.file.error(node, "an object's key that is a reference must be in parentheses")
            return Literal(key.line, string(key.root))
        return Literal(key.line, string(self.file.text(node))) if self._is_word(node) else key

    def _is_word(self, node: Node) -> bool:
        first = node.children[0]
        return first.type == "literal_value" and first.children[0].type in ("bool_lit", "null_lit")

    def _for(self, node: Node) -> Expression:
        inner = node.children[0]
        parts = [part for part in parts_of(inner) if part.type in ("for_intro", "expression", "ellipsis", "for_cond")]
        intro = parts_of(parts[0])
        names = [self.file.text(part) for part in intro if part.type == "identifier"]
        values = [self.read(part) for part in parts if part.type == "expression"]
        conditions = [self.read(parts_of(part)[-1]) for part in parts if part.type == "for_cond"]
        return For(
            line=self.file.line(node),
            names=(names[0] if len(names) > 1 else None, names[-1]),
            collection=self.read(next(part for part in intro if part.type == "expression")),
            key=values[0] if len(values) > 1 else None,
            value=values[-1],
            condition=conditions[0] if conditions else None,
            group=any(part.type == "ellipsis" for part in parts),
        )

    def _call(self, node: Node) -> Expression:
        parts = parts_of(node)
        children = [child for part in parts if part.type == "function_arguments" for child in parts_of(part)]
        return Call(
            line=self.file.line(node),
            name=self.file.text(parts[0]),
            arguments=tuple(self.read(child) for child in children if child.type == "expression"),
            expand=any(child.type == "ellipsis" for child in children),
        )

    def _template(self, node: Node) -> Expression:
        inner = node.children[0]
        if inner.type == "quoted_template":
            pieces = list(self._pieces(inner, (inner.start_byte + 1, inner.end_byte - 1), unquoted, by_line=False))
            return template_of(stripped(pieces), self.file.line(inner))
        return self.heredoc(inner)

    def heredoc(self, node: Node) -> Expression:
        """Return the template of a heredoc."""
        content = self.file.content
        start = content.index(b"\n", node.start_byte) + 1
        end = content.rindex(b"\n", 0, node.end_byte) + 1
        pieces = stripped(list(self._pieces(node, (start, end), unescaped_template, by_line=True)))
        if content[node.start_byte : node.start_byte + 3] == b"<<-":
            pieces = unindented(pieces)
        return template_of(pieces, self.file.line(node))

    def bare_template(self, node: Node, span: tuple[int, int]) -> Expression:
        """Return the template of bytes within a heredoc, as they are: the content of a template file."""
        pieces = stripped(list(self._pieces(node, span, unescaped_template, by_line=True)))
        return template_of(pieces, self.file.line(node))

    def _pieces(
        self, node: Node, span: tuple[int, int], unescape: Callable[[str], str], *, by_line: bool
    ) -> Iterator[Piece]:
        position, end = span
        for marker in _markers(node):
            sign = self.file.content[marker.start_byte : marker.start_byte + 1]
            if self.file.content[position : marker.start_byte].endswith(sign):
                continue  # `$$${`: an escape behind a `$`, which the grammar takes for `$$` and a template
            yield from self._text((position, marker.start_byte), unescape, by_line=by_line)
            yield self._marker(marker)
            position = marker.end_byte
        yield from self._text((position, end), unescape, by_line=by_line)

    def _text(self, span: tuple[int, int], unescape: Callable[[str], str], *, by_line: bool) -> Iterator[Text]:
        start, end = span
        if start >= end:
            return
        text = self.file.content[start:end].decode()
        line = self.file.content.count(b"\n", 0, start) + self.file.first_line if by_line else 0
        for number_of, part in enumerate(_lines(text) if by_line else [text]):
            yield Text(line + number_of, unescape(part))

    def _marker(self, node: Node) -> Marker:
        parts = parts_of(node)
        names = [self.file.text(part) for part in parts if part.type == "identifier"]
        expressions = [self.read(part) for part in parts if part.type == "expression"]
        return Marker(
            line=self.file.line(node),
            word=_WORDS[node.type],
            strips_before=parts[1].type == "strip_marker",
            strips_after=parts[-2].type == "strip_marker",
            expression=expressions[0] if expressions else None,
            names=(names[0] if len(names) > 1 else None, names[-1] if names else ""),
        )


def _count_attributes(steps: list[Node]) -> int:
    """Return how many steps at the beginning are `.name` or `.0`."""
    for count, step in enumerate(steps):
        if step.type != "get_attr" and not (step.type == "index" and step.children[0].type == "legacy_index"):
            return count
    return len(steps)


def _lines(text: str) -> list[str]:
    return [line for line in text.replace("\n", "\n\0").split("\0") if line]


def _markers(node: Node) -> Iterator[Node]:
    for child in node.children:
        if child.type in _WORDS:
            yield child
        elif child.type in ("template_directive", "template_if", "template_for"):
            yield from _markers(child)


_TERMS: Mapping[str, Callable[[ExpressionReader, Node], Expression]] = MappingProxyType(
    {
        "literal_value": ExpressionReader._literal,
        "operation": ExpressionReader._operation,
        "conditional": ExpressionReader._conditional,
        "collection_value": ExpressionReader._collection,
        "for_expr": ExpressionReader._for,
        "function_call": ExpressionReader._call,
        "template_expr": ExpressionReader._template,
        "expression": ExpressionReader.read,
    }
)


# Files of HCL: their attributes and blocks.


_DEEPEST_BODY = 50
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
    # The grammar supports templates within expressions only.
    start = f"x = <<{_MARK}\n".encode()
    content = start + text.encode() + f"\n{_MARK}\n".encode()
    file = parse_hcl(content, name, first_line=line - 1)
    node = file.root.children[0].children[0].children[-1].children[0].children[0]
    return ExpressionReader(file).bare_template(node, (len(start), len(start) + len(text.encode())))


def read_expression(text: str, name: str, line: int) -> Expression:
    """Return the expression in a text, such as a type in JSON. Raises ConfigError: invalid, with the line."""
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
    if depth > _DEEPEST_BODY:
        raise file.error(node, f"blocks nested more than {_DEEPEST_BODY} deep")
    body = next((part for part in parts if part.type == "body"), None)
    check_block_layout(file, parts, parts_of(body) if body is not None else [])
    labels = [_label(file, part) for part in parts[1:] if part.type in ("string_lit", "identifier")]
    return Block(file.name, file.line(node), file.text(parts[0]), tuple(labels), _body(reader, body, depth))


def _label(file: ParsedFile, node: Node) -> str:
    text = file.text(node)
    return unquoted(text[1:-1]) if node.type == "string_lit" else text


# Terraform's language in JSON (`.tf.json`, `.tfvars.json`): the same syntax tree.


_LABELS = {"variable": 1, "output": 1, "module": 1, "resource": 2, "data": 2, "ephemeral": 2, "provider": 1}


def read_json_body(content: bytes, name: str) -> Body:
    """Return the body of a `.tf.json` file. Raises ConfigError: not JSON, or not of this form, with the line."""
    blocks: list[Block] = []
    for top in _objects(parse_located(content, name), name, 1):
        for kind, value in top.items():
            if kind != "//":
                blocks.extend(_blocks(name, top.line_of(kind), (kind,), value))
    return Body({}, tuple(blocks))


def read_json_values(content: bytes, name: str) -> dict[str, Attribute]:
    """Return the attributes of a `.tfvars.json` file. Raises ConfigError: not JSON, or not an object."""
    top = parse_located(content, name)
    if not isinstance(top, LocatedObject):
        raise ConfigError(f"{name}:1: an object is expected")
    return {
        key: Attribute(name, top.line_of(key), key, _json_expression(value, name, top.line_of(key), templates=False))
        for key, value in top.items()
    }


def _blocks(file: str, line: int, header: tuple[str, ...], value: object) -> Iterator[Block]:
    missing = _LABELS.get(header[0], 0) - len(header) + 1
    for each in _objects(value, file, line):
        if missing > 0:
            for label, inner in each.items():
                if label != "//":
                    yield from _blocks(file, each.line_of(label), (*header, label), inner)
            continue
        yield Block(file, line, header[0], header[1:], _json_body(each, file, header[0]))


def _json_body(value: LocatedObject, file: str, kind: str) -> Body:
    attributes = {}
    for key, item in value.items():
        if key == "//":
            continue
        line = value.line_of(key)
        if kind == "variable" and key == "type" and isinstance(item, str):
            expression = read_expression(item, file, line)
        else:
            is_template = (kind, key) not in (("module", "source"), ("variable", "default"))
            expression = _json_expression(item, file, line, templates=is_template)
        attributes[key] = Attribute(file, line, key, expression)
    return Body(attributes, ())


def _objects(value: object, file: str, line: int) -> list[LocatedObject]:
    """Return an object, or the objects of an array."""
    items = value if isinstance(value, list) else [value]
    objects = [item for item in items if isinstance(item, LocatedObject)]
    if len(objects) < len(items):
        raise ConfigError(f"{file}:{line}: an object is expected")
    return objects


def _json_expression(value: object, file: str, line: int, *, templates: bool) -> Expression:
    if value is None:
        return Literal(line, NULL)
    if isinstance(value, bool):
        return Literal(line, boolean(value))
    if isinstance(value, Digits):
        parsed = parse_number(value)
        if parsed is None:
            raise ConfigError(f"{file}:{line}: a number that is too large")
        return Literal(line, number(parsed))
    if isinstance(value, str):
        return _text(value, file, line, templates=templates)
    if isinstance(value, LocatedObject):
        items = [
            (
                _text(key, file, value.line_of(key), templates=templates),
                _json_expression(item, file, value.line_of(key), templates=templates),
            )
            for key, item in value.items()
            if key != "//"
        ]
        return ObjectOf(line, tuple(items))
    if isinstance(value, list):
        return TupleOf(line, tuple(_json_expression(item, file, line, templates=templates) for item in value))
    raise ConfigError(f"{file}:{line}: not understood")


def _text(text: str, file: str, line: int, *, templates: bool) -> Expression:
    if not templates or ("${" not in text and "%{" not in text):
        return Literal(line, string(text))
    return read_template(text, file, line)
