"""Functions of Terraform's language: texts, numbers, encodings, addresses and sets."""

import base64
import binascii
import csv
import hashlib
import json
import math
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from io import StringIO
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import product
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import quote_plus

import yaml
from attrs import field

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.sources.formats.rule import compiled, matches
from aclog.sources.formats.terraform.collection_functions import Function, listed, sequence_of, whole
from aclog.sources.formats.terraform.values import (
    BOOL,
    DYNAMIC,
    FALSE,
    NULL,
    NUMBER,
    SEQUENCES,
    STRING,
    TRUE,
    Kind,
    Number,
    TooLargeError,
    Type,
    Value,
    ValueFault,
    boolean,
    convert,
    equal,
    list_of,
    number,
    number_text,
    object_value,
    parse_number,
    rounded,
    set_of,
    set_value,
    string,
    tuple_value,
    unify,
)
from aclog.sources.formats.yaml_nodes import parse_documents

# Functions on ranges of addresses.


def _network(text: str) -> IPv4Network | IPv6Network:
    if "/" not in text:
        raise ValueFault("not a range of addresses in CIDR notation")
    try:
        return ip_network(text, strict=False)
    except ValueError as error:
        raise ValueFault("not a range of addresses in CIDR notation") from error


def _cidrhost(prefix: Value, host: Value) -> Value:
    network, position = _network(prefix.text), whole(host)
    if not -network.num_addresses <= position < network.num_addresses:
        raise ValueFault("the range has no host with this number")
    return string(str(network[position]))


def _cidrnetmask(prefix: Value) -> Value:
    network = _network(prefix.text)
    if isinstance(network, IPv6Network):
        raise ValueFault("IPv6 has no netmasks")
    return string(str(network.netmask))


def _subnet(network: IPv4Network | IPv6Network, bits: int, position: int) -> IPv4Network | IPv6Network:
    length = network.prefixlen + bits
    if bits < 0 or length > network.max_prefixlen or not 0 <= position < 1 << bits:
        raise ValueFault("the range has no such part")
    start = int(network.network_address) + (position << (network.max_prefixlen - length))
    return type(network)((start, length))


def _cidrsubnet(prefix: Value, bits: Value, position: Value) -> Value:
    return string(str(_subnet(_network(prefix.text), whole(bits), whole(position))))


def _cidrsubnets(prefix: Value, *sizes: Value) -> Value:
    network, subnets, start = _network(prefix.text), [], 0
    start = int(network.network_address)
    for size in sizes:
        length = network.prefixlen + whole(size)
        if whole(size) < 1 or length > network.max_prefixlen:
            raise ValueFault("the range has no such part")
        width = 1 << (network.max_prefixlen - length)
        start = -(-start // width) * width
        if start + width > int(network.network_address) + network.num_addresses:
            raise ValueFault("the range has not enough room")
        subnets.append(string(f"{type(network)((start, length))}"))
        start += width
    return listed(subnets, STRING)


ADDRESS_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "cidrhost": Function(parameters=(STRING, NUMBER), body=_cidrhost),
        "cidrnetmask": Function(parameters=(STRING,), body=_cidrnetmask),
        "cidrsubnet": Function(parameters=(STRING, NUMBER, NUMBER), body=_cidrsubnet),
        "cidrsubnets": Function(parameters=(STRING,), rest=NUMBER, body=_cidrsubnets),
    }
)


# Values as JSON text, and back (cty's json package).


_FOR_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def json_text(value: Value) -> str:
    """Return a known value as JSON, without spaces, keys sorted, with Go's escapes for HTML."""
    payload = value.payload
    if payload is None:
        return "null"
    if isinstance(payload, bool):
        return "true" if payload else "false"
    if isinstance(payload, str):
        return _quoted(payload)
    if value.type.kind is Kind.NUMBER:
        return number_text(value.number)
    if isinstance(payload, tuple):
        return "[" + ",".join(map(json_text, payload)) + "]"
    return "{" + ",".join(f"{_quoted(name)}:{json_text(item)}" for name, item in value.entries.items()) + "}"


