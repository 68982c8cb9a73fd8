"""The properties of the authorizer: `super.users` and `allow.everyone.if.no.acl.found`."""

from aclog.metalog.errors import ConfigError

SUPER_USERS_CONFIG = "super.users"
ALLOW_EVERYONE_CONFIG = "allow.everyone.if.no.acl.found"

_JAVA_BLANKS = "".join(map(chr, range(0x21)))
"""What Java's String.trim strips: every character up to the space, control characters included."""


def parse_super_users(text: str | None) -> frozenset[str]:
    """Parse `super.users`, such as `User:admin;User:kafka`; parts are trimmed, empty ones dropped.

    They are compared with the principal of a request as whole texts, so `User:*` is not a wildcard here
    (StandardAuthorizer.getConfiguredSuperUsers).

    Raises:
        ConfigError: a part has no colon.

    """
    users = frozenset(part.strip(_JAVA_BLANKS) for part in (text or "").split(";")) - {""}
    for user in sorted(users):
        if ":" not in user:
            raise ConfigError(
                f"{SUPER_USERS_CONFIG}: expected a string in format principalType:principalName but got {user}"
            )
    return users


def parse_allow_everyone(text: str | None) -> bool:
    """Parse `allow.everyone.if.no.acl.found`: `true` in any case, trimmed, is on; anything else is off."""
    return text is not None and text.strip(_JAVA_BLANKS).lower() == "true"
