"""Operators of Terraform's language."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType

from aclog.sources.formats.terraform.values.access import equal
from aclog.sources.formats.terraform.values.conversion import convert
from aclog.sources.formats.terraform.values.errors import ValueFault
from aclog.sources.formats.terraform.values.numbers import Number, rounded
from aclog.sources.formats.terraform.values.types import BOOL, NUMBER, Type
from aclog.sources.formats.terraform.values.value import Unknown, Value, boolean, number


def binary(operator: str, left: Value, right: Value) -> Value:
    """Return what an operator makes of two values. Raises ValueFault: they are not of its types."""
    if operator in ("==", "!="):
        same = equal(left, right)
        if isinstance(same, Unknown):
            return Value(BOOL, same)
        return boolean(same is (operator == "=="))
    if operator in ("&&", "||"):
        return _logical(operator, convert(left, BOOL), convert(right, BOOL))
    one, other = _operand(left, NUMBER), _operand(right, NUMBER)
    missing = one.unknown or other.unknown
    result_type = BOOL if operator in _COMPARISONS else NUMBER
    if missing is not None:
        return Value(result_type, missing)
    if operator in _COMPARISONS:
        return boolean(_COMPARISONS[operator](one.number, other.number))
    return number(rounded(_ARITHMETIC[operator](one.number, other.number)))


def unary(operator: str, operand: Value) -> Value:
    """Return what an operator makes of a value. Raises ValueFault: it is not of its type."""
    value = _operand(operand, BOOL if operator == "!" else NUMBER)
    if value.unknown is not None:
        return value
    return boolean(value.payload is False) if operator == "!" else number(-value.number)


def _operand(value: Value, wanted: Type) -> Value:
    if value.is_null:
        raise ValueFault(f"an operand is null: expected a {wanted}")
    return convert(value, wanted)


def _logical(operator: str, left: Value, right: Value) -> Value:
    deciding = operator == "||"
    if deciding in (left.payload, right.payload):
        return boolean(deciding)
    if left.is_null or right.is_null:
        raise ValueFault("an operand is null: expected a bool")
    missing = left.unknown or right.unknown
    return boolean(not deciding) if missing is None else Value(BOOL, missing)


def _divide(one: Number, other: Number) -> Number:
    if other == 0:
        raise ValueFault("a division by zero")
    quotient = Fraction(one) / Fraction(other)
    return quotient.numerator if quotient.denominator == 1 else quotient


def _modulo(one: Number, other: Number) -> Number:
    if other == 0:
        return one  # so go-cty answers
    quotient = Fraction(one) / Fraction(other)
    rest = Fraction(one) - int(quotient) * Fraction(other)
    return rest.numerator if rest.denominator == 1 else rest


_ARITHMETIC: Mapping[str, Callable[[Number, Number], Number]] = MappingProxyType(
    {
        "+": lambda one, other: one + other,
        "-": lambda one, other: one - other,
        "*": lambda one, other: one * other,
        "/": _divide,
        "%": _modulo,
    }
)
_COMPARISONS: Mapping[str, Callable[[Number, Number], bool]] = MappingProxyType(
    {
        "<": lambda one, other: one < other,
        "<=": lambda one, other: one <= other,
        ">": lambda one, other: one > other,
        ">=": lambda one, other: one >= other,
    }
)
