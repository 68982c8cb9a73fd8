"""Text in YAML: always in double quotes, as without them `yes`, `007` and `1e3` are other things to some parsers."""

import json

_LONGEST_KEY = 120
"""In characters; YAML allows 1,024 before the colon."""


def quoted(text: str) -> str:
    """Return a text as a scalar of one line, with escapes for what parsers refuse or screens do not show."""
    scalar = json.dumps(text, ensure_ascii=False)
    return scalar if scalar.isascii() and scalar.isprintable() else "".join(map(_escaped, scalar))


def quoted_key(text: str, digest: str) -> str:
    """Return a text as a key; a long one is cut, with a digest of what it is the key of."""
    return quoted(text if len(text) <= _LONGEST_KEY else f"{text[:_LONGEST_KEY]} {digest}")


def _escaped(character: str) -> str:
    code = ord(character)
    if code > 0xFFFF:
        return f"\\U{code:08x}"  # older parsers refuse these
    return character if character.isprintable() else f"\\u{code:04x}"
