"""Names inside node names: percent-encoded as org.apache.kafka.common.utils.Sanitizer has it."""

import re
from urllib.parse import quote, unquote_plus

from aclog.metalog.errors import DecodeError, EncodeError

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def percent_encoded(text: str) -> str:
    """The text with all but ASCII letters, digits and `-_.` as %XX of UTF-8 (Sanitizer.sanitize).

    Raises:
        EncodeError: half a surrogate pair, which UTF-8 does not have.

    """
    try:
        return quote(text, safe="").replace("~", "%7E")
    except UnicodeEncodeError:
        raise EncodeError(f"{text!r}: expected text that UTF-8 holds") from None


def percent_decoded(text: str) -> str:
    """The text that was encoded; `+` is a space, as in java.net.URLDecoder.

    Raises:
        DecodeError: a `%` that two hexadecimal digits do not follow, or no UTF-8.

    """
    if found := _BAD_ESCAPE.search(text):
        raise DecodeError(f"{text!r}: expected two hexadecimal digits after each %", position=found.start())
    try:
        return unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        raise DecodeError(f"{text!r}: expected UTF-8 in percent-encoding") from None
