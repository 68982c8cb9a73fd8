"""Names from the command line: they are UTF-8, whatever the locale says."""

import os

from aclog.metalog.errors import ConfigError


def typed_text(text: str) -> str:
    """The name that was typed: Python reads arguments by the locale, and makes surrogates of what it cannot read.

    Raises:
        ConfigError: it is not UTF-8, which no name in a log is.

    """
    try:
        return text if text.isascii() else os.fsencode(text).decode()
    except UnicodeError:
        if not any("\ud800" <= character <= "\udfff" for character in text):
            return text
    raise ConfigError(f"{ascii(text)[:100]} is not UTF-8")
