"""Regular expressions: RE2's, as in Go, by Arrow's RE2, which takes linear time whatever the pattern."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from attrs import frozen

from aclog.sources.formats.terraform.functions.function import Function
from aclog.sources.formats.terraform.values.errors import TooLargeError, ValueFault
from aclog.sources.formats.terraform.values.types import STRING, Kind, Type, list_of
from aclog.sources.formats.terraform.values.value import Value, object_value, string, tuple_value

_TOKEN = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\((?!\?)|\(\?P?<(\w+)>|\(|\)", re.DOTALL
)
_LARGEST = 64 << 20
_REFERENCE = re.compile(r"\$(?:\{(\w+)\}|(\w+)|(\$))")


@frozen
class _Group:
    name: str | None
    may_be_empty: bool


@frozen
class _Pattern:
    """A pattern whose groups all have names, and the names that they had."""

    text: str
    groups: tuple[_Group, ...]


@lru_cache(maxsize=1024)
def _compile(pattern: str) -> _Pattern:
    """Return the pattern. Raises ValueFault: it is none that Terraform takes."""
    _search(pattern, "")
    text, position = list[str](), 0
    names: list[str | None] = []
    spans: dict[int, tuple[int, int]] = {}
    opened: list[tuple[int, int]] = []
    for token in _TOKEN.finditer(pattern):
        word = token[0]
        text.append(pattern[position : token.start()])
        position = token.end()
        if word == ")":
            number, start = opened.pop()
            spans[number] = (start, token.start())
        elif word[0] == "(":
            captures = token[1] or pattern[position : position + 1] != "?"
            if captures:
                names.append(token[1])
                word = f"(?P<aclog_{len(names)}>"
            opened.append((len(names) if captures else 0, position))
        text.append(word)
    if any(names) and not all(names):
        raise ValueFault("a pattern cannot have both groups with names and groups without")
    groups = [_Group(name, _search(f"^(?:{pattern[slice(*spans[n])]})$", "")) for n, name in enumerate(names, 1)]
    return _Pattern("".join(text) + pattern[position:], tuple(groups))


def _compute() -> Any:
    # Arrow takes a while to load, and few repositories use patterns.
    import pyarrow.compute

    return pyarrow.compute


def _array(text: str) -> Any:
    import pyarrow as pa

    return pa.array([text])


def _search(pattern: str, text: str) -> bool:
    try:
        return bool(_compute().match_substring_regex(_array(text), pattern)[0].as_py())
    except (ValueError, OSError) as error:
        raise ValueFault(f"not a regular expression that Terraform takes: {error}".splitlines()[0]) from error


def _matches(pattern: _Pattern, text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each match in turn: all of it, and its groups."""
    if len(pattern.groups) > 9:
        raise ValueFault("aclog reads patterns of up to nine groups")
    mark = next(chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in text)
    fields = mark.join(f"\\{number}" for number in range(len(pattern.groups) + 1))
    joined = _compute().replace_substring_regex(_array(text), pattern.text, mark + fields + mark)[0].as_py()
    parts = joined.split(mark)[1:]
    width = len(pattern.groups) + 2
    for start in range(0, len(parts) - 1, width):
        whole, *groups = parts[start : start + width - 1]
        yield whole, groups


def _value(pattern: _Pattern, whole: str, groups: list[str]) -> Value:
    if not pattern.groups:
        return string(whole)
    # RE2 does not tell an empty group from one that took no part; what cannot match nothing took none.
    values = [
        string(text) if text or group.may_be_empty else Value(STRING, None)
        for group, text in zip(pattern.groups, groups, strict=True)
    ]
    if pattern.groups[0].name is None:
        return tuple_value(values)
    return object_value({str(group.name): value for group, value in zip(pattern.groups, values, strict=True)})


def _regex(pattern: Value, text: Value) -> Value:
    compiled = _compile(pattern.text)
    for whole, groups in _matches(compiled, text.text):
        return _value(compiled, whole, groups)
    raise ValueFault("the pattern does not match any part of the string")


def _regexall(pattern: Value, text: Value) -> Value:
    compiled = _compile(pattern.text)
    values = [_value(compiled, whole, groups) for whole, groups in _matches(compiled, text.text)]
    return Value(list_of(_type(compiled)), tuple(values))


def _type(pattern: _Pattern) -> Type:
    if not pattern.groups:
        return STRING
    if pattern.groups[0].name is None:
        return Type(Kind.TUPLE, elements=(STRING,) * len(pattern.groups))
    return Type(Kind.OBJECT, attributes=dict.fromkeys(sorted(str(group.name) for group in pattern.groups), STRING))


def replace_all(pattern: str, text: str, replacement: str) -> str:
    """Return the text with each match replaced; `$1` and `${name}` stand for groups (Go's ReplaceAllString).

    Raises:
        ValueFault: not a regular expression.

    """
    if (len(text) + 1) * len(replacement) > _LARGEST:
        raise TooLargeError("replace() by a pattern: the string or the replacement is too long")
    rewritten = _rewrite(pattern, replacement)
    try:
        return str(_compute().replace_substring_regex(_array(text), pattern, rewritten)[0].as_py())
    except (ValueError, OSError) as error:
        raise ValueFault(f"not a replacement: {error}".splitlines()[0]) from error


@lru_cache(maxsize=1024)
def _rewrite(pattern: str, replacement: str) -> str:
    """Return the replacement in the words of RE2."""
    _search(pattern, "")
    tokens = [token for token in _TOKEN.finditer(pattern) if token[0][0] == "("]
    names = [token[1] for token in tokens if token[1] or pattern[token.start() : token.start() + 2] != "(?"]
    return _REFERENCE.sub(lambda found: _rewritten(found, names), replacement.replace("\\", "\\\\"))


def _rewritten(found: re.Match[str], names: list[str | None]) -> str:
    if found[3]:
        return "$"
    name = found[1] or found[2]
    if name.isdigit():
        return f"\\{name}" if int(name) <= len(names) and int(name) <= 9 else ""
    return f"\\{names.index(name) + 1}" if name in names else ""


REGEX_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "regex": Function(parameters=(STRING, STRING), body=_regex),
        "regexall": Function(parameters=(STRING, STRING), body=_regexall),
    }
)
