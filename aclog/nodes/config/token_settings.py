"""Delegation token settings, and the lifetime of logins: delegation.token.*, connections.max.reauth.ms."""

from collections.abc import Iterable, Mapping

from aclog.credentials.token_control import TokenSettings
from aclog.nodes.config.java_properties import Properties

SECRET = "delegation.token.secret.key"  # noqa: S105 - the key's name
DECOY_SECRET = "aclog.scram.decoy.secret"  # noqa: S105 - the key's name
MAX_LIFETIME = "delegation.token.max.lifetime.ms"
EXPIRY_TIME = "delegation.token.expiry.time.ms"
EXPIRY_CHECK_INTERVAL = "delegation.token.expiry.check.interval.ms"
MAX_REAUTH = "connections.max.reauth.ms"


def read_token_settings(properties: Properties) -> TokenSettings:
    """Read Kafka's keys, with its defaults (DelegationTokenManagerConfigs); an empty secret disables tokens.

    Raises:
        ConfigError: numbers out of bounds.

    """
    default = TokenSettings()
    return TokenSettings(
        secret=properties.text_or_none(SECRET),
        max_lifetime_ms=properties.long(MAX_LIFETIME, default.max_lifetime_ms, least=1),
        expiry_time_ms=properties.long(EXPIRY_TIME, default.expiry_time_ms, least=1),
        expiry_check_interval_ms=properties.long(EXPIRY_CHECK_INTERVAL, default.expiry_check_interval_ms, least=1),
    )


def session_lifetimes(properties: Properties, mechanisms: Iterable[str]) -> Mapping[str, int]:
    """Return how long, in ms, a login by each mechanism is valid on a listener (KIP-368).

    A mechanism's own value takes precedence over the listener's. Unlimited ones (0 and below) are left out.

    Raises:
        ConfigError: not integers.

    """
    shared = properties.long(MAX_REAUTH, 0)
    found = {}
    for mechanism in mechanisms:
        own = f"{mechanism.lower()}.{MAX_REAUTH}"
        lifetime = properties.long(own, shared)
        if lifetime > 0:
            found[mechanism] = lifetime
    return found
