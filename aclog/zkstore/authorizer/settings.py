"""Settings of AclAuthorizer in a server's properties, including names from KIP-11 (AclAuthorizer.configure)."""

from collections.abc import Mapping

from attrs import frozen

from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG
from aclog.metalog.errors import ConfigError
from aclog.zkstore.authorizer.protocol_gate import takes_prefixed
from aclog.zkstore.client.settings import ZkSettings, zk_settings

PREFIX = "authorizer."
"""Prefix of zookeeper.* properties that apply to the ACLs only."""

LEGACY_SUPER_USERS, LEGACY_ALLOW_EVERYONE = "kafka.superusers", "allow.everyone"
"""Names of the two properties in KIP-11's text; read if the released names are not set."""


@frozen(kw_only=True)
class AclAuthorizerSettings:
    """The ZooKeeper of the ACLs, super users, the default without ACLs, and whether prefixed ACLs may be added."""

    store: ZkSettings
    super_users: frozenset[str]
    allow_everyone: bool
    takes_prefixed: bool


def acl_authorizer_settings(properties: Mapping[str, str]) -> AclAuthorizerSettings:
    """Parse a server's properties.

    `authorizer.zookeeper.url` and other zookeeper.* properties with that prefix take precedence over those without.

    Raises:
        ConfigError: no zookeeper.connect, or an invalid or unsupported value; as in Kafka, also an empty entry among
            the super users, and an allow.everyone.if.no.acl.found that is neither true nor false.

    """
    users = _value(properties, SUPER_USERS_CONFIG, LEGACY_SUPER_USERS)
    everyone = _value(properties, ALLOW_EVERYONE_CONFIG, LEGACY_ALLOW_EVERYONE)
    return AclAuthorizerSettings(
        store=zk_settings(properties, prefix=PREFIX),
        super_users=_super_users(*users),
        allow_everyone=_flag(*everyone),
        takes_prefixed=takes_prefixed(properties),
    )


def _value(properties: Mapping[str, str], name: str, legacy: str) -> tuple[str, str | None]:
    key = name if name in properties or legacy not in properties else legacy
    return key, properties.get(key)


def _super_users(key: str, text: str | None) -> frozenset[str]:
    if not text:
        return frozenset()
    parts = [part.strip() for part in text.rstrip(";").split(";")] if text.strip(";") else []
    for part in parts:
        if ":" not in part:
            raise ConfigError(f"{key} {text!r}: {part!r}: expected principalType:principalName")
    return frozenset(parts)


def _flag(key: str, text: str | None) -> bool:
    value = "false" if text is None else text.strip().lower()
    if value not in {"true", "false"}:
        raise ConfigError(f"{key} {text!r}: expected true or false")
    return value == "true"
