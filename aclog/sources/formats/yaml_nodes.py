"""YAML, which includes JSON, as nodes with their lines.

It is YAML 1.1, as the tools whose files these are read it; or by the core schema of 1.2, with the values of JSON.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, ClassVar, cast

import yaml
from attrs import field

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.sources.formats.nodes import Node, Scalar

_TAGS = "tag:yaml.org,2002:"
_MERGE = f"{_TAGS}merge"
_DEEPEST = 100
"""More levels than any rule needs, and few enough for a recursive walk."""
_SAFE_LEVELS = 2_000
"""The library composes so many and more."""
_DOCUMENT = re.compile(rb"\n---(?=\s)")
"""What begins a document wherever it stands; in quotes or brackets it is an error."""
_CLOSED = re.compile(rb"""[\[{][^\[\]{}"'#\n]*[\]}]""")
"""Brackets with nothing between them that could hide the second: they add no level to those behind them."""
_LARGEST_MERGE = 100_000
"""Members that merge keys may copy in one file: nested ones multiply."""
_CORE_SCALARS = {
    "null": re.compile(r"(?:~|null|Null|NULL|)\Z"),
    "bool": re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"),
    "int": re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z"),
    "float": re.compile(
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
}
"""The types of plain scalars in the core schema (YAML 1.2.2, 10.3.2): `NO`, `12:30` and dates are texts there."""
_CORE_TAGS: dict[type[yaml.Node], frozenset[str]] = {
    yaml.MappingNode: frozenset({f"{_TAGS}map"}),
    yaml.SequenceNode: frozenset({f"{_TAGS}seq"}),
    yaml.ScalarNode: frozenset(f"{_TAGS}{kind}" for kind in ("str", *_CORE_SCALARS)),
}
_PADDED = re.compile(r"[-+]?0[0-9]")
_LARGEST_ALIASES = 1_000_000
"""The number of values to which the aliases of one file may expand: a walk over the nodes visits each that often."""


class _CoreLoader(yaml.CSafeLoader):
    """Resolves plain scalars by the core schema."""

    yaml_implicit_resolvers: ClassVar[dict[str | None, list[tuple[str, re.Pattern[str]]]]] = {  # type: ignore[misc]
        None: [(f"{_TAGS}{kind}", pattern) for kind, pattern in _CORE_SCALARS.items()]
    }


@frozen(kw_only=True)
class BrokenDocument:
    """A document that is not YAML."""

    text: str
    error_line: int
    """The line of the mistake, from 1; the first one if that is not known."""
    problem: str
    """The mistake, without the file and the line."""
    node: Node | None
    """The document, with a duplicate key as another one; None if that is not the mistake."""

    @staticmethod
    def of(part: bytes, file: str, first_line: int, error: ConfigError) -> "BrokenDocument":
        """Return the broken document of a part of a file."""
        line, _, problem = str(error).removeprefix(f"{file}:").partition(":")
        try:
            nodes = parse_documents(part, file, first_line=first_line, duplicates=True)
        except ConfigError:
            nodes = []
        return BrokenDocument(
            text=part.decode(errors="replace"),
            error_line=int(line) if line.isdecimal() else first_line + 1,
            problem=problem.strip(),
            node=nodes[0] if nodes else None,
        )


def parse_each_document(content: bytes, file: str) -> tuple[list[Node], list[BrokenDocument]]:
    """Return the documents of a file that are not empty, and those that are not YAML."""
    try:
        return parse_documents(content, file), []
    except ConfigError:
        pass
    nodes, broken, first = list[Node](), list[BrokenDocument](), 0
    for part in _split(content):
        try:
            nodes += parse_documents(part, file, first_line=first)
        except ConfigError as error:
            broken.append(BrokenDocument.of(part, file, first, error))
        first += part.count(b"\n")
    return nodes, broken


def _split(content: bytes) -> Iterator[bytes]:
    """Yield the parts of a file that begin with `---`, which begins a document wherever a line begins with it."""
    begin = 0
    for match in _DOCUMENT.finditer(content):
        yield content[begin : match.start() + 1]
        begin = match.start() + 1
    yield content[begin:]


def parse_documents(
    content: bytes, file: str, *, core: bool = False, first_line: int = 0, duplicates: bool = False
) -> list[Node]:
    """Return the documents of a file that are not empty.

    `core`: by the core schema of YAML 1.2. Its keys are texts, and it has neither tags of other types nor merge keys.
    `first_line`: how many lines of the file are before the content. `duplicates`: take a duplicate key as another one.

    Raises:
        ConfigError: not YAML, a duplicate key, a recursive alias, or nested too deeply; with the line.
            By the core schema: a value that JSON does not have, except infinite numbers and NaN; or a number that
            begins with a zero, which is another one in YAML 1.1.

    """
    if not core and (nodes := _plain_documents(content, file, first_line + 1)) is not None:
        return nodes
    _check_depth(content, file, first_line)
    try:
        loader = (_CoreLoader if core else yaml.CSafeLoader)(content)
    except yaml.YAMLError as error:
        raise _syntax_error(error, file, content, first_line) from error
    try:
        return [node for node in _Nodes(loader, file, core, first_line + 1, duplicates).documents() if not node.is_null]
    except yaml.YAMLError as error:
        raise _syntax_error(error, file, content, first_line) from error
    finally:
        loader.dispose()


# Documents as nearly all are, by the events of the library alone: its own nodes take twice as long.


def _plain_documents(content: bytes, file: str, first: int) -> list[Node] | None:
    """Return the documents of a file that are not empty; None if one has a mistake, a tag, an anchor or a merge key.

    `first`: the number of the first line.
    """
    try:
        loader = yaml.CSafeLoader(content)
    except yaml.YAMLError:
        return None
    try:
        return _plain_nodes(loader.get_event, file, first)
    except yaml.YAMLError:
        return None
    finally:
        loader.dispose()


def _plain_nodes(next_event: Callable[[], yaml.Event | None], file: str, first: int) -> list[Node] | None:
    scalar, mapping_start, sequence_start = yaml.ScalarEvent, yaml.MappingStartEvent, yaml.SequenceStartEvent
    documents = list[Node]()
    # Of the innermost collection: its members, its line, and the key and the line of the member that follows.
    inner: dict[str, Node] | list[Node] = documents
    line, key, key_line = 0, cast("str | None", None), 0
    above = list[tuple[dict[str, Node] | list[Node], int, str | None, int]]()
    while True:
        event: Any = next_event()
        kind = type(event)
        begins = kind is mapping_start or kind is sequence_start
        if begins or kind is scalar:
            if event.tag is not None or event.anchor is not None:
                return None
            at = event.start_mark.line + first
            if key is None and type(inner) is dict:
                if begins or event.value in inner or (event.value == "<<" and not event.style):
                    return None
                key, key_line = event.value, at
                continue
            if begins:
                if len(above) == _DEEPEST:
                    return None
                above.append((inner, line, key, key_line))
                line = at if key is None else key_line
                inner, key = {} if kind is mapping_start else [], None
                continue
            text = event.value
            value = _plain_value(text) if event.implicit[0] else text
            at = at if key is None else key_line
            node = Node(file=file, line=at, value=value, raw=text, is_plain=not event.style)
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            node = Node(file=file, line=line, value=tuple(inner) if isinstance(inner, list) else inner)
            inner, line, key, key_line = above.pop()
        elif kind is yaml.StreamEndEvent or kind is yaml.AliasEvent:
            return [each for each in documents if not each.is_null] if kind is yaml.StreamEndEvent else None
        else:
            continue
        if isinstance(inner, list):
            inner.append(node)
        else:
            inner[key] = node  # type: ignore[index]  # a mapping has one here
            key = None


_LONGEST_KEPT = 64
"""Characters of texts whose values are kept: few longer ones are stated twice."""


def _plain_value(text: str) -> Scalar:
    """Return the value of a scalar without quotes and tag."""
    return (_resolved if len(text) <= _LONGEST_KEPT else _resolved.__wrapped__)(text)


@lru_cache(1 << 14)
def _resolved(text: str) -> Scalar:
    tag = str(_RESOLVER.resolve(yaml.ScalarNode, text, (True, False)))  # type: ignore[no-untyped-call]
    return _scalar(yaml.ScalarNode(tag, text))


def _check_depth(content: bytes, file: str, first_line: int) -> None:
    """Refuse nesting that would overflow the stack of the library's composer, which recurses in C."""
    if max(map(_most_levels, _DOCUMENT.split(content))) <= _SAFE_LEVELS:
        return
    depth = 0
    try:
        for event in yaml.parse(content, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > _SAFE_LEVELS:
                    line = event.start_mark.line if event.start_mark is not None else 0
                    raise _too_deep(file, first_line + line + 1)
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError as error:
        raise _syntax_error(error, file, content, first_line) from error


def _most_levels(document: bytes) -> int:
    """Return a number that its levels do not exceed: one of block style takes a column at least."""
    rest = _CLOSED.sub(b"", document)
    return rest.count(b"[") + rest.count(b"{") + max(map(len, document.split(b"\n")))


def _too_deep(file: str, line: int) -> ConfigError:
    return ConfigError(f"{file}:{line}: nested more than {_DEEPEST} levels deep")


def _syntax_error(error: yaml.YAMLError, file: str, content: bytes, first_line: int) -> ConfigError:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return ConfigError(f"{file}:{first_line + error.problem_mark.line + 1}: not YAML: {error.problem}")
    if isinstance(error, yaml.reader.ReaderError):
        line = first_line + content.count(b"\n", 0, error.position) + 1
        return ConfigError(f"{file}:{line}: not YAML: byte {error.position}: {error.reason}")
    return ConfigError(f"{file}: not YAML: {str(error).splitlines()[0]}")


_RESOLVER, _CONSTRUCTOR = yaml.resolver.Resolver(), yaml.constructor.SafeConstructor()


def _scalar(node: yaml.ScalarNode) -> Scalar:
    kind = node.tag.removeprefix(_TAGS)
    if kind == "null":
        return None
    try:
        if kind == "bool":
            return bool(_CONSTRUCTOR.construct_yaml_bool(node))
        if kind == "int":
            return int(_CONSTRUCTOR.construct_yaml_int(node))
        if kind == "float":
            return float(_CONSTRUCTOR.construct_yaml_float(node))
    except (ValueError, OverflowError, KeyError, IndexError):
        pass  # such as `0b`, or more digits than Python converts: text
    return str(node.value)


@define
class _Nodes:
    """Turns the nodes of the library into ours; one that is an alias stays one."""

    loader: yaml.CSafeLoader
    file: str
    core: bool
    first: int
    """The number of the first line."""
    duplicates: bool
    _done: dict[int, Node] = field(factory=dict, init=False)
    _open: set[int] = field(factory=set, init=False)
    _merged: int = field(default=0, init=False)
    _repeated: int = field(default=0, init=False)
    _sizes: dict[int, int] = field(factory=dict, init=False)
    """How many values each node is that an alias stood for, or that was in it."""

    def documents(self) -> Iterator[Node]:
        while self.loader.check_node():
            document = cast("yaml.Node", self.loader.get_node())
            self._done.clear()  # ids of nodes of the last document may be in use again
            self._sizes.clear()
            yield self._node(document, None)

    def _node(self, node: yaml.Node, line: int | None) -> Node:
        """Return a node; `line` is that of its key."""
        done = self._done.get(id(node))
        if done is not None:
            self._repeated += self._size(done)
            if self._repeated > _LARGEST_ALIASES:
                raise self._error(node, f"aliases expand to more than {_LARGEST_ALIASES:,} values in this file")
            return done
        if id(node) in self._open:
            raise self._error(node, "an alias of the value that it is in")
        if len(self._open) == _DEEPEST:
            raise _too_deep(self.file, node.start_mark.line + self.first)
        self._open.add(id(node))
        result = Node(
            file=self.file,
            line=node.start_mark.line + self.first if line is None else line,
            value=self._value(node),
            raw=node.value if isinstance(node, yaml.ScalarNode) else "",
            is_plain=isinstance(node, yaml.ScalarNode) and not node.style,
            tag=None if node.tag.startswith(_TAGS) else node.tag,
        )
        self._open.discard(id(node))
        self._done[id(node)] = result
        return result

    def _size(self, node: Node) -> int:
        if not isinstance(node.value, dict | tuple):
            return 1
        size = self._sizes.get(id(node))
        if size is None:
            inner = node.value.values() if isinstance(node.value, dict) else node.value
            size = self._sizes[id(node)] = 1 + sum(map(self._size, inner))
        return size

    def _value(self, node: yaml.Node) -> dict[str, Node] | tuple[Node, ...] | Scalar:
        if self.core and node.tag not in _CORE_TAGS[type(node)]:
            raise self._error(node, f"the tag {node.tag[:60]} is not a type of JSON: write the value as text")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            return tuple(self._node(item, None) for item in node.value)
        scalar = cast("yaml.ScalarNode", node)
        return self._core_scalar(scalar) if self.core else _scalar(scalar)

    def _core_scalar(self, node: yaml.ScalarNode) -> Scalar:
        kind, text = node.tag.removeprefix(_TAGS), str(node.value)
        if kind == "str":
            return text
        if not _CORE_SCALARS[kind].match(text):  # a tag that was written
            raise self._error(node, f"{text[:60]!r} is no {kind} in YAML 1.2")
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if _PADDED.match(text):
            number = re.sub(r"(?<![0-9])0+(?=[0-9])", "", text[:60], count=1)
            raise self._error(node, f'{text[:60]} begins with a zero: expected the number {number}, or "{text[:60]}"')
        if kind == "float":
            return float(re.sub(r"\.(inf|nan)", r"\1", text.lower()))
        try:
            return int(text, 0)
        except ValueError:
            raise self._error(node, f"a number of {len(text):,} digits") from None

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Node]:
        members: dict[str, Node] = {}
        merged: dict[str, Node] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key, "a key that is a mapping or a list")
            if self.core:
                self._check_core_key(key)
            if key.tag == _MERGE:
                self._merge(merged, value)
                continue
            if key.value in members and self.duplicates:
                members[f"{key.value}\0{len(members)}"] = self._node(value, key.start_mark.line + self.first)
                continue
            if key.value in members:
                first = members[key.value].line
                raise self._error(key, f"duplicate key {key.value[:60]!r}: first on line {first}")
            members[key.value] = self._node(value, key.start_mark.line + self.first)
        return {**merged, **members} if merged else members

    def _check_core_key(self, key: yaml.ScalarNode) -> None:
        """Refuse a value that is not text. Raises ConfigError."""
        if key.value == "<<" and not key.style:
            raise self._error(key, "`<<` merges nothing in YAML 1.2: expected the members themselves")
        if key.tag != f"{_TAGS}str":
            raise self._error(key, f'the key {key.value[:60]} is no text: expected "{key.value[:60]}"')

    def _merge(self, into: dict[str, Node], node: yaml.Node) -> None:
        """Add the members of the value of a `<<` key; of several mappings the first wins."""
        for each in node.value if isinstance(node, yaml.SequenceNode) else (node,):
            members = self._node(each, None).value
            if not isinstance(members, dict):
                raise self._error(each, "`<<` merges mappings only")
            self._merged += len(members)
            if self._merged > _LARGEST_MERGE:
                raise self._error(each, f"`<<` copies more than {_LARGEST_MERGE:,} members in this file")
            for key, member in members.items():
                into.setdefault(key, member)

    def _error(self, node: yaml.Node, what: str) -> ConfigError:
        return ConfigError(f"{self.file}:{node.start_mark.line + self.first}: {what}")