def _quoted(text: str) -> str:
    quoted = (
        json.dumps(text, ensure_ascii=False).replace("\\b", "\\u0008")
        if "\b" in text
        else json.dumps(text, ensure_ascii=False)
    )
    for character, escape in _FOR_HTML.items():
        quoted = quoted.replace(character, escape)
    return quoted


def value_of_json(text: str) -> Value:
    """Return the value in a text of JSON: arrays are tuples, objects objects.

    Raises:
        ValueFault: not JSON.

    """
    try:
        decoded = json.loads(text, parse_float=_Digits, parse_int=_Digits, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueFault(f"not JSON: {error}") from error
    return value_of(decoded)


class _Digits(str):
    """A number as it is written."""

    __slots__ = ()


def _refuse(word: str) -> None:
    raise ValueFault(f"not JSON: {word}")


def value_of(decoded: object) -> Value:
    """Return the value of decoded JSON."""
    if decoded is None:
        return NULL
    if isinstance(decoded, bool):
        return boolean(decoded)
    if isinstance(decoded, _Digits):
        parsed = parse_number(decoded)
        if parsed is None:
            raise ValueFault("a number that is too large")
        return number(parsed)
    if isinstance(decoded, str):
        return string(decoded)
    if isinstance(decoded, Mapping):
        return object_value({string(name).text: value_of(item) for name, item in decoded.items()})
    if isinstance(decoded, Sequence):
        return tuple_value(map(value_of, decoded))
    raise ValueFault("not JSON")


# Functions that encode, decode and hash.


_NAMESPACES = {
    "dns": uuid.NAMESPACE_DNS,
    "url": uuid.NAMESPACE_URL,
    "oid": uuid.NAMESPACE_OID,
    "x500": uuid.NAMESPACE_X500,
}


def decoded_base64(text: str) -> str:
    """Return text from base64. Raises ValueFault: not base64, or not text."""
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueFault("not base64 of UTF-8 text") from error


def _csvdecode(text: Value) -> Value:
    try:
        rows = list(csv.reader(StringIO(text.text, newline=""), strict=True))
    except csv.Error as error:
        raise ValueFault(f"not CSV: {error}") from error
    rows = [row for row in rows if row]
    if not rows:
        raise ValueFault("missing header line")
    names, *lines = rows
    if len(set(names)) < len(names):
        raise ValueFault("two columns have the same name")
    if any(len(line) != len(names) for line in lines):
        raise ValueFault("a row has not as many fields as the header line")
    kind = Type(Kind.OBJECT, attributes=dict.fromkeys(sorted(names), STRING))
    items = [object_value(dict(zip(names, map(string, line), strict=True))) for line in lines]
    return Value(list_of(kind), tuple(items))


def _digest(name: str, *, as_base64: bool = False) -> Callable[[Value], Value]:
    def _hash_of(text: Value) -> Value:
        digest = hashlib.new(name, text.text.encode(), usedforsecurity=False).digest()
        return string(base64.b64encode(digest).decode() if as_base64 else digest.hex())

    return _hash_of


def _uuidv5(namespace: Value, name: Value) -> Value:
    try:
        space = _NAMESPACES.get(namespace.text) or uuid.UUID(namespace.text)
    except ValueError as error:
        raise ValueFault("not a namespace: expected dns, url, oid, x500 or a UUID") from error
    return string(str(uuid.uuid5(space, name.text)))


def _text_function(body: Callable[[Value], Value]) -> Function:
    return Function(parameters=(STRING,), body=body)


ENCODING_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "base64decode": _text_function(lambda text: string(decoded_base64(text.text))),
        "base64encode": _text_function(lambda text: string(base64.b64encode(text.text.encode()).decode())),
        "base64sha256": _text_function(_digest("sha256", as_base64=True)),
        "base64sha512": _text_function(_digest("sha512", as_base64=True)),
        "csvdecode": _text_function(_csvdecode),
        "jsondecode": _text_function(lambda text: value_of_json(text.text)),
        "jsonencode": Function(parameters=(DYNAMIC,), body=lambda value: string(json_text(value)), nulls=True),
        "md5": _text_function(_digest("md5")),
        "sha1": _text_function(_digest("sha1")),
        "sha256": _text_function(_digest("sha256")),
        "sha512": _text_function(_digest("sha512")),
        "urlencode": _text_function(lambda text: string(quote_plus(text.text, safe="~"))),
        "uuidv5": Function(parameters=(STRING, STRING), body=_uuidv5),
    }
)


