"""Values of structured files, with their file and line."""

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import TypeAlias

from aclog.authorizer.acl import FileOrigin
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen

# A value in a structured file, with its file and line.


Scalar: TypeAlias = str | int | float | bool | None


_OTHER_IN_GO = re.compile(
    r"[-+]?(?:\.[0-9_]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?0(?:[xX][0-9a-fA-F_]+|[bB][01_]+|[oO][0-7_]+)|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
    r"|[yYnN]|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|true|True|TRUE|false|False|FALSE"
)
"""Scalars without quotes that are numbers or booleans to Kubernetes (go-yaml 2); `12:30` is a text to it."""


@frozen(kw_only=True, eq=False)
class Node:
    """A mapping, a list or a scalar."""

    file: str
    line: int
    """Its line, from 1; that of its key, if it is the value of one."""
    value: "Mapping[str, Node] | tuple[Node, ...] | Scalar"
    raw: str = ""
    """A scalar as it is written, without quotes: `1e3` and `007` are also names."""
    is_plain: bool = False
    """Whether a scalar of YAML has no quotes."""
    tag: str | None = None
    """A tag that is not one of YAML's own, such as `!Ref`: the value differs from its text."""

    def __reduce__(self) -> tuple[object, ...]:
        # Files are parsed in other processes: what pickle does by itself takes three times as long.
        return _node, (self.file, self.line, self.value, self.raw, self.is_plain, self.tag)

    @property
    def origin(self) -> FileOrigin:
        """Its location."""
        return FileOrigin(file=self.file, line=self.line)

    @property
    def is_null(self) -> bool:
        """Whether it is null, or a key without a value."""
        return self.value is None and self.tag is None

    def error(self, what: str) -> ConfigError:
        """Return an error about this value."""
        return ConfigError(f"{self.file}:{self.line}: {what}")

    def mapping(self, what: str = "this") -> "Mapping[str, Node]":
        """Return the members of a mapping, in order; `what` names it in errors. Raises ConfigError: not a mapping."""
        if isinstance(self.value, Mapping) and self.tag is None:
            return self.value
        raise self.error(f"{what} is {self._kind()}: expected a mapping")

    def items(self, what: str = "this") -> "tuple[Node, ...]":
        """Return the items of a list. Raises ConfigError: not a list."""
        if isinstance(self.value, tuple) and self.tag is None:
            return self.value
        raise self.error(f"{what} is {self._kind()}: expected a list")

    def text(self, what: str = "this") -> str:
        """Return a scalar as it is written. Raises ConfigError: null, a mapping or a list."""
        if isinstance(self.value, Mapping | tuple) or self.value is None or self.tag is not None:
            raise self.error(f"{what} is {self._kind()}: expected text")
        return self.raw

    def string(self, what: str = "this") -> str:
        """Return a text, as a field of the type string takes it: Kubernetes refuses `2024`, `10.0` and `true`.

        Raises:
            ConfigError: another value; a number or a boolean with the text to write instead.

        """
        text = self.text(what)
        if _OTHER_IN_GO.fullmatch(text) is not None if self.is_plain else not isinstance(self.value, str):
            raise self.error(f'{what} is {text[:60]}, which is no text to Kubernetes: expected "{text[:60]}"')
        return text

    def boolean(self, what: str = "this") -> bool:
        """Return true or false. Raises ConfigError: it is neither."""
        if isinstance(self.value, bool) and self.tag is None:
            return self.value
        raise self.error(f"{what} is {self._kind()}: expected true or false")

    def get(self, key: str) -> "Node | None":
        """Return a member of a mapping; None if it is missing or null, or this is no mapping."""
        if not isinstance(self.value, Mapping) or self.tag is not None:
            return None
        member = self.value.get(key)
        return None if member is None or member.is_null else member

    def required(self, key: str, what: str = "this") -> "Node":
        """Return a member of a mapping. Raises ConfigError: it is missing or null, or this is no mapping."""
        self.mapping(what)
        member = self.get(key)
        if member is None:
            raise self.error(f"{what} has no {key}")
        return member

    def members(self, key: str) -> "Iterator[Node]":
        """Yield the items of a list under a key; none if the key is missing. Raises ConfigError: it is no list."""
        member = self.get(key)
        if member is not None:
            yield from member.items(key)

    def items_of(self, key: str) -> "tuple[Node, ...]":
        """Return the items of a list under a key; none if the key is missing, or has another value."""
        member = self.get(key)
        return member.value if member is not None and isinstance(member.value, tuple) else ()

    def check_keys(self, keys: Collection[str], what: str = "this") -> None:
        """Refuse unknown keys. Raises ConfigError: an unknown key, or not a mapping."""
        for key, member in self.mapping(what).items():
            if key not in keys:
                near = get_close_matches(key, keys, 1)
                hint = f"did you mean {near[0]}?" if near else f"expected {', '.join(keys)}"
                raise member.error(f"{what} has an unknown key {key[:60]!r}: {hint}")

    def _kind(self) -> str:
        if self.tag is not None:
            return f"a value with the tag {self.tag[:40]}"
        if isinstance(self.value, Mapping):
            return "a mapping"
        if isinstance(self.value, tuple):
            return "a list"
        return "null" if self.value is None else f"{self.raw[:60]!r}"


def _node(
    file: str,
    line: int,
    value: "Mapping[str, Node] | tuple[Node, ...] | Scalar",
    raw: str,
    is_plain: bool,
    tag: str | None,
) -> Node:
    return Node(file=file, line=line, value=value, raw=raw, is_plain=is_plain, tag=tag)


def plain_value(node: Node) -> object:
    """Return a value without its location: two that state the same are equal."""
    if isinstance(node.value, Mapping):
        return {key: plain_value(member) for key, member in node.value.items()}
    if isinstance(node.value, tuple):
        return [plain_value(item) for item in node.value]
    return node.raw, type(node.value), node.tag


def scalars(node: Node) -> Iterator[Node]:
    """Yield the values at any depth that are neither mappings nor lists."""
    if isinstance(node.value, Mapping):
        for member in node.value.values():
            yield from scalars(member)
    elif isinstance(node.value, tuple):
        for item in node.value:
            yield from scalars(item)
    else:
        yield node


# Scalars as the tools on the JVM read them: a plain number is a number first, and text again only then.


_SAME_AGAIN = re.compile(r"-?(0|[1-9]\d*)")


def plain_text(node: Node, what: str) -> str:
    """Return a scalar as text; `what` names it in errors.

    Raises:
        ConfigError: no scalar, or a number or boolean without quotes, such as 1.10, 007 or True, which is another text
            once it was a number or boolean.

    """
    text = node.text(what)
    if isinstance(node.value, bool):
        same = text.lower() not in {"true", "false"} or text.islower()  # `yes` is text to them
    elif isinstance(node.value, int | float):
        same = _SAME_AGAIN.fullmatch(text) is not None or ":" in text  # `1:30` is also text
    else:
        same = True
    if not same:
        raise node.error(f"{what} is {text[:60]!r} without quotes, which is read as {node.value}: put it in quotes")
    return text
