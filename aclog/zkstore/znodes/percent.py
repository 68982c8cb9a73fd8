"""Percent-encoding of user names and principals in znodes (org.apache.kafka.common.utils.Sanitizer)."""

import re
from urllib.parse import quote, unquote_plus

from aclog.metalog.errors import DecodeError, EncodeError

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def percent_encoded(text: str) -> str:
    """Return the text with all but ASCII letters, digits and `-_.` as %XX of UTF-8 (Sanitizer.sanitize).

    Raises:
        EncodeError: an unpaired surrogate, which UTF-8 cannot encode.

    """
    try:
        return quote(text, safe="").replace("~", "%7E")  # quote() leaves ~ alone, java.net.URLEncoder does not
    except UnicodeEncodeError:
        raise EncodeError(f"{text!r}: expected no unpaired surrogate, which UTF-8 cannot encode") from None


def percent_decoded(text: str) -> str:
    """Return the decoded text; `+` is a space, as in java.net.URLDecoder.

    Raises:
        DecodeError: a `%` without two hexadecimal digits after it, or bytes that are not UTF-8.

    """
    if found := _BAD_ESCAPE.search(text):
        raise DecodeError(f"{text!r}: expected two hexadecimal digits after each %", position=found.start())
    try:
        return unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        raise DecodeError(f"{text!r}: expected percent-encoded UTF-8") from None
