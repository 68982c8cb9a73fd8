"""ssl.principal.mapping.rules: from a TLS client's distinguished name to its principal's name. Pure.

Kafka's SslPrincipalMapper with its quirks: the replacement is applied to every match in the name, and a reference to a
group that does not exist is literal text.
"""

import re
from typing import Self

from attrs import field, frozen

from aclog.metalog.errors import ConfigError, MetadataError
from aclog.nodes.config.java_regex import find_all, java_pattern, replace_all

KEY = "ssl.principal.mapping.rules"

_RULE = r"(DEFAULT)|RULE:((\\.|[^\\/])*)/((\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER = java_pattern(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER = java_pattern(_RULE)
_REFERENCE = re.compile(r"\$([0-9]+)")
_JAVA_BLANKS = "".join(map(chr, range(0x21)))
_MAX_INT = (1 << 31) - 1


class NoMatchingRuleError(MetadataError):
    """No rule of ssl.principal.mapping.rules gives the certificate a principal (NoMatchingRule)."""


@frozen(kw_only=True)
class Rule:
    """A mapping rule: `RULE:pattern/replacement/[LU]`, or DEFAULT if there is no pattern. `text` is Kafka's."""

    pattern: re.Pattern[str] | None = field(default=None, eq=False)
    text: str = "DEFAULT"
    replacement: str = ""
    case: str = ""
    """`L` for lower case, `U` for upper case."""

    def __str__(self) -> str:
        return self.text

    def apply(self, name: str) -> str | None:
        """Return the principal's name; None if the rule does not match; ValueError if its replacement fails."""
        if self.pattern is None:
            return name
        if not self.pattern.fullmatch(name):
            return None
        result = replace_all(self.pattern, name, _literal_references(self.replacement, self.pattern.groups))
        if self.case == "L":
            return result.lower()
        return result.upper() if self.case == "U" else result


@frozen(kw_only=True)
class SslPrincipalMapper:
    """The rules in order; the first match wins."""

    rules: tuple[Rule, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the rules.

        Raises:
            ConfigError: an invalid rule, with Kafka's error text, or an invalid pattern.

        """
        pieces = (match[1] for match in find_all(_SPLITTER, text.strip(_JAVA_BLANKS)))
        rules = (_rule(piece) for piece in pieces)
        return cls(rules=tuple(rule for rule in rules if rule is not None))

    def name(self, distinguished_name: str) -> str:
        """Return the principal's name.

        Raises:
            NoMatchingRuleError: no rule matches, or the replacement of the one that does fails.

        """
        for rule in self.rules:
            try:
                name = rule.apply(distinguished_name)
            except ValueError as error:
                raise NoMatchingRuleError(f"{KEY}: {rule} fails for {distinguished_name}: {error}") from error
            if name is not None:
                return name
        rules = ", ".join(map(str, self.rules))
        raise NoMatchingRuleError(f"No rules apply to {distinguished_name}, rules [{rules}]")


def _rule(text: str) -> Rule | None:
    """Parse one rule; None if it is empty."""
    match = _PARSER.match(text)
    end = match.end() if match is not None else 0
    if match is None or end != len(text):
        raise ConfigError(f"{KEY}: Invalid rule: `{text}`, unmatched substring: `{text[end:]}`")
    if match[1] is not None:
        return Rule()
    if match[2] is None:
        return None
    pattern, replacement, case = match[2], match[4], match[6]
    shown = f"RULE:{pattern}/{replacement}" + (f"/{case}" if case else "")
    try:
        return Rule(pattern=java_pattern(pattern), text=shown, replacement=replacement, case=case)
    except ConfigError as error:
        raise ConfigError(f"{KEY}: {shown}: {error}") from error


def _literal_references(replacement: str, groups: int) -> str:
    """Escape the references to groups that the pattern does not have.

    Positions refer to the text before any insertion, as in Kafka: from the second such reference on they are off.
    """
    value = replacement
    if groups == 0:
        return value
    for match in _REFERENCE.finditer(replacement):
        number = int(match[1])
        if match[1].startswith("0"):
            continue
        if number > _MAX_INT:
            raise ValueError(f'For input string: "{match[1]}"')
        while number > groups and number >= 10:
            number //= 10
        if number > groups:
            value = f"{value[: match.start()]}\\{value[match.start() :]}"
    return value
