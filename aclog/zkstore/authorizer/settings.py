"""What the older authorizer takes from a server's properties (AclAuthorizer.configure), KIP-11's names too. Pure."""

from collections.abc import Mapping

from attrs import frozen

from aclog.authorizer.super_users import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG
from aclog.metalog.errors import ConfigError
from aclog.zkstore.client.connect import ZkSettings, zk_settings

PREFIX = "authorizer."
"""Before a zookeeper.* property: it is for the rules alone."""

LEGACY_SUPER_USERS, LEGACY_ALLOW_EVERYONE = "kafka.superusers", "allow.everyone"
"""What KIP-11 called the two properties; read where the name that was shipped is not there."""


@frozen(kw_only=True)
class AclAuthorizerSettings:
    """Where the rules are, and what decides beside them."""

    store: ZkSettings
    super_users: frozenset[str]
    allow_everyone: bool


def acl_authorizer_settings(properties: Mapping[str, str]) -> AclAuthorizerSettings:
    """The settings in a server's properties.

    `authorizer.zookeeper.url` and other zookeeper.* properties with that prefix come before those without.

    Raises:
        ConfigError: no zookeeper.connect, or a value that cannot be honoured: as in Kafka, also an empty part among
            the super users, and an allow.everyone.if.no.acl.found that is neither true nor false.

    """
    users = _named(properties, SUPER_USERS_CONFIG, LEGACY_SUPER_USERS)
    everyone = _named(properties, ALLOW_EVERYONE_CONFIG, LEGACY_ALLOW_EVERYONE)
    return AclAuthorizerSettings(
        store=zk_settings(properties, prefix=PREFIX),
        super_users=_super_users(*users),
        allow_everyone=_flag(*everyone),
    )


def _named(properties: Mapping[str, str], name: str, legacy: str) -> tuple[str, str | None]:
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
