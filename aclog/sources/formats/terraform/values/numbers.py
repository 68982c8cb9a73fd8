"""Numbers: binary floating point with 512 bits of mantissa, as go-cty has them (math/big.Float)."""

import re
from fractions import Fraction
from typing import TypeAlias

from aclog.sources.formats.terraform.values.errors import ValueFault

Number: TypeAlias = int | Fraction
"""An int where the number is whole, else a Fraction whose denominator is a power of two."""

_PRECISION = 512
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_LARGEST_BITS = 13_000
_LONGEST, _LARGEST_EXPONENT = 4_000, 3_800
"""Of a decimal number that is read: beyond any use, and a bound on the time that one takes."""


def rounded(exact: Number) -> Number:
    """Return the nearest number of 512 bits; a tie goes to the even one."""
    if isinstance(exact, int):
        if exact.bit_length() <= _PRECISION:
            return exact
    elif exact.denominator == 1:
        return rounded(exact.numerator)
    numerator, denominator = (exact, 1) if isinstance(exact, int) else (exact.numerator, exact.denominator)
    if max(numerator.bit_length(), denominator.bit_length()) > _LARGEST_BITS:
        raise ValueFault("a number that is too large, or too small")
    shift = _PRECISION - (abs(numerator).bit_length() - denominator.bit_length())
    mantissa = _nearest(numerator, denominator, shift)
    while mantissa.bit_length() > _PRECISION:
        shift -= 1
        mantissa = _nearest(numerator, denominator, shift)
    value = Fraction(mantissa, 1 << shift) if shift >= 0 else Fraction(mantissa << -shift)
    return value.numerator if value.denominator == 1 else value


def _nearest(numerator: int, denominator: int, shift: int) -> int:
    return round(
        Fraction(numerator << shift, denominator) if shift >= 0 else Fraction(numerator, denominator << -shift)
    )


def parse_number(text: str) -> Number | None:
    """Return the number in a text, as cty.ParseNumberVal reads it; None if it is none."""
    if _NUMBER.match(text) is None or len(text) > _LONGEST:
        return None
    _, _, exponent = text.lower().partition("e")
    if exponent and (len(exponent) > 6 or abs(int(exponent)) > _LARGEST_EXPONENT):
        return None
    return rounded(Fraction(text))


def number_text(value: Number) -> str:
    """Return the shortest decimal that is read back as the same number, without an exponent (big.Float's 'f', -1)."""
    if isinstance(value, int) and value.bit_length() <= _PRECISION:
        return str(value)
    sign = "-" if value < 0 else ""
    digits, point = _shortest(Fraction(-value if value < 0 else value))
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return sign + digits.ljust(point, "0")
    return f"{sign}{digits[:point]}.{digits[point:]}"


def _shortest(value: Fraction) -> tuple[str, int]:
    """Return the digits, and how many of them are before the decimal point."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if _power(2, exponent) > value:
        exponent -= 1
    ulp = _power(2, exponent - _PRECISION + 1)
    half = ulp / 2
    low, high = value - (half / 2 if value == _power(2, exponent) else half), value + half
    point = len(str(int(value))) if value >= 1 else 0
    while value < _power(10, point - 1):
        point -= 1
    for count in range(1, 400):
        unit = _power(10, point - count)
        below = value // unit
        best = min((below, below + 1), key=lambda n: abs(n * unit - value))
        for digits in (best, below, below + 1):
            if low < digits * unit < high:
                text = str(digits)
                return text.rstrip("0") or "0", point + len(text) - count
    return str(value), point


def _power(base: int, exponent: int) -> Fraction:
    return Fraction(base**exponent) if exponent >= 0 else Fraction(1, base**-exponent)
