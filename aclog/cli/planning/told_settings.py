"""What flags say of what decides in a place."""

from aclog.authorizer.config import parse_super_users
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.places.found_place import ToldSettings


def told_settings(flags: AuthorizerFlags) -> ToldSettings:
    """Return what flags say; warn of super users that are hardly meant. Raises ConfigError: one without a colon."""
    flags.warn_of_super_users()
    is_told = flags.allow_everyone or flags.no_allow_everyone
    return ToldSettings(
        super_users=parse_super_users(flags.super_users) if flags.super_users else None,
        allow_everyone=flags.allow_everyone if is_told else None,
        documented=flags.documented,
        cidr=flags.cidr,
    )
