"""The two properties that decide beside the rules: `super.users` and `allow.everyone.if.no.acl.found`."""

from aclog.metalog.errors import ConfigError

SUPER_USERS_CONFIG = "super.users"
ALLOW_EVERYONE_CONFIG = "allow.everyone.if.no.acl.found"

_JAVA_BLANKS = "".join(map(chr, range(0x21)))
"""What String.trim takes away: every character up to the space, control characters included."""


def parse_super_users(text: str | None) -> frozenset[str]:
    """The principals of a `super.users` value: `User:admin;User:kafka`, trimmed, empty parts dropped.

    They are compared to a session's principal as whole texts, so `User:*` among them is no wildcard
    (StandardAuthorizer.getConfiguredSuperUsers).

    Raises:
        ConfigError: a part without a colon.

    """
    users = frozenset(part.strip(_JAVA_BLANKS) for part in (text or "").split(";")) - {""}
    for user in sorted(users):
        if ":" not in user:
            raise ConfigError(
                f"{SUPER_USERS_CONFIG}: expected a string in format principalType:principalName but got {user}"
            )
    return users


def parse_allow_everyone(text: str | None) -> bool:
    """Whether `allow.everyone.if.no.acl.found` is on: `true` in any case, blanks around it; all else is off."""
    return text is not None and text.strip(_JAVA_BLANKS).lower() == "true"
