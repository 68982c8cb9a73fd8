"""Java properties files, and typed access to their values as Kafka's ConfigDef parses them."""

import re
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import javaproperties
from attrs import evolve, field, frozen

from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.filelog.filesystem import read_small

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

    def chosen(self, key: str, choices: tuple[str, ...], default: str) -> str:
        """Return the value, one of `choices`.

        Raises:
            ConfigError: another value.

        """
        value = self.text(key)
        if value is None:
            return default
        if value not in choices:
            raise self.error(key, f"{self.shown(key)}: expected one of {', '.join(choices)}")
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
            raise self.error(key, f"{self.shown(key)}: expected true or false")
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
            raise self.error(key, f"{self.shown(key)}: expected a whole number from {least} to {most}")
        return int(value)

    def long(self, key: str, default: int, *, least: int = -_MAX_LONG - 1) -> int:
        """Return the 64-bit integer, `least` or more.

        Raises:
            ConfigError: as `integer`.

        """
        return self.integer(key, default, least=least, most=_MAX_LONG)

    def shown(self, key: str) -> str:
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
