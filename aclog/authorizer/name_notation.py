r"""Names as questions, tests of rules and answers write them: `orders`, or `pii-*` for all that begin with `pii-`.

- A text without a `*` is that name, backslashes and all.
- A `*` at the end is a prefix: all names that begin with what precedes it; `*` alone is every name.
- `\*` is a star in a name. A star that is neither at the end nor written so is an error.
- Backslashes right before a `*` count in pairs: each pair is one backslash. An odd one escapes the star, so
  `a\\*` is the prefix `a\`, and `a\\\*` is the name `a\*`. All other backslashes are themselves.

Kafka's own commands, its requests and rules have names as they are, with a pattern type: LITERAL or PREFIXED.
"""

import re

from aclog.authorizer.acl import WILDCARD, PatternType, ResourcePattern, ResourceType, code_name
from aclog.metalog.errors import ConfigError

_STAR = re.compile(r"(?<!\\)(\\*)\*")
"""A star with all backslashes right before it; a long run without a star is looked at once."""
_SHOWN = 80


def parse_name(text: str) -> tuple[str, PatternType]:
    """Return the name or prefix that a text stands for. Raises ConfigError: a star neither at the end nor escaped."""
    parts, end = [], 0
    for star in _STAR.finditer(text):
        backslashes = star[1]
        parts.append(text[end : star.start()] + backslashes[: len(backslashes) // 2])
        end = star.end()
        if len(backslashes) % 2:
            parts.append(WILDCARD)
        elif end == len(text):
            return "".join(parts), PatternType.PREFIXED
        else:
            raise ConfigError(
                rf"{text[:_SHOWN]} has a * before its end: expected PREFIX*, or \* for a star in the name"
            )
    return "".join((*parts, text[end:])), PatternType.LITERAL


def name_text(name: str, pattern_type: int = PatternType.LITERAL) -> str:
    """Return the text that `parse_name` reads as this name, or as this prefix if the type is PREFIXED."""
    text = _STAR.sub(lambda star: rf"{star[1]}{star[1]}\*", name)
    if pattern_type == PatternType.LITERAL:
        return text
    last_backslashes = text[len(text.rstrip("\\")) :]
    return f"{text}{last_backslashes}{WILDCARD}"


def pattern_text(pattern: ResourcePattern) -> str:
    """Return the name of a pattern as `name_text`."""
    return name_text(pattern.name, pattern.pattern_type)


def parse_pattern(kind: ResourceType, text: str) -> ResourcePattern:
    """Return the pattern for a text and a type. Raises as `parse_name`."""
    name, pattern_type = parse_name(text)
    return ResourcePattern(resource_type=kind, name=name, pattern_type=pattern_type)


def asked_pattern(kind: ResourceType, text: str, pattern_type: int | None = None) -> ResourcePattern:
    """Return what a question names; with a pattern type the name is as it is, as in Kafka's commands.

    Raises:
        ConfigError: as `parse_name`, or a star in a topic's name.

    """
    if pattern_type is not None:
        return ResourcePattern(resource_type=kind, name=text, pattern_type=pattern_type)
    try:
        pattern = parse_pattern(kind, text)
    except ConfigError as error:
        raise ConfigError(f"{code_name(ResourceType, kind)}: {error}") from error
    check_topic_name(pattern)
    return pattern


def check_topic_name(pattern: ResourcePattern) -> None:
    """Raise ConfigError if a question names topics with a star: it is mistyped, since there can be none."""
    if pattern.resource_type == ResourceType.TOPIC and WILDCARD in pattern.name:
        raise ConfigError(
            f"TOPIC: {pattern_text(pattern)[:_SHOWN]}: no topic can have a * in its name: expected a name, or "
            "PREFIX* for all that begin so; with a pattern type, LITERAL or PREFIXED, a name is taken as it is"
        )


def rule_pattern(kind: ResourceType, text: str) -> ResourcePattern:
    """Return the pattern of a rule on what a question names so: LITERAL `*` for every name.

    Raises:
        ConfigError: as `asked_pattern`; or it is the name `*`, which no rule can be on without being on all names.

    """
    asked = asked_pattern(kind, text)
    if asked.name == WILDCARD and not is_set(asked):
        raise ConfigError(f"{code_name(ResourceType, kind)}: {text}: a rule on the name * is on every name: expected *")
    if is_set(asked) and not asked.name:
        return ResourcePattern(resource_type=kind, name=WILDCARD)
    return asked


def is_set(pattern: ResourcePattern) -> bool:
    """Return whether a pattern of a question stands for all names that begin so."""
    return pattern.pattern_type == PatternType.PREFIXED
