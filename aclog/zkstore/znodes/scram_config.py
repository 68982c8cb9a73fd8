"""SCRAM credentials in the znode of a user's dynamic configuration, which also holds the user's quotas.

Mirrors kafka.zk.ConfigEntityZNode, ScramCredentialUtils and the change events of AdminZkClient.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from attrs import field, frozen

from aclog.credentials.scram import ScramMechanism
from aclog.metalog.errors import DecodeError, EncodeError
from aclog.metalog.records import UserScramCredentialRecord
from aclog.zkstore.znodes.json_fields import compact_json, integer_field, json_object
from aclog.zkstore.znodes.paths import USERS_PATH
from aclog.zkstore.znodes.percent import percent_decoded, percent_encoded

DEFAULT_ENTITY = "<default>"
"""Znode of the default quotas, for users without a znode of their own; it never has credentials."""

_VERSION = 1
_CHANGE_VERSION = 2
_MECHANISMS: Mapping[str, ScramMechanism] = MappingProxyType(
    {mechanism.mechanism_name: mechanism for mechanism in ScramMechanism}
)
# Kafka writes the keys in the iteration order of java.util.Properties; the same order keeps the bytes the same.
_WRITE_ORDER = ("SCRAM-SHA-512", "SCRAM-SHA-256")
_PARTS = ("salt", "stored_key", "server_key", "iterations")
_INT_MAX = (1 << 31) - 1


@frozen(kw_only=True)
class UserConfig:
    """Configuration of a user: credentials and quotas by name. The repr omits the values, which hold secrets."""

    values: Mapping[str, str] = field(factory=dict, repr=False)

    @property
    def others(self) -> tuple[str, ...]:
        """The names of all values that are not SCRAM credentials: the user's quotas."""
        return tuple(sorted(name for name in self.values if name not in _MECHANISMS))

    def credentials(self) -> tuple[tuple[ScramMechanism, str], ...]:
        """Return the user's encoded credentials by mechanism."""
        return tuple((mechanism, self.values[name]) for name, mechanism in _MECHANISMS.items() if name in self.values)


def user_path(user: str) -> str:
    """Return the path of a user's znode.

    Raises:
        EncodeError: `.`, `..` or the empty name, which are not znode names; Kafka 3.9 fails on them too.

    """
    if user in {"", ".", ".."}:
        raise EncodeError(f"user {user!r}: expected a name that is valid as a znode name")
    return f"{USERS_PATH}/{percent_encoded(user)}"


def user_of_node(name: str) -> str | None:
    """Return the user of a znode below /config/users; None for the default quotas. Raises DecodeError."""
    # A user who is really called <default> has the znode %3Cdefault%3E.
    return None if name == DEFAULT_ENTITY else percent_decoded(name)


def decode_user_config(data: bytes | None, path: str) -> UserConfig:
    """Decode a user's configuration; a znode without data, which only has children, is an empty configuration.

    Raises:
        DecodeError: not a JSON object, a version other than 1, or a config that is not an object of strings.

    """
    if not data:
        return UserConfig()
    fields = json_object(data, path=path)
    try:
        return UserConfig(values=_texts(fields))
    except DecodeError as error:
        raise error.at(path=path) from None


def _texts(fields: Mapping[str, Any]) -> Mapping[str, str]:
    version, config = integer_field(fields, "version", bits=32), fields.get("config")
    if version != _VERSION:
        raise DecodeError(f"version {version}: expected {_VERSION}")
    if not isinstance(config, dict) or not all(isinstance(value, str) for value in config.values()):
        raise DecodeError("config: expected an object with string values")
    return config


def encode_user_config(config: UserConfig) -> bytes:
    """Encode a user's configuration as Kafka 3.9 does."""
    return compact_json({"version": _VERSION, "config": dict(config.values)})


def encode_config_change(path: str) -> bytes:
    """Encode the change event of a znode below /config, in version 2, the only one that Kafka 3.9 accepts."""
    return compact_json({"version": _CHANGE_VERSION, "entity_path": path.removeprefix("/config/")})


def decode_credential(user: str, mechanism: ScramMechanism, text: str) -> UserScramCredentialRecord:
    """Decode one SCRAM credential of a user's configuration.

    Raises:
        DecodeError: not exactly the four parts, invalid base64, or invalid iterations. The message never contains any
            part of the credential.

    """
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    if set(parts) != set(_PARTS) or len(parts) != text.count(",") + 1:
        raise DecodeError(f"{mechanism.mechanism_name}: expected {'=...,'.join(_PARTS)}=...")
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism,
        salt=_bytes(mechanism, parts, "salt"),
        stored_key=_bytes(mechanism, parts, "stored_key"),
        server_key=_bytes(mechanism, parts, "server_key"),
        iterations=_iterations(mechanism, parts["iterations"]),
    )


def _bytes(mechanism: ScramMechanism, parts: Mapping[str, str], name: str) -> bytes:
    try:
        return b64decode(parts[name].encode("ascii"), validate=True)
    except ValueError:  # includes UnicodeEncodeError
        raise DecodeError(f"{mechanism.mechanism_name}: {name}: expected base64") from None


def _iterations(mechanism: ScramMechanism, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 11 and int(text) <= _INT_MAX):
        raise DecodeError(f"{mechanism.mechanism_name}: iterations: expected a number of 0 to {_INT_MAX}")
    return int(text)


def encode_credential(record: UserScramCredentialRecord) -> str:
    """Encode a SCRAM credential as a value of a user's configuration (ScramCredentialUtils.credentialToString)."""
    keys = (record.salt, record.stored_key, record.server_key)
    parts = [f"{name}={b64encode(key).decode('ascii')}" for name, key in zip(_PARTS, keys, strict=False)]
    return ",".join([*parts, f"iterations={record.iterations}"])


def with_credentials(config: UserConfig, records: Iterable[UserScramCredentialRecord]) -> UserConfig:
    """Return the configuration with exactly these credentials, and its quotas unchanged."""
    wanted = {ScramMechanism(record.mechanism).mechanism_name: encode_credential(record) for record in records}
    credentials = {name: wanted[name] for name in _WRITE_ORDER if name in wanted}
    others = {name: text for name, text in config.values.items() if name not in _MECHANISMS}
    return UserConfig(values={**credentials, **others})