# format() and formatlist(): verbs as in Go.


_VERB = re.compile(r"%(?:%|([-+ #0]*)(\d+)?(?:\.(\d+))?(?:\[(\d+)\])?(.|\Z))", re.DOTALL)
_WIDEST = 10_000
"""The largest width and precision: longer than any name, and a bound on the output of one verb."""


@frozen
class _Verb:
    flags: str
    width: int
    precision: int | None
    mode: str


def format_text(text: str, values: Sequence[Value]) -> str:
    """Return the text with its verbs replaced by the values.

    Raises:
        ValueFault: an unknown verb, a value that is not of its type, or the wrong number of values.

    """
    result, position, following, used = list[str](), 0, 0, 0
    for match in _VERB.finditer(text):
        result.append(text[position : match.start()])
        position = match.end()
        if match[0] == "%%":
            result.append("%")
            continue
        index = _count(match[4]) - 1 if match[4] else following
        following, used = index + 1, max(used, index + 1)
        if not 0 <= index < len(values):
            raise ValueFault(f"there is no value for {match[0]!r}: {len(values)} are given")
        verb = _Verb(match[1], _count(match[2] or "0"), _count(match[3]) if match[3] else None, match[5])
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
    operand = convert(value, NUMBER).number
    if not isinstance(operand, int):
        raise ValueFault(f"%{verb.mode}: a whole number is required")
    digits = format(abs(operand), {"b": "b", "o": "o", "x": "x", "X": "X"}.get(verb.mode, "d"))
    if verb.precision is not None:
        digits = digits.rjust(verb.precision, "0")
    prefix = {"x": "0x", "X": "0X", "o": "0", "b": "0b"}.get(verb.mode, "") if "#" in verb.flags else ""
    sign = "-" if operand < 0 else "+" if "+" in verb.flags else " " if " " in verb.flags else ""
    return _signed(verb, sign + prefix, digits, zeros=verb.precision is None)


def _decimal(verb: _Verb, value: Value) -> str:
    operand = convert(value, NUMBER).number
    if "#" in verb.flags:
        raise ValueFault(f"%#{verb.mode}: aclog does not support this verb")
    if verb.mode in "gG" and verb.precision is None:
        text = _general(-operand if operand < 0 else operand)
        text = text.upper() if verb.mode == "G" else text
    elif verb.mode == "f":
        places = 6 if verb.precision is None else verb.precision
        scaled = round(abs(operand) * 10**places)
        digits = str(scaled).rjust(places + 1, "0")
        text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    else:
        text = format(abs(float(operand)), f".{6 if verb.precision is None else verb.precision}{verb.mode}")
    sign = "-" if operand < 0 else "+" if "+" in verb.flags else " " if " " in verb.flags else ""
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


# Functions on numbers, and conversions.


_DIGITS = re.compile(r"[+-]?[0-9a-zA-Z]+(?:_[0-9a-zA-Z]+)*\Z")
_MOST_DIGITS = 4_000
"""The most digits of a parsed number, as in values.numbers."""


def _extreme(choose: Callable[[list[Number]], Number]) -> Callable[..., Value]:
    def _find(*values: Value) -> Value:
        if not values:
            raise ValueFault("at least one argument is required")
        return number(choose([value.number for value in values]))

    return _find


def _of_float(result: float) -> Value:
    if not math.isfinite(result):
        raise ValueFault("the result is not a finite number")
    value = rounded(Fraction(repr(result)))  # the shortest decimal, as Go writes it
    return number(value)


def _float(calculate: Callable[[float, float], float]) -> Callable[[Value, Value], Value]:
    def _find(one: Value, other: Value) -> Value:
        try:
            return _of_float(calculate(float(one.number), float(other.number)))
        except (ValueError, OverflowError, ZeroDivisionError) as error:
            raise ValueFault(f"no result: {error}") from error

    return _find


