"""Functions on numbers, and conversions."""

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType

from aclog.sources.formats.terraform.functions.function import Function
from aclog.sources.formats.terraform.values.conversion import convert
from aclog.sources.formats.terraform.values.errors import ValueFault
from aclog.sources.formats.terraform.values.numbers import Number, rounded
from aclog.sources.formats.terraform.values.types import BOOL, DYNAMIC, NUMBER, SEQUENCES, STRING, Type
from aclog.sources.formats.terraform.values.value import Value, number

_DIGITS = re.compile(r"[+-]?[0-9a-zA-Z]+(?:_[0-9a-zA-Z]+)*\Z")
_MOST_DIGITS = 4_000
"""Of a number that is read, as in values.numbers."""


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
