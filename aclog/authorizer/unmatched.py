"""ACLs that match nobody: valid for Kafka, and hardly what was meant. A DENY among them denies nothing."""

import re
from collections.abc import Iterator
from functools import lru_cache

from aclog.authorizer.acl import WILDCARD, PatternType, ResourceType, StandardAcl
from aclog.authorizer.cidr import is_cidr
from aclog.authorizer.hosts import host_address
from aclog.metalog.errors import ConfigError

_COMMA = re.compile(r"(?<!\\),")
"""Not one that is escaped, as in the value of a distinguished name (RFC 2253)."""
_TYPE = re.compile(r"\s*\w+:")


def reasons_unmatched(acl: StandardAcl, *, cidr: bool) -> Iterator[str]:
    """Yield that no request can match the ACL, and why, once for each field; nothing for an ACL that may match.

    `cidr`: hosts may be ranges (KIP-1276). Of a name that looks like a list it is not certain: somebody may have it.
    """
    if acl.resource_type == ResourceType.USER and is_no_principal(acl):
        name = repr(acl.resource_name)
        yield f"matches nobody: the USER resource {name} is no principal: expected its type, too, as in User:NAME"
    if acl.host != WILDCARD:
        problem = host_problem(acl.host, cidr=cidr)
        if problem is not None:
            yield problem if is_cidr(acl.host) else f"matches nobody: {problem}"
    if listed_principals(acl.principal):
        one = f"{acl.principal} is one principal whose name has a comma, not a list"
        yield f"probably matches nobody: {one}: add an ACL for each"


def is_no_principal(acl: StandardAcl) -> bool:
    """Return whether the ACL is on a literal name without a colon: no USER resource, whose names are principals."""
    return acl.pattern_type == PatternType.LITERAL and ":" not in acl.resource_name and acl.resource_name != WILDCARD


@lru_cache(1 << 16)
def host_problem(host: str, *, cidr: bool) -> str | None:
    """Return why the host of an ACL equals no client's address; None for `*`, and for an address as Java prints it.

    With `cidr` a range is a host, too.
    """
    if host == WILDCARD:
        return None
    if is_cidr(host):
        return None if cidr else f"the host {host} is a CIDR range, which matches nobody unless ranges are enabled"
    try:
        address = host_address(host)
    except ConfigError:
        return f"the host {host!r} is neither * nor an address"
    return None if address == host else f"the host {host} is compared as text: only {address} matches that address"


def listed_principals(principal: str) -> tuple[str, ...]:
    """Return the principals that the text lists with commas; nothing for a single one, a distinguished name included.

    `User:bob,User:eve` and `User:bob,eve` list User:bob and User:eve; `User:CN=bob,O=acme` lists nobody.
    """
    if "," not in principal:
        return ()
    kind, _, names = principal.partition(":")
    parts = _COMMA.split(names)
    if len(parts) == 1 or (all("=" in part for part in parts) and not any(map(_TYPE.match, parts))):
        return ()
    return tuple(part.strip() if _TYPE.match(part) else f"{kind}:{part.strip()}" for part in parts)
