"""Regular expressions of Java over names of topics, in time linear in the name."""

import re
from collections.abc import Sequence

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.re2_patterns import compiled

_REPETITION = re.compile(r"\{\d+(,\d*)?\}")


def matching(pattern: str, topics: Sequence[str]) -> list[str]:
    """Return the topics whose whole name matches an expression.

    Raises:
        ConfigError: it is none, or means something else, or nothing, to RE2: intersections and unions of classes,
            look-around, back references, possessive repetition.

    """
    _refuse_dialect(pattern)
    try:
        compiled(pattern)  # by itself: `a)|(b` is none, though it is one in brackets
        whole = compiled(rf"\A(?:{pattern})\z")
    except ValueError as error:
        raise ConfigError(f"not a regular expression that can be expanded: {error}") from error
    return [topic for topic in topics if whole.search(topic) is not None]


def _refuse_dialect(pattern: str) -> None:
    """Refuse what Java and RE2 both accept, and read differently."""
    in_class = False
    at = 0
    while at < len(pattern):
        here = pattern[at]
        if here == "\\":
            end = pattern.find("\\E", at) if pattern.startswith("\\Q", at) else at
            at = len(pattern) if end < 0 else end + 2
            continue
        if in_class and (here == "[" or pattern.startswith("&&", at)):
            raise ConfigError("a class of characters inside another, or an intersection of two: only Java has these")
        if not in_class and here == "{" and not _REPETITION.match(pattern, at):
            raise ConfigError("{ without a repetition such as {2,3}: Java refuses it")
        if here == "[":
            in_class = True
            at += pattern.startswith("^", at + 1)
            if pattern.startswith("]", at + 1):
                raise ConfigError("a class of characters that begins with ]: write \\]")
        in_class = in_class and here != "]"
        at += 1
