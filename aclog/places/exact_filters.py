"""Filters of requests about known ACLs."""

from collections.abc import Sequence

from aclog.authorizer.acl import AclBindingFilter, StandardAcl
from aclog.authorizer.creation_checks import filter_value, unknown_field
from aclog.metalog.errors import ConfigError


def exactly(acl: StandardAcl) -> AclBindingFilter:
    """Return the filter that matches this ACL, and no other that there is or may ever be.

    Raises:
        ConfigError: the ACL has ANY, MATCH or an unknown code, with which a filter would match others.

    """
    wide = filter_value(acl) or (f"{unknown_field(acl)} is unknown" if unknown_field(acl) else None)
    if wide is not None:
        raise ConfigError(f"{acl!r}: {wide}: expected one rule, not a filter that may match several")
    return AclBindingFilter.of(acl)


def covering(acls: Sequence[StandardAcl]) -> AclBindingFilter:
    """Return a filter that matches all of these ACLs, and of others as few as a filter can: only for reading."""
    first = exactly(acls[0])
    alike = {
        name: getattr(first, name)
        for name in (
            "resource_type",
            "resource_name",
            "pattern_type",
            "principal",
            "host",
            "operation",
            "permission_type",
        )
        if all(getattr(acl, name) == getattr(first, name) for acl in acls)
    }
    return AclBindingFilter(**alike)
