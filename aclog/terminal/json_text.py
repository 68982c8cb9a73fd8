"""JSON that a terminal shows as it is."""

import json
import re

_quoted = json.encoder.encode_basestring
"""JSON string without ASCII escapes; json.dumps would construct an encoder for each call."""

# What steers a terminal besides C0, which JSON escapes anyway: DEL and C1, bidirectional marks, and line separators.
_ACTIVE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def json_text(value: object) -> str:
    r"""Return a value as JSON on one line; control and bidirectional characters are `\uXXXX`, others as they are."""
    return escaped_json(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def json_string(text: str) -> str:
    """Return a string as JSON, escaped likewise."""
    return escaped_json(_quoted(text))


def escaped_json(text: str) -> str:
    """Return JSON with those characters escaped."""
    # Outside of strings JSON is ASCII, so that escaping the text escapes the strings.
    if text.isascii() and "\x7f" not in text:
        return text
    return _ACTIVE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
