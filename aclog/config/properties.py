"""Java properties files, and the types of their values."""

import re
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Self

import javaproperties
from attrs import evolve, field

from aclog.config.node_config import HostPort
from aclog.metalog.errors import ConfigError, LogError, MetadataError
from aclog.metalog.filelog.files import read_small
from aclog.metalog.values import frozen

# Java properties files, and typed access to their values as Kafka's ConfigDef parses them.


_BLANKS = "".join(map(chr, range(0x21)))
"""The characters that Java's String.trim removes."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_PROVIDED = re.compile(r"\$\{[^}]*:[^}]*\}")
"""A reference that Kafka's ConfigTransformer replaces with a config provider's value."""

# Keys whose values are never shown; tokens and PEM texts are secrets too.
_SECRET = re.compile(
    r"password|passphrase|secret|jaas|token|keystore\.key$|certificate\.chain$|truststore\.certificates$", re.IGNORECASE
)
_MAX_INT, _MAX_LONG = (1 << 31) - 1, (1 << 63) - 1


def listener_prefix(listener_name: str) -> str:
    """Return the prefix of one listener's keys (ListenerName.configPrefix)."""
    return f"listener.name.{listener_name.lower()}."


def read_properties(path: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return a file's properties, and the keys that occur again with another value (the last one wins, as in Java).

    Raises:
        ConfigError: the file is missing or unreadable, or contains a malformed escape.

    """
    try:
        data = read_small(path)
    except LogError as error:
        raise ConfigError(str(error)) from error
    if data is None:
        raise ConfigError(f"{path}: no such file: expected a properties file")
    try:
        # As pairs, since a dict would hide keys that are set twice, which is usually a mistake.
        pairs: list[tuple[str, str]] = javaproperties.load(BytesIO(data), object_pairs_hook=list)
    except ValueError as error:
        raise ConfigError(f"{path}: a malformed \\u escape: expected four hexadecimal digits after it") from error
    properties: dict[str, str] = {}
    repeated = dict.fromkeys(key for key, value in pairs if properties.setdefault(key, value) != value)
    properties.update(pairs)
    return properties, tuple(repeated)


@frozen(kw_only=True)
class Properties:
    """Properties and their source. With a listener's prefix, its own keys take precedence over the general ones.

    Values are trimmed, as in Kafka. Errors name the file and the key; they quote the value only if it is not a secret.
    """

    values: Mapping[str, str] = field(repr=lambda values: f"{len(values)} properties")
    where: str
    prefix: str = ""
    exclusive: bool = False
    """Whether only prefixed keys count: the same keys without the prefix configure something else."""

    def of_listener(self, name: str) -> "Properties":
        """Return the properties as one listener sees them (AbstractConfig.valuesWithPrefixOverride)."""
        return evolve(self, prefix=listener_prefix(name))

    def under(self, prefix: str) -> "Properties":
        """Return only the properties with a prefix (AbstractConfig.originalsWithPrefix)."""
        values = {key: value for key, value in self.values.items() if key.startswith(prefix)}
        return evolve(self, values=values, prefix=prefix, exclusive=True)

    def full_key(self, key: str) -> str:
        """Return the effective key: the listener's own if it is set."""
        own = self.prefix + key
        return own if self.exclusive or own in self.values else key

    def text(self, key: str) -> str | None:
        """Return the value; None if the key is absent."""
        value = self.values.get(self.full_key(key))
        return None if value is None else value.strip(_BLANKS)

    def text_or_none(self, key: str) -> str | None:
        """Return the value; None if the key is absent or empty."""
        return self.text(key) or None

    def items(self, key: str) -> tuple[str, ...] | None:
        """Return the comma-separated parts, trimmed; None if the key is absent, () if it is empty.

        Raises:
            ConfigError: an empty part.

        """
        value = self.text(key)
        if not value:
            return None if value is None else ()
        parts = tuple(part.strip(_BLANKS) for part in value.split(","))
        if not all(parts):
            raise self.error(key, "an empty part: expected comma-separated values")
        return parts

    def choice(self, key: str, choices: tuple[str, ...], default: str) -> str:
        """Return the value, one of `choices`.

        Raises:
            ConfigError: another value.

        """
        value = self.text(key)
        if value is None:
            return default
        if value not in choices:
            raise self.error(key, f"{self.display_value(key)}: expected one of {', '.join(choices)}")
        return value

    def boolean(self, key: str, *, default: bool) -> bool:
        """Return whether the value is `true`, in any case of its letters.

        Raises:
            ConfigError: neither `true` nor `false`.

        """
        value = self.text(key)
        if value is None:
            return default
        if value.lower() not in {"true", "false"}:
            raise self.error(key, f"{self.display_value(key)}: expected true or false")
        return value.lower() == "true"

    def integer(self, key: str, default: int, *, least: int = -_MAX_INT - 1, most: int = _MAX_INT) -> int:
        """Return the integer, within bounds.

        Raises:
            ConfigError: not an integer, or out of bounds.

        """
        value = self.text(key)
        if value is None:
            return default
        if not _INTEGER.fullmatch(value) or not least <= int(value) <= most:
            raise self.error(key, f"{self.display_value(key)}: expected a whole number from {least} to {most}")
        return int(value)

    def long(self, key: str, default: int, *, least: int = -_MAX_LONG - 1) -> int:
        """Return the 64-bit integer, `least` or more.

        Raises:
            ConfigError: as `integer`.

        """
        return self.integer(key, default, least=least, most=_MAX_LONG)

    def display_value(self, key: str) -> str:
        """Return the value for an error text, or a placeholder if it is a secret."""
        full = self.full_key(key)
        return "its value (not shown)" if _SECRET.search(full) else repr(self.values.get(full, ""))

    def error(self, key: str, why: str) -> ConfigError:
        """Return the error for a key."""
        return ConfigError(f"{self.where}: {self.full_key(key)}: {why}")

    def contradiction(self, one: str, other: str, why: str) -> ConfigError:
        """Return the error for two keys that contradict each other."""
        return ConfigError(
            f"{self.where}: {self.full_key(one)} and {self.full_key(other)} contradict each other: {why}"
        )

    def check_values(self) -> None:
        """Reject values that cannot be used: with a NUL, or with a reference to a config provider.

        Raises:
            ConfigError: there is one, or config.providers is set.

        """
        if self.text_or_none("config.providers"):
            raise self.error("config.providers", "config providers are not supported: expected the values themselves")
        for key, value in self.values.items():
            if "\0" in value:
                raise self.error(key, "its value contains a NUL character")
            if _PROVIDED.search(value):
                raise self.error(
                    key, "a ${...} reference to a config provider: not supported, expected the value itself"
                )


# Java's regular expressions, translated to Python's, with Java's search and replace semantics.
#
# Pure. What Python cannot express (`\p{..}`, nested character classes, inline flags) is refused rather than
# approximated.


_TERMINATORS = "\\n\\r\\x85\\u2028\\u2029"
# Java's $ also matches before a final line terminator, of which Java has more than Python.
_END = "(?=(?:\\r\\n|(?<!\\r)\\n|[\\r\\x85\\u2028\\u2029])?\\Z)"
_SAME_ESCAPES = frozenset("dDsSwWbBAntrfaxu123456789")
_CLASS_ESCAPES = frozenset("dDsSwWntrfaxu")
_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)|\\k<(?P<backreference>[A-Za-z][A-Za-z0-9]*)>|\\(?P<escape>.)|\(\?<(?P<name>[A-Za-z]"
    r"[A-Za-z0-9]*)>|(?P<group>\(\?(?:[:=!>]|<[=!]|i:))|(?P<flags>\(\?.?)|\[(?P<class>\^?(?:\\.|[^\]\\])+)\]"
    r"|(?P<any>\.)|(?P<end>\$)|(?P<plain>[^\\\[]|\[|\\)",
    re.DOTALL,
)


def java_pattern(text: str) -> re.Pattern[str]:
    """Compile as java.util.regex.Pattern.compile does.

    Raises:
        ConfigError: Java would reject it, or Python has no equivalent.

    """
    try:
        start = re.match(r"\(\?i\)", text)
        # Java's \d, \w and \s match ASCII only unless a flag changes that.
        flags = re.ASCII | (re.IGNORECASE if start else 0)
        return re.compile("".join(map(_translated, _TOKEN.finditer(text, start.end() if start else 0))), flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(f"the regular expression `{text}` is malformed: {error}") from error


def find_all(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield all matches as Matcher.find does: after an empty match, it continues one character further."""
    position = 0
    while position <= len(text):
        match = pattern.search(text, position)
        if match is None:
            return
        yield match
        position = match.end() + (match.end() == match.start())


def replace_all(pattern: re.Pattern[str], text: str, replacement: str) -> str:
    """Replace all matches as String.replaceAll does; ValueError if the replacement names an unknown group."""
    parts, position = [], 0
    for match in find_all(pattern, text):
        parts += [text[position : match.start()], _expanded(replacement, match)]
        position = match.end()
    return "".join((*parts, text[position:]))


def _expanded(replacement: str, match: re.Match[str]) -> str:
    parts, position = [], 0
    while position < len(replacement):
        character = replacement[position]
        position += 1
        if character == "\\":
            if position == len(replacement):
                raise ValueError("character to be escaped is missing")
            parts.append(replacement[position])
            position += 1
        elif character == "$":
            group, position = _reference(replacement, position, match.re)
            parts.append(match[group] or "")
        else:
            parts.append(character)
    return "".join(parts)


def _reference(replacement: str, position: int, pattern: re.Pattern[str]) -> tuple[int, int]:
    """Return the group that a `$` refers to, and where its name or number ends."""
    named = re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}").match(replacement, position)
    if named is not None:
        if named[1] not in pattern.groupindex:
            raise ValueError(f"No group with name {{{named[1]}}}")
        return pattern.groupindex[named[1]], named.end()
    digits = re.compile(r"[0-9]+").match(replacement, position)
    if digits is None:
        raise ValueError("Illegal group reference")
    end = position + 1  # the first digit always counts, further ones only while that group exists
    while end < digits.end() and int(replacement[position : end + 1]) <= pattern.groups:
        end += 1
    group = int(replacement[position:end])
    if group > pattern.groups:
        raise ValueError(f"No group {group}")
    return group, end


def _translated(token: re.Match[str]) -> str:
    kind, text = token.lastgroup or "plain", token[0]
    if kind == "flags" or text in ("[", "\\"):
        raise _unsupported(text)
    return _TRANSLATIONS[kind](token[kind], text)


def _escape(value: str, text: str) -> str:
    if value in "zZ":
        return "\\Z" if value == "z" else _END
    if value.isalnum() and value not in _SAME_ESCAPES:
        raise _unsupported(text)
    return text


def _class(value: str, text: str) -> str:
    """Translate a character class; nested classes are refused, since Python reads them as plain characters."""
    parts = []
    for part in re.findall(r"\\.|[^\\]", value, re.DOTALL):
        escaped = part[1:]
        if part == "[" or (escaped.isalnum() and escaped not in _CLASS_ESCAPES):
            raise _unsupported(text)
        parts.append(f"\\{part}" if part in "&|~" else part)
    if "&&" in value or value == "^":
        raise _unsupported(text)
    return f"[{''.join(parts)}]"


def _unsupported(text: str) -> ConfigError:
    return ConfigError(f"`{text}` is not supported in regular expressions")


_TRANSLATIONS: dict[str, Callable[[str, str], str]] = {
    "quoted": lambda value, _: re.escape(value),
    "backreference": lambda value, _: f"(?P={value})",
    "name": lambda value, _: f"(?P<{value}>",
    "escape": _escape,
    "class": _class,
    "any": lambda _, __: f"[^{_TERMINATORS}]",
    "end": lambda _, __: _END,
    "group": lambda value, _: value,
    "plain": lambda value, _: value,
}


# Addresses in properties: `listeners`, `advertised.listeners`, bootstrap servers, voters (EndPoint, QuorumConfig).


_HOST_PORT = r"(?:\[(?P<bracketed>[0-9a-zA-Z%._:-]*)\]|(?P<host>[0-9a-zA-Z%._:-]*)):(?P<port>[0-9]{1,5})"
_ENDPOINT = re.compile(rf"(?P<name>[A-Za-z0-9_.-]+)://{_HOST_PORT}")
_SERVER = re.compile(rf"(?:[0-9a-zA-Z%._-]*://)?{_HOST_PORT}")
_VOTER = re.compile(rf"(?P<id>[0-9]{{1,10}})@{_HOST_PORT}")
_MAX_PORT = 65_535
_MAX_ID = (1 << 31) - 1
_NOT_YET_KNOWN = HostPort(host="0.0.0.0", port=0)  # noqa: S104 - only compared with
"""The placeholder for a voter whose address is not known yet (QuorumConfig.UNKNOWN_ADDRESS)."""


@frozen(kw_only=True)
class ListenerAddress:
    """A listener's name, in upper case (ListenerName.normalised), and its address; the host may be empty."""

    name: str
    address: HostPort

    def __str__(self) -> str:
        return f"{self.name}://{self.address}"


def listener_addresses(properties: Properties, key: str) -> tuple[ListenerAddress, ...] | None:
    """Return the listeners under a key, in order; None if the key is absent.

    Raises:
        ConfigError: an empty list, an entry that is not NAME://host:port, or a duplicate name.

    """
    parts = properties.items(key)
    if parts is None:
        return None
    if not parts:
        raise properties.error(key, "empty: expected NAME://host:port")
    addresses = []
    for part in parts:
        match = _ENDPOINT.fullmatch(part)
        if match is None:
            raise properties.error(key, f"{part!r}: expected NAME://host:port")
        addresses.append(ListenerAddress(name=match["name"].upper(), address=_host_port(properties, key, part, match)))
    names = [listener.name for listener in addresses]
    for name in names:
        if names.count(name) > 1:
            raise properties.error(key, f"duplicate listener {name}: expected unique names")
    return tuple(addresses)


def check_ports(properties: Properties, key: str, listeners: tuple[ListenerAddress, ...]) -> None:
    """Check that listeners have different ports, except for a pair of IPv4 and IPv6 hosts (KIP-797).

    Raises:
        ConfigError: two listeners conflict.

    """
    by_port: dict[int, ListenerAddress] = {}
    for listener in listeners:
        other = by_port.setdefault(listener.address.port, listener)
        if other is listener or not listener.address.port:
            continue
        if {_family(other.address.host), _family(listener.address.host)} != {IPv4Address, IPv6Address}:
            raise properties.error(
                key, f"{other} and {listener} have the same port: expected different ones, or one IPv4 and one IPv6"
            )


def _family(host: str) -> type[IPv4Address | IPv6Address] | None:
    try:
        return type(ip_address(host))
    except ValueError:
        return None


def servers(properties: Properties, key: str) -> tuple[HostPort, ...]:
    """Return the `host:port` list under a key; () if it is absent or empty.

    Raises:
        ConfigError: an entry that is not host:port.

    """
    addresses = []
    for part in properties.items(key) or ():
        match = _SERVER.fullmatch(part)
        if match is None or not (match["host"] or match["bracketed"]):
            raise properties.error(key, f"{part!r}: expected host:port")
        addresses.append(_host_port(properties, key, part, match))
    return tuple(addresses)


def voters(properties: Properties, key: str) -> dict[int, HostPort]:
    """Return the `id@host:port` list under a key; {} if it is absent or empty.

    Raises:
        ConfigError: an entry that is not id@host:port, or a duplicate id.

    """
    addresses: dict[int, HostPort] = {}
    for part in properties.items(key) or ():
        match = _VOTER.fullmatch(part)
        if match is None or int(match["id"]) > _MAX_ID or not (match["host"] or match["bracketed"]):
            raise properties.error(key, f"{part!r}: expected id@host:port")
        if int(match["id"]) in addresses:
            raise properties.error(key, f"duplicate voter {match['id']}: expected unique ids")
        addresses[int(match["id"])] = _host_port(properties, key, part, match)
    return addresses


def known_addresses(addresses: tuple[HostPort, ...]) -> tuple[HostPort, ...]:
    """Return the addresses without placeholders and duplicates."""
    return tuple(dict.fromkeys(address for address in addresses if address != _NOT_YET_KNOWN))


def _host_port(properties: Properties, key: str, part: str, match: re.Match[str]) -> HostPort:
    port = int(match["port"])
    if port > _MAX_PORT:
        raise properties.error(key, f"{part!r}: expected a port up to {_MAX_PORT}")
    return HostPort(host=match["bracketed"] or match["host"] or "", port=port)


# ssl.principal.mapping.rules: from a TLS client's distinguished name to its principal's name. Pure.
#
# Kafka's SslPrincipalMapper with its quirks: the replacement is applied to every match in the name, and a reference
# to a group that does not exist is literal text.


KEY = "ssl.principal.mapping.rules"

_RULE = r"(DEFAULT)|RULE:((\\.|[^\\/])*)/((\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER = java_pattern(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER = java_pattern(_RULE)
_REFERENCE = re.compile(r"\$([0-9]+)")
_MAX_INDEX = (1 << 31) - 1


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
        pieces = (match[1] for match in find_all(_SPLITTER, text.strip(_BLANKS)))
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
    rule_text = f"RULE:{pattern}/{replacement}" + (f"/{case}" if case else "")
    try:
        return Rule(pattern=java_pattern(pattern), text=rule_text, replacement=replacement, case=case)
    except ConfigError as error:
        raise ConfigError(f"{KEY}: {rule_text}: {error}") from error


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
        if number > _MAX_INDEX:
            raise ValueError(f'For input string: "{match[1]}"')
        while number > groups and number >= 10:
            number //= 10
        if number > groups:
            value = f"{value[: match.start()]}\\{value[match.start() :]}"
    return value