def _parseint(text: Value, base: Value) -> Value:
    if text.type != STRING:
        raise ValueFault("the first argument must be a string")
    if base.number not in range(2, 63):
        raise ValueFault("the base must be between 2 and 62")
    if not isinstance(base.number, int) or not _DIGITS.match(text.text) or "_" in text.text:
        raise ValueFault("not a whole number in this base")
    digits, total = text.text.lstrip("+-"), 0
    if len(digits) > _MOST_DIGITS:
        raise ValueFault(f"more than {_MOST_DIGITS:,} digits")
    for digit in digits:
        value = _digit(digit, base.number)
        if value >= base.number:
            raise ValueFault("not a whole number in this base")
        total = total * base.number + value
    return number(rounded(-total if text.text[0] == "-" else total))


def _digit(digit: str, base: int) -> int:
    if base <= 36:
        digit = digit.lower()
    return (
        int(digit) if digit.isdigit() else ord(digit) - ord("a") + 10 if digit.islower() else ord(digit) - ord("A") + 36
    )


def _sum(values: Value) -> Value:
    if values.type.kind not in SEQUENCES or not values.items:
        raise ValueFault("a list, set or tuple of numbers is required, with at least one")
    total: Number = 0
    for item in values.items:
        if item.is_null:
            raise ValueFault("an element is null")
        total = rounded(total + convert(item, NUMBER).number)
    return number(total)


def _to(kind: Type) -> Function:
    return Function(parameters=(kind,), body=lambda value: value, nulls=True, unknowns=True)


def _signum(value: Value) -> Value:
    return number((value.number > 0) - (value.number < 0))


NUMERIC_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "abs": Function(parameters=(NUMBER,), body=lambda value: number(abs(value.number))),
        "ceil": Function(parameters=(NUMBER,), body=lambda value: number(math.ceil(value.number))),
        "floor": Function(parameters=(NUMBER,), body=lambda value: number(math.floor(value.number))),
        "log": Function(parameters=(NUMBER, NUMBER), body=_float(lambda one, other: math.log(one) / math.log(other))),
        "max": Function(rest=NUMBER, body=_extreme(max)),
        "min": Function(rest=NUMBER, body=_extreme(min)),
        "parseint": Function(parameters=(DYNAMIC, NUMBER), body=_parseint),
        "pow": Function(parameters=(NUMBER, NUMBER), body=_float(math.pow)),
        "signum": Function(parameters=(NUMBER,), body=_signum),
        "sum": Function(parameters=(DYNAMIC,), body=_sum),
        "tobool": _to(BOOL),
        "tonumber": _to(NUMBER),
        "tostring": _to(STRING),
    }
)


# Regular expressions: RE2's, as in Go.


_LARGEST = 64 << 20
_REFERENCE = re.compile(r"\$(?:\{(\w+)\}|(\w+)|(\$))")


def _compile(pattern: str) -> Any:
    """Return the pattern of a function that returns groups."""
    regex = _compile_any(pattern)
    if regex.groupindex and len(regex.groupindex) != regex.groups:
        raise ValueFault("a pattern cannot have both groups with names and groups without")
    return regex


def _compile_any(pattern: str) -> Any:
    """Return the pattern. Raises ValueFault: a pattern that Terraform refuses."""
    try:
        return compiled(pattern)
    except ValueError as error:
        raise ValueFault(f"not a regular expression that Terraform takes: {error}") from error


def _value(match: Any) -> Value:
    pattern = match.re
    if not pattern.groups:
        return string(match.group(0))
    values = [Value(STRING, None) if text is None else string(text) for text in match.groups()]
    if not pattern.groupindex:
        return tuple_value(values)
    return object_value({name: values[number - 1] for name, number in pattern.groupindex.items()})


def _regex(pattern: Value, text: Value) -> Value:
    for match in matches(_compile(pattern.text), text.text):
        return _value(match)
    raise ValueFault("the pattern does not match any part of the string")


def _regexall(pattern: Value, text: Value) -> Value:
    regex = _compile(pattern.text)
    return Value(list_of(_type(regex)), tuple(_value(match) for match in matches(regex, text.text)))


