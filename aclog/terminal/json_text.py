"""JSON that a terminal shows as it is."""

import json

from aclog.metalog.printable import printable_json

_quoted = json.encoder.encode_basestring
"""JSON string without ASCII escapes; json.dumps would construct an encoder for each call."""


def json_text(value: object) -> str:
    r"""Return a value as JSON on one line; what is not printable is `\uXXXX`, other characters as they are."""
    return printable_json(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def json_string(text: str) -> str:
    """Return a string as JSON, escaped likewise."""
    return printable_json(_quoted(text))
