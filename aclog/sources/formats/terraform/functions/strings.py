"""Functions on strings."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from aclog.sources.formats.terraform.functions.function import Function
from aclog.sources.formats.terraform.functions.regexes import replace_all
from aclog.sources.formats.terraform.values.errors import TooLargeError, ValueFault
from aclog.sources.formats.terraform.values.types import NUMBER, STRING, list_of
from aclog.sources.formats.terraform.values.value import Value, boolean, string

_LONGEST = 1 << 20
_LINE_END = re.compile(r"(?:\r\n?|\n)*\Z")
_SPACE = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What Unicode calls white space; Python's strip() takes four control characters more."""


def _join(separator: Value, *lists: Value) -> Value:
    items = [item for each in lists for item in each.items]
    if any(item.is_null for item in items):
        raise ValueFault("an element is null: it cannot be joined")
    texts = [item.text for item in items]
    if sum(map(len, texts)) + len(texts) * len(separator.text) > _LONGEST:
        raise TooLargeError(f"join() makes a string of more than {_LONGEST:,} characters")
    return string(separator.text.join(texts))


def _split(separator: Value, text: Value) -> Value:
    parts = text.text.split(separator.text) if separator.text else list(text.text)
    return Value(list_of(STRING), tuple(map(string, parts)))


def _replace(text: Value, old: Value, new: Value) -> Value:
    pattern = old.text
    if len(pattern) > 1 and pattern[0] == pattern[-1] == "/":
        return string(replace_all(pattern[1:-1], text.text, new.text))
    if text.text.count(pattern) * len(new.text) > _LONGEST:
        raise TooLargeError(f"replace() makes a string of more than {_LONGEST:,} characters")
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
    if text.text.count("\n") * spaces.number > _LONGEST:
        raise TooLargeError(f"indent() makes a string of more than {_LONGEST:,} characters")
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