def _type(pattern: Any) -> Type:
    if not pattern.groups:
        return STRING
    if not pattern.groupindex:
        return Type(Kind.TUPLE, elements=(STRING,) * pattern.groups)
    return Type(Kind.OBJECT, attributes=dict.fromkeys(sorted(pattern.groupindex), STRING))


def replace_all(pattern: str, text: str, replacement: str) -> str:
    """Return the text with each match replaced; `$1` and `${name}` refer to groups (Go's ReplaceAllString).

    Raises:
        ValueFault: not a regular expression.

    """
    if (len(text) + 1) * len(replacement) > _LARGEST:
        raise TooLargeError("replace() by a pattern: the string or the replacement is too long")
    parts, end = list[str](), 0
    for match in matches(_compile_any(pattern), text):
        parts += (text[end : match.start()], _expanded(replacement, match))
        end = match.end()
    return "".join((*parts, text[end:]))


def _expanded(replacement: str, match: Any) -> str:
    groups = {name: match.group(number) for name, number in match.re.groupindex.items()}
    groups |= {str(number): match.group(number) for number in range(match.re.groups + 1)}
    return _REFERENCE.sub(lambda one: "$" if one[3] else groups.get(one[1] or one[2]) or "", replacement)


REGEX_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "regex": Function(parameters=(STRING, STRING), body=_regex),
        "regexall": Function(parameters=(STRING, STRING), body=_regexall),
    }
)


# Functions on sets.


_LONGEST = 100_000
"""Elements of a product: beyond any use, and a bound on time and memory."""


def _element_type(value: Value) -> Type:
    if value.type.kind is not Kind.TUPLE:
        return value.type.item
    kind = unify(value.type.elements) if value.type.elements else DYNAMIC
    if kind is None:
        raise ValueFault("all elements must be of one type")
    return kind


def _setproduct(*values: Value) -> Value:
    if len(values) < 2:
        raise ValueFault("at least two arguments are required")
    columns, size = [], 1
    for value in values:
        kind = _element_type(value) if value.type.kind in SEQUENCES else DYNAMIC
        columns.append([convert(item, kind) for item in sequence_of(value)])
        size *= len(columns[-1])
        if size > _LONGEST:
            raise TooLargeError(f"setproduct() makes more than {_LONGEST:,} elements")
    rows = [tuple_value(row) for row in product(*columns)]
    element = rows[0].type if rows else Type(Kind.TUPLE, elements=tuple(map(_element_type, values)))
    return set_value(rows, element) if any(value.type.kind is Kind.SET for value in values) else listed(rows, element)


def _set_operation(choose: Callable[[list[Value], list[Value]], list[Value]]) -> Callable[..., Value]:
    def _operate(*values: Value) -> Value:
        if not values:
            raise ValueFault("at least one argument is required")
        kinds = [value.type.item for value in values if value.items or value.type.item.kind is not Kind.DYNAMIC]
        element = unify(kinds) if kinds else DYNAMIC
        if element is None:
            raise ValueFault("the elements of the sets have no type in common")
        result, *others = [list(convert(value, set_of(element)).items) for value in values]
        for other in others:
            result = choose(result, other)
        return set_value(result, element)

    return _operate


def _in(item: Value, items: list[Value]) -> bool:
    return any(item.payload == each.payload if item.type.is_primitive else equal(item, each) is True for each in items)


_ANY_SET = set_of(DYNAMIC)

SET_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "setintersection": Function(
            rest=_ANY_SET, body=_set_operation(lambda one, other: [item for item in one if _in(item, other)])
        ),
        "setproduct": Function(rest=DYNAMIC, body=_setproduct, structural=True),
        "setsubtract": Function(
            parameters=(_ANY_SET, _ANY_SET),
            body=_set_operation(lambda one, other: [item for item in one if not _in(item, other)]),
        ),
        "setunion": Function(rest=_ANY_SET, body=_set_operation(lambda one, other: one + other)),
    }
)


# Functions on strings.


