"""The options of commands that decide: the broker's settings."""

from aclog.authorizer.config import parse_cidr_enabled
from aclog.authorizer.settings import Settings
from aclog.shell.arguments import Arguments, Option

_SUPER_USERS = Option(flag="--super-users", value="USERS", help="The broker's super.users, such as 'User:a;User:b'.")
_ALLOW_EVERYONE = Option(
    flag="--allow-everyone", value="BOOLEAN", help="The broker's allow.everyone.if.no.acl.found: true or false."
)
_CIDR = Option(flag="--cidr", value="BOOLEAN", help="Whether the host of an ACL may be a CIDR range: true or false.")

SETTINGS = (_SUPER_USERS, _ALLOW_EVERYONE, _CIDR)


def settings_of(arguments: Arguments) -> Settings:
    """Return the settings. Raises ConfigError: a super user without a colon, or --cidr is not true or false."""
    return Settings.of_texts(
        arguments.text(_SUPER_USERS.flag),
        arguments.text(_ALLOW_EVERYONE.flag),
        cidr=parse_cidr_enabled(arguments.text(_CIDR.flag) or None, _CIDR.flag),
    )
