"""Regular expressions: RE2's, as in Go."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from aclog.sources.formats.re2_patterns import compiled, matches
from aclog.sources.formats.terraform.functions.function import Function
from aclog.sources.formats.terraform.values.errors import TooLargeError, ValueFault
from aclog.sources.formats.terraform.values.types import STRING, Kind, Type, list_of
from aclog.sources.formats.terraform.values.value import Value, object_value, string, tuple_value

_LARGEST = 64 << 20
_REFERENCE = re.compile(r"\$(?:\{(\w+)\}|(\w+)|(\$))")


def _compile(pattern: str) -> Any:
    """Return the pattern of a function that returns groups."""
    made = _compile_any(pattern)
    if made.groupindex and len(made.groupindex) != made.groups:
        raise ValueFault("a pattern cannot have both groups with names and groups without")
    return made


def _compile_any(pattern: str) -> Any:
    """Return the pattern. Raises ValueFault: it is none that Terraform takes."""
    try:
        return compiled(pattern)
    except ValueError as error:
        raise ValueFault(f"not a regular expression that Terraform takes: {error}") from error


def _value(found: Any) -> Value:
    pattern = found.re
    if not pattern.groups:
        return string(found.group(0))
    values = [Value(STRING, None) if text is None else string(text) for text in found.groups()]
    if not pattern.groupindex:
        return tuple_value(values)
    return object_value({name: values[number - 1] for name, number in pattern.groupindex.items()})


def _regex(pattern: Value, text: Value) -> Value:
    for found in matches(_compile(pattern.text), text.text):
        return _value(found)
    raise ValueFault("the pattern does not match any part of the string")


def _regexall(pattern: Value, text: Value) -> Value:
    made = _compile(pattern.text)
    return Value(list_of(_type(made)), tuple(_value(found) for found in matches(made, text.text)))


def _type(pattern: Any) -> Type:
    if not pattern.groups:
        return STRING
    if not pattern.groupindex:
        return Type(Kind.TUPLE, elements=(STRING,) * pattern.groups)
    return Type(Kind.OBJECT, attributes=dict.fromkeys(sorted(pattern.groupindex), STRING))


def replace_all(pattern: str, text: str, replacement: str) -> str:
    """Return the text with each match replaced; `$1` and `${name}` stand for groups (Go's ReplaceAllString).

    Raises:
        ValueFault: not a regular expression.

    """
    if (len(text) + 1) * len(replacement) > _LARGEST:
        raise TooLargeError("replace() by a pattern: the string or the replacement is too long")
    parts, end = list[str](), 0
    for found in matches(_compile_any(pattern), text):
        parts += (text[end : found.start()], _expanded(replacement, found))
        end = found.end()
    return "".join((*parts, text[end:]))


def _expanded(replacement: str, found: Any) -> str:
    groups = {name: found.group(number) for name, number in found.re.groupindex.items()}
    groups |= {str(number): found.group(number) for number in range(found.re.groups + 1)}
    return _REFERENCE.sub(lambda one: "$" if one[3] else groups.get(one[1] or one[2]) or "", replacement)


REGEX_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "regex": Function(parameters=(STRING, STRING), body=_regex),
        "regexall": Function(parameters=(STRING, STRING), body=_regexall),
    }
)
