"""What CreateAcls checks in a single ACL: in a broker's parser, in AclApis and in AclControlManager, in this order."""

import re
from functools import lru_cache

from aclog.authorizer.acl import (
    CLUSTER_NAME,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
    code_name,
)
from aclog.authorizer.cidr import address_number, parse_cidr
from aclog.authorizer.generation import RANGES_LEVEL
from aclog.authorizer.principals import no_colon
from aclog.metalog.errors import ConfigError

_UNSUPPORTED_VERSION, _INVALID_REQUEST = 35, 42

_IPV4_RANGE = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})/([0-9]{1,2})")
_IPV4, _IPV6_BITS = 4, 128
_INT_END = 1 << 31
"""The end of the range of Java's Integer.parseInt."""
_COMBINATIONS = 1024
"""How many combinations of codes are remembered: valid ones are fewer, and a state has many ACLs of each."""


def refusal(acl: StandardAcl, *, cidr: bool = False) -> str | None:
    """Return Kafka's message about an ACL that CreateAcls refuses; None for a valid one. `cidr` as control_check."""
    return filter_value(acl) or broker_check(acl) or controller_check(acl, cidr=cidr)


def filter_value(acl: StandardAcl) -> str | None:
    """Return Kafka's message about ANY or MATCH, which only a filter may hold (ResourcePattern, AccessControlEntry).

    A broker fails to parse a whole request with such an ACL: it logs this message, and answers without one.
    """
    return _filter_value(acl.resource_type, acl.pattern_type, acl.operation, acl.permission_type)


@lru_cache(_COMBINATIONS)
def _filter_value(resource_type: int, pattern_type: int, operation: int, permission_type: int) -> str | None:
    if resource_type == ResourceType.ANY:
        return "resourceType must not be ANY"
    if pattern_type in (PatternType.ANY, PatternType.MATCH):
        return f"patternType must not be {code_name(PatternType, pattern_type)}"
    if operation == AclOperation.ANY:
        return "operation must not be ANY"
    if permission_type == AclPermissionType.ANY:
        return "permissionType must not be ANY"
    return None


def broker_check(acl: StandardAcl) -> str | None:
    """Return the message about what a broker finds before it forwards the request (AclApis)."""
    if acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not acl.resource_name:
        return "Invalid empty resource name"
    return None


def controller_check(acl: StandardAcl, *, cidr: bool) -> str | None:
    """Return the message about what the controller finds (AclControlManager.validateNewAcl), ANY and MATCH aside.

    With `cidr`, a host with a slash must be a valid range.
    """
    unknown = unknown_field(acl)
    if unknown is not None:
        return f"Invalid {unknown} UNKNOWN"
    if ":" not in acl.principal:
        return no_colon(acl.principal)
    if cidr and "/" in acl.host:
        try:
            parse_cidr(acl.host)
        except ConfigError as e:
            return str(e)
    return None


def host_check(host: str, level: int) -> tuple[int, str] | None:
    """Return the code and message about a host that Kafka 4.4 refuses at this metadata.version (KIP-1276); else None.

    The controller makes this check after the others (AclControlManager.validateNewAcl).
    """
    if not host:
        return _INVALID_REQUEST, "Host pattern cannot be null or empty"
    if "/" not in host:
        return None
    if level < RANGES_LEVEL:
        return _UNSUPPORTED_VERSION, "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."
    try:
        parse_cidr(host)
    except ConfigError:
        return _INVALID_REQUEST, f"Invalid CIDR notation '{host}': {_why_no_range(host)}"
    return None


def _why_no_range(host: str) -> str:
    """Return the message of commons-net about a text that is no range (SubnetUtils, SubnetUtils6)."""
    base, _, prefix = host.partition("/")
    if ":" not in host:
        numbers = _IPV4_RANGE.fullmatch(host)
        for number, most in zip(map(int, numbers.groups()), (255, 255, 255, 255, 32), strict=True) if numbers else ():
            if number > most:
                return f"Value [{number}] not in range [0,{most}]"
        return f"Could not parse [{host}]"
    # SubnetUtils6 reads the prefix length before the base.
    digits = prefix[1:] if prefix[:1] in {"+", "-"} else prefix
    if not digits.isdecimal() or not -_INT_END <= int(prefix) < _INT_END:
        return f"Could not parse [{host}] - invalid prefix length"
    if not 0 <= int(prefix) <= _IPV6_BITS:
        return f"Could not parse [{host}] - prefix length must be between 0 and 128"
    address = address_number(base)
    mapped = address is not None and address.version == _IPV4  # Java reads ::ffff:10.0.0.0 as an IPv4 address
    return f"Could not parse [{base}]{' - not an IPv6 address' if mapped else ''}"


def unknown_field(acl: StandardAcl) -> str | None:
    """Return the first field whose code Kafka 4.3.1 does not know; None if it knows them all."""
    return _unknown_field(acl.resource_type, acl.pattern_type, acl.operation, acl.permission_type)


@lru_cache(_COMBINATIONS)
def _unknown_field(resource_type: int, pattern_type: int, operation: int, permission_type: int) -> str | None:
    fields = (
        ("resourceType", ResourceType, resource_type),
        ("patternType", PatternType, pattern_type),
        ("operation", AclOperation, operation),
        ("permissionType", AclPermissionType, permission_type),
    )
    return next((name for name, kind, code in fields if code_name(kind, code) == "UNKNOWN"), None)
