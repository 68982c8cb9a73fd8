"""format() and formatlist(): verbs as in Go."""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from attrs import frozen

from aclog.sources.formats.terraform.functions.function import Function
from aclog.sources.formats.terraform.functions.json_text import json_text
from aclog.sources.formats.terraform.values.conversion import convert
from aclog.sources.formats.terraform.values.errors import ValueFault
from aclog.sources.formats.terraform.values.numbers import Number, number_text
from aclog.sources.formats.terraform.values.types import BOOL, DYNAMIC, NUMBER, SEQUENCES, STRING, Kind, list_of
from aclog.sources.formats.terraform.values.value import Value, string

_VERB = re.compile(r"%(?:%|([-+ #0]*)(\d+)?(?:\.(\d+))?(?:\[(\d+)\])?(.|\Z))", re.DOTALL)
_WIDEST = 10_000
"""Of a width and a precision: beyond any name, and a bound on what one verb makes."""


@frozen
class _Verb:
    flags: str
    width: int
    precision: int | None
    mode: str


def format_text(text: str, values: Sequence[Value]) -> str:
    """Return the text with its verbs replaced by the values.

    Raises:
        ValueFault: a verb that there is not, a value that is not of its type, too few values or too many.

    """
    result, position, following, used = list[str](), 0, 0, 0
    for found in _VERB.finditer(text):
        result.append(text[position : found.start()])
        position = found.end()
        if found[0] == "%%":
            result.append("%")
            continue
        index = _count(found[4]) - 1 if found[4] else following
        following, used = index + 1, max(used, index + 1)
        if not 0 <= index < len(values):
            raise ValueFault(f"there is no value for {found[0]!r}: {len(values)} are given")
        verb = _Verb(found[1], _count(found[2] or "0"), _count(found[3]) if found[3] else None, found[5])
        result.append(_formatted(verb, values[index]))
    if used < len(values) and "%[" not in text:
        raise ValueFault(f"{len(values)} values are given, and {used} are used")
    return "".join(result) + text[position:]


def _count(digits: str) -> int:
    if len(digits) > len(str(_WIDEST)) or int(digits) > _WIDEST:
        raise ValueFault(f"{digits[:20]} in a verb of format(): more than {_WIDEST:,}")
    return int(digits)


def _formatted(verb: _Verb, value: Value) -> str:
    write = _VERBS.get(verb.mode)
    if write is None:
        raise ValueFault(f"%{verb.mode} is not a verb of format()")
    if value.is_null and verb.mode != "v":
        raise ValueFault(f"%{verb.mode}: the value is null")
    return write(verb, value)


def _as_is(verb: _Verb, value: Value) -> str:
    if "#" not in verb.flags and not value.is_null:
        if value.type.kind is Kind.STRING:
            return _padded(verb, value.text)
        if value.type.kind is Kind.NUMBER:
            return _padded(verb, _general(value.number))
    return _padded(verb, json_text(value))


def _truth(verb: _Verb, value: Value) -> str:  # noqa: ARG001
    return "true" if convert(value, BOOL).payload else "false"


def _string(verb: _Verb, value: Value) -> str:
    text = convert(value, STRING).text
    text = text[: verb.precision] if verb.precision else text
    return _padded(verb, text if verb.mode == "s" else json_text(string(text)))


def _general(value: Number) -> str:
    """Return a number as Go's Text('g', -1): with an exponent if it is large or small."""
    text = number_text(value)
    digits = text.lstrip("-").replace(".", "").strip("0") or "0"
    magnitude = _magnitude(text)
    if -4 <= magnitude < 6:
        return text
    sign = "-" if text.startswith("-") else ""
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'-' if magnitude < 0 else '+'}{abs(magnitude):02d}"


def _magnitude(text: str) -> int:
    """Return the exponent of ten of the first digit."""
    before, _, after = text.lstrip("-").partition(".")
    if before.strip("0"):
        return len(before) - 1
    return -(len(after) - len(after.lstrip("0")) + 1) if after.strip("0") else 0


def _whole(verb: _Verb, value: Value) -> str:
    wanted = convert(value, NUMBER).number
    if not isinstance(wanted, int):
        raise ValueFault(f"%{verb.mode}: a whole number is required")
    digits = format(abs(wanted), {"b": "b", "o": "o", "x": "x", "X": "X"}.get(verb.mode, "d"))
    if verb.precision is not None:
        digits = digits.rjust(verb.precision, "0")
    prefix = {"x": "0x", "X": "0X", "o": "0", "b": "0b"}.get(verb.mode, "") if "#" in verb.flags else ""
    sign = "-" if wanted < 0 else "+" if "+" in verb.flags else " " if " " in verb.flags else ""
    return _signed(verb, sign + prefix, digits, zeros=verb.precision is None)


def _decimal(verb: _Verb, value: Value) -> str:
    wanted = convert(value, NUMBER).number
    if "#" in verb.flags:
        raise ValueFault(f"%#{verb.mode}: aclog does not know this verb")
    if verb.mode in "gG" and verb.precision is None:
        text = _general(-wanted if wanted < 0 else wanted)
        text = text.upper() if verb.mode == "G" else text
    elif verb.mode == "f":
        places = 6 if verb.precision is None else verb.precision
        scaled = round(abs(wanted) * 10**places)
        digits = str(scaled).rjust(places + 1, "0")
        text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    else:
        text = format(abs(float(wanted)), f".{6 if verb.precision is None else verb.precision}{verb.mode}")
    sign = "-" if wanted < 0 else "+" if "+" in verb.flags else " " if " " in verb.flags else ""
    return _signed(verb, sign, text, zeros=True)


def _signed(verb: _Verb, sign: str, digits: str, *, zeros: bool) -> str:
    if "-" in verb.flags:
        return (sign + digits).ljust(verb.width)
    if "0" in verb.flags and zeros:
        return sign + digits.rjust(verb.width - len(sign), "0")
    return (sign + digits).rjust(verb.width)


def _padded(verb: _Verb, text: str) -> str:
    fill = "0" if "0" in verb.flags else " "
    return text.ljust(verb.width, fill) if "-" in verb.flags else text.rjust(verb.width, fill)


_VERBS: Mapping[str, Callable[[_Verb, Value], str]] = MappingProxyType(
    {
        "v": _as_is,
        "t": _truth,
        **dict.fromkeys("sq", _string),
        **dict.fromkeys("bdoxX", _whole),
        **dict.fromkeys("eEfgG", _decimal),
    }
)


def _pattern(text: Value) -> str:
    if text.is_null:
        raise ValueFault("the format is null")
    return text.text


def _formatlist(text: Value, *values: Value) -> Value:
    lengths = {len(value.items) for value in values if _is_list(value)}
    if len(lengths) > 1:
        raise ValueFault("the lists are not of the same length")
    count = lengths.pop() if lengths else 1
    texts = []
    for position in range(count):
        row = [value.items[position] if _is_list(value) else value for value in values]
        texts.append(string(format_text(_pattern(text), row)))
    return Value(list_of(STRING), tuple(texts))


def _is_list(value: Value) -> bool:
    return value.type.kind in SEQUENCES and not value.is_null


FORMAT_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "format": Function(
            parameters=(STRING,),
            rest=DYNAMIC,
            body=lambda text, *values: string(format_text(_pattern(text), values)),
            nulls=True,
        ),
        "formatlist": Function(parameters=(STRING,), rest=DYNAMIC, body=_formatlist, nulls=True),
    }
)
