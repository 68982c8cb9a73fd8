"""Expressions: from the concrete syntax tree to the abstract one."""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType

from attrs import define
from tree_sitter import Node

from aclog.sources.formats.terraform.hcl.literals import unescaped_template, unquoted
from aclog.sources.formats.terraform.hcl.parse_tree import ParsedFile, parts_of
from aclog.sources.formats.terraform.hcl.syntax import (
    ITEM,
    Binary,
    Call,
    Conditional,
    Expression,
    For,
    GetAttribute,
    GetIndex,
    Literal,
    ObjectOf,
    Relative,
    Splat,
    Step,
    Traversal,
    TupleOf,
    Unary,
)
from aclog.sources.formats.terraform.hcl.templates import Marker, Piece, Text, stripped, template_of, unindented
from aclog.sources.formats.terraform.values.errors import ValueFault
from aclog.sources.formats.terraform.values.numbers import parse_number
from aclog.sources.formats.terraform.values.value import FALSE, NULL, TRUE, number, string

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
    """Reads the expressions of one file; owned by whoever reads the file."""

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
        left, right = self._nested(parts[:middle]), self._nested(parts[middle + 1 :])
        return Binary(line, self.file.text(parts[middle]), left, right)

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
        """Return the key of an object's element: a bare name stands for itself."""
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
        given = [child for part in parts if part.type == "function_arguments" for child in parts_of(part)]
        return Call(
            line=self.file.line(node),
            name=self.file.text(parts[0]),
            arguments=tuple(self.read(child) for child in given if child.type == "expression"),
            expand=any(child.type == "ellipsis" for child in given),
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
