"""A properties file as Java reads one, and typed values out of it as Kafka's ConfigDef takes them."""

import re
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import javaproperties
from attrs import evolve, field, frozen

from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.filelog.filesystem import read_small

_BLANKS = "".join(map(chr, range(0x21)))
"""What Java's String.trim takes away."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_PROVIDED = re.compile(r"\$\{[^}]*:[^}]*\}")
"""What Kafka's ConfigTransformer replaces by what a config provider says."""

_SECRET = re.compile(
    r"password|passphrase|secret|jaas|token|keystore\.key$|certificate\.chain$|truststore\.certificates$", re.IGNORECASE
)
_MAX_INT, _MAX_LONG = (1 << 31) - 1, (1 << 63) - 1


def listener_prefix(listener_name: str) -> str:
    """What the keys of one listener begin with (ListenerName.configPrefix)."""
    return f"listener.name.{listener_name.lower()}."


def read_properties(path: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """The properties of a file, and the keys that stand in it again with another value (the last one holds).

    Raises:
        ConfigError: no such file, it cannot be read, or an escape in it is not one.

    """
    try:
        data = read_small(path)
    except LogError as error:
        raise ConfigError(str(error)) from error
    if data is None:
        raise ConfigError(f"{path}: no such file: expected a properties file")
    try:
        pairs: list[tuple[str, str]] = javaproperties.load(BytesIO(data), object_pairs_hook=list)
    except ValueError as error:
        raise ConfigError(f"{path}: a malformed \\u escape: expected four hexadecimal digits after it") from error
    properties: dict[str, str] = {}
    twice = dict.fromkeys(key for key, value in pairs if properties.setdefault(key, value) != value)
    properties.update(pairs)
    return properties, tuple(twice)


@frozen(kw_only=True)
class Properties:
    """Properties, and where they are from; with a listener's prefix, whose keys then come before the plain ones.

    Values are trimmed, as Kafka does. Errors name the file and the key; the value only where it is no secret.
    """

    values: Mapping[str, str] = field(repr=lambda values: f"{len(values)} properties")
    where: str
    prefix: str = ""
    exclusive: bool = False
    """Whether only keys with the prefix count: the same ones without it are somebody else's."""

    def of_listener(self, name: str) -> "Properties":
        """The same properties as one listener has them (AbstractConfig.valuesWithPrefixOverride)."""
        return evolve(self, prefix=listener_prefix(name))

    def under(self, prefix: str) -> "Properties":
        """Those that begin with a prefix, and no others (AbstractConfig.originalsWithPrefix)."""
        values = {key: value for key, value in self.values.items() if key.startswith(prefix)}
        return evolve(self, values=values, prefix=prefix, exclusive=True)

    def full_key(self, key: str) -> str:
        """The key that decides: the listener's own if it is there."""
        own = self.prefix + key
        return own if self.exclusive or own in self.values else key

    def text(self, key: str) -> str | None:
        """The value; None if the key is absent."""
        value = self.values.get(self.full_key(key))
        return None if value is None else value.strip(_BLANKS)

    def text_or_none(self, key: str) -> str | None:
        """The value; None if the key is absent or empty."""
        return self.text(key) or None

    def items(self, key: str) -> tuple[str, ...] | None:
        """The parts between commas, trimmed; None if the key is absent, () if it is empty.

        Raises:
            ConfigError: an empty part.

        """
        value = self.text(key)
        if not value:
            return None if value is None else ()
        parts = tuple(part.strip(_BLANKS) for part in value.split(","))
        if not all(parts):
            raise self.error(key, "an empty part: expected values with commas between them")
        return parts

    def chosen(self, key: str, choices: tuple[str, ...], default: str) -> str:
        """The value, which is one of `choices`.

        Raises:
            ConfigError: it is another one.

        """
        value = self.text(key)
        if value is None:
            return default
        if value not in choices:
            raise self.error(key, f"{self.shown(key)}: expected one of {', '.join(choices)}")
        return value

    def integer(self, key: str, default: int, *, least: int = -_MAX_INT - 1, most: int = _MAX_INT) -> int:
        """The whole number, within bounds.

        Raises:
            ConfigError: not a whole number, or out of bounds.

        """
        value = self.text(key)
        if value is None:
            return default
        if not _INTEGER.fullmatch(value) or not least <= int(value) <= most:
            raise self.error(key, f"{self.shown(key)}: expected a whole number from {least} to {most}")
        return int(value)

    def long(self, key: str, default: int, *, least: int = -_MAX_LONG - 1) -> int:
        """The whole number of up to 64 bits, `least` or more.

        Raises:
            ConfigError: as `integer`.

        """
        return self.integer(key, default, least=least, most=_MAX_LONG)

    def shown(self, key: str) -> str:
        """The value as an error may show it."""
        full = self.full_key(key)
        return "its value (not shown)" if _SECRET.search(full) else repr(self.values.get(full, ""))

    def error(self, key: str, why: str) -> ConfigError:
        """What is wrong with a key."""
        return ConfigError(f"{self.where}: {self.full_key(key)}: {why}")

    def contradiction(self, one: str, other: str, why: str) -> ConfigError:
        """Two keys that cannot both hold."""
        return ConfigError(
            f"{self.where}: {self.full_key(one)} and {self.full_key(other)} contradict each other: {why}"
        )

    def check_values(self) -> None:
        """Stop at values that nothing could be done with: a NUL, or what a config provider would have to fill in.

        Raises:
            ConfigError: there is one, or config.providers is set.

        """
        if self.text_or_none("config.providers"):
            raise self.error("config.providers", "config providers are not supported: expected the values themselves")
        for key, value in self.values.items():
            if "\0" in value:
                raise self.error(key, "a NUL character in its value")
            if _PROVIDED.search(value):
                raise self.error(
                    key, "a ${...} that a config provider would fill in: not supported, expected the value itself"
                )
