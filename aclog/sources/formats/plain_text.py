"""Scalars as the tools on the JVM read them: a plain number is a number first, and text again only then."""

import re

from aclog.sources.formats.node import Node

_SAME_AGAIN = re.compile(r"-?(0|[1-9]\d*)")


def plain_text(node: Node, what: str) -> str:
    """Return a scalar as text; `what` names it in errors.

    Raises:
        ConfigError: no scalar, or a number or boolean without quotes, such as 1.10, 007 or True, which is another text
            once it was a number or boolean.

    """
    found = node.text(what)
    if isinstance(node.value, bool):
        same = found.lower() not in {"true", "false"} or found.islower()  # `yes` is text to them
    elif isinstance(node.value, int | float):
        same = _SAME_AGAIN.fullmatch(found) is not None or ":" in found  # `1:30` is text, too
    else:
        same = True
    if not same:
        raise node.error(f"{what} is {found[:60]!r} without quotes, which is read as {node.value}: put it in quotes")
    return found
