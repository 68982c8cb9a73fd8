"""Which names a topic can have (Kafka's Topic.validate). The authorizer is asked before a name is validated."""

import re

LONGEST = 249
"""In characters (Topic.MAX_NAME_LENGTH)."""

LEGAL_CHARACTERS = "xabcdefghijklmnopqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
"""Those of a topic name; the first one is what examples are made of."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_legal_topic(name: str) -> bool:
    """Return whether a topic can have this name."""
    return _LEGAL.fullmatch(name) is not None and name not in (".", "..")
