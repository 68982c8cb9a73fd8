"""Codes of enums as text, without loss: the name, or the number of a code that has none."""

from enum import IntEnum

from aclog.metalog.errors import ConfigError


def code_text(kind: type[IntEnum], code: int) -> str:
    """The name of the code; its decimal text if this Kafka has no name for it."""
    try:
        return kind(code).name
    except ValueError:
        return str(code)


def parse_code(kind: type[IntEnum], text: str) -> int:
    """The code of such a text.

    Raises:
        ConfigError: neither a name nor a number from -128 to 127.

    """
    if text in kind.__members__:
        return int(kind[text])
    if text.removeprefix("-").isdecimal() and text.isascii() and len(text) <= 4 and -128 <= int(text) <= 127:
        return int(text)
    raise ConfigError(f"{text[:40]!r} is neither one of {', '.join(kind.__members__)} nor a code")