_LONGEST_STRING = 1 << 20
_LINE_END = re.compile(r"(?:\r\n?|\n)*\Z")
_SPACE = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""Unicode's white space; Python's strip() removes four control characters more."""


def _join(separator: Value, *lists: Value) -> Value:
    items = [item for each in lists for item in each.items]
    if any(item.is_null for item in items):
        raise ValueFault("an element is null: it cannot be joined")
    texts = [item.text for item in items]
    if sum(map(len, texts)) + len(texts) * len(separator.text) > _LONGEST_STRING:
        raise TooLargeError(f"join() makes a string of more than {_LONGEST_STRING:,} characters")
    return string(separator.text.join(texts))


def _split(separator: Value, text: Value) -> Value:
    parts = text.text.split(separator.text) if separator.text else list(text.text)
    return Value(list_of(STRING), tuple(map(string, parts)))


def _replace(text: Value, old: Value, new: Value) -> Value:
    pattern = old.text
    if len(pattern) > 1 and pattern[0] == pattern[-1] == "/":
        return string(replace_all(pattern[1:-1], text.text, new.text))
    if text.text.count(pattern) * len(new.text) > _LONGEST_STRING:
        raise TooLargeError(f"replace() makes a string of more than {_LONGEST_STRING:,} characters")
    return string(text.text.replace(pattern, new.text))


def _substr(text: Value, offset: Value, length: Value) -> Value:
    start, count = offset.number, length.number
    if not isinstance(start, int) or not isinstance(count, int):
        raise ValueFault("offset and length must be whole numbers")
    whole = text.text
    if start < 0:
        start = max(start + len(whole), 0)
    return string(whole[start:] if count < 0 else whole[start : start + count])


def _title(text: Value) -> Value:
    """Return the text with each word's first letter in upper case, by Go's strings.Title."""
    result, before = [], " "
    for character in text.text:
        result.append(
            character if _within_word(before) else character.title() if len(character.title()) == 1 else character
        )
        before = character
    return string("".join(result))


def _within_word(character: str) -> bool:
    if character.isascii():
        return character.isalnum() or character == "_"
    return character.isalpha() or character.isdigit() or not character.isspace()


def _indent(spaces: Value, text: Value) -> Value:
    if not isinstance(spaces.number, int) or not 0 <= spaces.number <= 10_000:
        raise ValueFault("the number of spaces must be whole, and not negative")
    if text.text.count("\n") * spaces.number > _LONGEST_STRING:
        raise TooLargeError(f"indent() makes a string of more than {_LONGEST_STRING:,} characters")
    return string(text.text.replace("\n", "\n" + " " * spaces.number))


def _upper(text: str) -> str:
    """Return the text in upper case, character by character as Go does it."""
    return text.upper() if text.isascii() else "".join(c.upper() if len(c.upper()) == 1 else c for c in text)


def _lower(text: str) -> str:
    return text.lower() if text.isascii() else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


STRING_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "chomp": Function(parameters=(STRING,), body=lambda text: string(_LINE_END.sub("", text.text, count=1))),
        "endswith": Function(parameters=(STRING, STRING), body=lambda text, end: boolean(text.text.endswith(end.text))),
        "indent": Function(parameters=(NUMBER, STRING), body=_indent),
        "join": Function(parameters=(STRING,), rest=list_of(STRING), body=_join),
        "lower": Function(parameters=(STRING,), body=lambda text: string(_lower(text.text))),
        "replace": Function(parameters=(STRING, STRING, STRING), body=_replace),
        "split": Function(parameters=(STRING, STRING), body=_split),
        "startswith": Function(
            parameters=(STRING, STRING), body=lambda text, start: boolean(text.text.startswith(start.text))
        ),
        "strcontains": Function(parameters=(STRING, STRING), body=lambda text, part: boolean(part.text in text.text)),
        "strrev": Function(parameters=(STRING,), body=lambda text: string(text.text[::-1])),
        "substr": Function(parameters=(STRING, NUMBER, NUMBER), body=_substr),
        "title": Function(parameters=(STRING,), body=_title),
        "trim": Function(
            parameters=(STRING, STRING),
            body=lambda text, cut: string(text.text.strip(cut.text) if cut.text else text.text),
        ),
        "trimprefix": Function(
            parameters=(STRING, STRING), body=lambda text, start: string(text.text.removeprefix(start.text))
        ),
        "trimspace": Function(parameters=(STRING,), body=lambda text: string(text.text.strip(_SPACE))),
        "trimsuffix": Function(
            parameters=(STRING, STRING), body=lambda text, end: string(text.text.removesuffix(end.text))
        ),
        "upper": Function(parameters=(STRING,), body=lambda text: string(_upper(text.text))),
    }
)


# yamldecode(): YAML as Terraform reads it, which is not quite YAML 1.1 (zclconf/go-cty-yaml).


_TAGS = "tag:yaml.org,2002:"
_MOST = 200_000
"""Values in one text, each alias counted in full."""

_WORDS: Mapping[str, Value] = MappingProxyType(
    {
        **{word: TRUE for each in ("y", "yes", "true", "on") for word in (each, each.capitalize(), each.upper())},
        **{word: FALSE for each in ("n", "no", "false", "off") for word in (each, each.capitalize(), each.upper())},
        **dict.fromkeys(("", "~", "null", "Null", "NULL"), NULL),
    }
)
_BASED = re.compile(r"0(?:o([0-7]+)|x([0-9a-fA-F]+))\Z")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?(?:[Tt ]|\Z)")


def _yamldecode(text: Value) -> Value:
    try:
        parse_documents(text.text.encode(), "text")  # nested too deep, recursive aliases
        loader = yaml.CBaseLoader(text.text)
        documents = []
        while loader.check_node():
            documents.append(cast("yaml.Node", loader.get_node()))
    except (ConfigError, yaml.YAMLError) as error:
        raise ValueFault(f"not YAML: {str(error).splitlines()[0]}") from error
    if len(documents) != 1:
        raise ValueFault("one document is expected")
    return _Values().value(documents[0])


@define
class _Values:
    """Turns nodes into values; owned by one text."""

    count: int = 0
    sizes: dict[int, tuple[Value, int]] = field(factory=dict)

    def value(self, node: yaml.Node) -> Value:
        """Return the value of a node. Raises ValueFault: it is not understood, or too much."""
        done = self.sizes.get(id(node))
        if done is None:
            before = self.count
            value = self._node_value(node)
            self.count += 1
            self.sizes[id(node)] = value, self.count - before
        else:
            value = done[0]
            self.count += done[1]
        if self.count > _MOST:
            raise ValueFault(f"more than {_MOST:,} values")
        return value

    def _node_value(self, node: yaml.Node) -> Value:
        if isinstance(node, yaml.MappingNode):
            return object_value(self._members(node))
        if isinstance(node, yaml.SequenceNode):
            return tuple_value([self.value(item) for item in node.value])
        return _scalar(cast("yaml.ScalarNode", node))

    def _members(self, node: yaml.MappingNode) -> dict[str, Value]:
        merged: dict[str, Value] = {}
        members: dict[str, Value] = {}
        for key, item in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ValueFault("a key that is a mapping or a list")
            value = self.value(item)
            if key.value == "<<" and not key.style:
                if not isinstance(value.payload, Mapping):
                    raise ValueFault("`<<` merges mappings only")
                merged.update(value.entries)
            else:
                members[string(key.value).text] = value
        return {**merged, **members}


def _scalar(node: yaml.ScalarNode) -> Value:
    text = str(node.value)
    tag = node.tag if node.tag and not node.tag.startswith(_TAGS) else None
    if tag is not None:
        raise ValueFault(f"the tag {tag[:40]} is not understood")
    if node.style:
        return string(text)
    word = _WORDS.get(text)
    if word is not None:
        return word
    based = _BASED.match(text)
    if based is not None:
        return number(int(based[1], 8) if based[1] else int(based[2], 16))
    if _DATE.match(text):
        raise ValueFault("a date without quotes: aclog does not read these")
    parsed = parse_number(text)
    return string(text) if parsed is None else number(parsed)


YAML_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {"yamldecode": Function(parameters=(STRING,), body=_yamldecode)}
)
