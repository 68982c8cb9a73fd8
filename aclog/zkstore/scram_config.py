"""SCRAM credentials in ZooKeeper: among a user's configuration, beside the user's quotas.

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
from aclog.zkstore.acl_json import json_object
from aclog.zkstore.json_fields import compact_json, integer_field
from aclog.zkstore.percent import percent_decoded, percent_encoded

USERS_PATH = "/config/users"
"""A node for each user, by the percent-encoded name."""
CONFIG_CHANGES_PATH = "/config/changes"
CONFIG_CHANGE_PREFIX = f"{CONFIG_CHANGES_PATH}/config_change_"
"""ZooKeeper appends ten digits."""
DEFAULT_ENTITY = "<default>"
"""The node of what holds for users without a node of their own: quotas, never a credential."""

_VERSION = 1
_CHANGE_VERSION = 2
_MECHANISMS: Mapping[str, ScramMechanism] = MappingProxyType(
    {mechanism.mechanism_name: mechanism for mechanism in ScramMechanism}
)
_IN_ORDER = ("SCRAM-SHA-512", "SCRAM-SHA-256")
"""That of Java's Properties."""
_PARTS = ("salt", "stored_key", "server_key", "iterations")
_INT_MAX = (1 << 31) - 1


@frozen(kw_only=True)
class UserConfig:
    """What a user's node says: credentials and quotas, as name and text; left out of the repr, it holds secrets."""

    values: Mapping[str, str] = field(factory=dict, repr=False)

    @property
    def others(self) -> tuple[str, ...]:
        """The names of what is no SCRAM credential: the user's quotas."""
        return tuple(sorted(name for name in self.values if name not in _MECHANISMS))

    def credentials(self) -> tuple[tuple[ScramMechanism, str], ...]:
        """The entries of the user's credentials, by mechanism."""
        return tuple((mechanism, self.values[name]) for name, mechanism in _MECHANISMS.items() if name in self.values)


def user_path(user: str) -> str:
    """The node of a user.

    Raises:
        EncodeError: `.`, `..` or the empty name, for which ZooKeeper has no node; Kafka 3.9 fails on them, too.

    """
    if user in {"", ".", ".."}:
        raise EncodeError(f"user {user!r}: expected a name that a ZooKeeper node can have")
    return f"{USERS_PATH}/{percent_encoded(user)}"


def user_of_node(name: str) -> str | None:
    """The user whom a node of /config/users belongs to; None for that of the default quotas. Raises DecodeError."""
    return None if name == DEFAULT_ENTITY else percent_decoded(name)


def decode_user_config(data: bytes | None, path: str) -> UserConfig:
    """What a user's node says; a node without data says nothing (it is there for its children).

    Raises:
        DecodeError: no JSON object, another version than 1, a config that is none or holds no texts.

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
        raise DecodeError("config: expected an object of texts")
    return config


def encode_user_config(config: UserConfig) -> bytes:
    """What a user's node holds, as Kafka 3.9 writes it; new credentials stand first."""
    return compact_json({"version": _VERSION, "config": dict(config.values)})


def encode_config_change(path: str) -> bytes:
    """The data of a change event for a node below /config (version 2, the only one that Kafka 3.9 takes)."""
    return compact_json({"version": _CHANGE_VERSION, "entity_path": path.removeprefix("/config/")})


def decode_credential(user: str, mechanism: ScramMechanism, text: str) -> UserScramCredentialRecord:
    """The credential in one entry of a user's configuration.

    Raises:
        DecodeError: not exactly the four parts, base64 that is none, iterations that are no number. The message holds
            no part of the credential.

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
    except ValueError:  # also what is not ASCII
        raise DecodeError(f"{mechanism.mechanism_name}: {name}: expected base64") from None


def _iterations(mechanism: ScramMechanism, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 11 and int(text) <= _INT_MAX):
        raise DecodeError(f"{mechanism.mechanism_name}: iterations: expected a number")
    return int(text)


def encode_credential(record: UserScramCredentialRecord) -> str:
    """The entry of a credential in a user's configuration (ScramCredentialUtils.credentialToString)."""
    keys = (record.salt, record.stored_key, record.server_key)
    parts = [f"{name}={b64encode(key).decode('ascii')}" for name, key in zip(_PARTS, keys, strict=False)]
    return ",".join([*parts, f"iterations={record.iterations}"])


def with_credentials(config: UserConfig, records: Iterable[UserScramCredentialRecord]) -> UserConfig:
    """The configuration with exactly these credentials; the quotas stay as they are."""
    wanted = {ScramMechanism(record.mechanism).mechanism_name: encode_credential(record) for record in records}
    credentials = {name: wanted[name] for name in _IN_ORDER if name in wanted}
    others = {name: text for name, text in config.values.items() if name not in _MECHANISMS}
    return UserConfig(values={**credentials, **others})
