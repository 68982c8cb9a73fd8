"""What flags say of what decides in a place."""

from aclog.authorizer.config import parse_super_users
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.places.found_place import ToldSettings


def told_settings(flags: AuthorizerFlags, *, is_warned: bool = False) -> ToldSettings:
    """Return what flags say; warn of super users that are hardly meant, unless somebody has (`is_warned`).

    Raises:
        ConfigError: a super user without a colon.

    """
    if not is_warned:
        flags.warn_of_super_users()
    is_told = flags.allow_everyone or flags.no_allow_everyone
    return ToldSettings(
        super_users=parse_super_users(flags.super_users) if flags.super_users is not None else None,
        allow_everyone=flags.allow_everyone if is_told else None,
        documented=flags.documented,
        generation=flags.generation,
    )
