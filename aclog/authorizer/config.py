"""The properties of the authorizer: `super.users`, `allow.everyone.if.no.acl.found` and `aclog.cidr.enabled`."""

import re
from collections.abc import Iterator

from aclog.metalog.errors import ConfigError

SUPER_USERS_CONFIG = "super.users"
ALLOW_EVERYONE_CONFIG = "allow.everyone.if.no.acl.found"
CIDR_CONFIG = "aclog.cidr.enabled"
"""Whether the host of an ACL may be a CIDR range (KIP-1276); not a property of Kafka's."""

_JAVA_BLANKS = "".join(map(chr, range(0x21)))
"""What Java's String.trim strips: every character up to the space, control characters included."""


def parse_cidr_enabled(text: str | None, name: str = CIDR_CONFIG) -> bool:
    """Parse `aclog.cidr.enabled`; off if it is not set. `name` is the property or flag that an error names.

    Raises:
        ConfigError: it is neither `true` nor `false`: a typo must not turn a DENY off.

    """
    value = "false" if text is None else text.strip(_JAVA_BLANKS).lower()
    if value not in {"true", "false"}:
        raise ConfigError(f"{name}: {text!r}: expected true or false")
    return value == "true"


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


_SECOND_NAME = re.compile(r"(?<!\\)[,|]\s*\w+:|\sUser:")
"""What looks like the beginning of another principal within one; an attribute of a distinguished name has `=`."""


def super_user_mistakes(text: str | None) -> Iterator[str]:
    """Yield a sentence for each super user that is hardly meant as it stands; `text` is a valid `super.users`."""
    for user in sorted(parse_super_users(text)):
        kind, _, name = user.partition(":")
        if found := _SECOND_NAME.search(user):
            meant = f"{user[: found.start()]};{user[found.start() + 1 :].lstrip()}"
            yield f"{user!r} is one name, as only ';' separates super users: did you mean {meant!r}?"
        elif name == "*":
            yield f"{user!r} is nobody, as there are no wildcards among super users"
        elif kind == "User" and name != "ANONYMOUS" and name.upper() == "ANONYMOUS":
            yield f"{user!r} is not who has not logged in: did you mean 'User:ANONYMOUS'?"


def parse_allow_everyone(text: str | None) -> bool:
    """Parse `allow.everyone.if.no.acl.found`: `true` in any case, trimmed, is on; anything else is off."""
    return text is not None and text.strip(_JAVA_BLANKS).lower() == "true"
