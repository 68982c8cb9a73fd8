"""An authorizer that decides on one state, as a broker with these properties would."""

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.standard import StandardAuthorizer
from aclog.authorizer.super_users import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG


def build_authorizer(
    acls: AclsImage,
    *,
    super_users: str = "",
    allow_everyone: bool = False,
    documented: bool = False,
    cidr: bool = False,
    cache: bool = True,
) -> StandardAuthorizer:
    """Ready to decide on these rules; `super_users` and `allow_everyone` are the broker's properties.

    Raises:
        ConfigError: a super user without colon.

    """
    authorizer = StandardAuthorizer(documented=documented, cidr=cidr, cache=cache)
    authorizer.configure({SUPER_USERS_CONFIG: super_users, ALLOW_EVERYONE_CONFIG: str(allow_everyone).lower()})
    authorizer.load(acls)
    authorizer.complete_initial_load()
    return authorizer
