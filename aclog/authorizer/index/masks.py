"""Masks: the operations that ACLs allow (bits 0..15) and deny (bits 16..31), by the codes of AclOperation.

Masks of several ACLs are or-ed. Kafka's rule that any DENY wins is then one test of two bits.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclog.authorizer.acl import AclOperation, AclPermissionType

Masks: TypeAlias = NDArray[np.uint32]

OPERATIONS = 16
TYPES = 8
"""Operation codes 0..15 and resource type codes 0..7 exist; Kafka reads any other as UNKNOWN (0)."""

ALL_OPERATIONS = 0xFFFF
ALLOWED = 1
DENIED = 1 << 16
"""The two bits to test after a mask is shifted right by an operation's code."""

# Allowing these operations implies the others (StandardAuthorizerData.IMPLIES_DESCRIBE and
# IMPLIES_DESCRIBE_CONFIGS). Denying an operation denies no other.
_IMPLIED = {
    AclOperation.READ: 1 << AclOperation.DESCRIBE,
    AclOperation.WRITE: 1 << AclOperation.DESCRIBE,
    AclOperation.DELETE: 1 << AclOperation.DESCRIBE,
    AclOperation.ALTER: 1 << AclOperation.DESCRIBE,
    AclOperation.ALTER_CONFIGS: 1 << AclOperation.DESCRIBE_CONFIGS,
}


def known_operation(code: int) -> int:
    """Return the operation that Kafka reads from a code (AclOperation.fromCode)."""
    return code if 0 <= code < OPERATIONS else 0


def known_type(code: int) -> int:
    """Return the resource type that Kafka reads from a code (ResourceType.fromCode)."""
    return code if 0 <= code < TYPES else 0


def known_pattern(code: int) -> int:
    """Return the pattern type that Kafka reads from a code (PatternType.fromCode)."""
    return code if 0 <= code <= 4 else 0


def known_permission(code: int) -> int:
    """Return the permission that Kafka reads from a code (AclPermissionType.fromCode)."""
    return code if 0 <= code <= 3 else 0


def _mask(operation: int, *, allow: bool) -> int:
    bits = ALL_OPERATIONS if operation == AclOperation.ALL else 1 << operation
    return bits | _IMPLIED.get(AclOperation(operation), 0) if allow else bits << 16


# Tables over all byte values: codes are read from columns of bytes, and an update should not look up enum members.
_ALLOWING = tuple(_mask(known_operation(byte), allow=True) for byte in range(256))
_DENYING = tuple(_mask(known_operation(byte), allow=False) for byte in range(256))


def rule_mask(operation: int, permission_type: int) -> int:
    """Return the mask of one ACL; every permission but ALLOW acts as DENY, and only ALLOW implies other operations."""
    return (_ALLOWING if permission_type == AclPermissionType.ALLOW else _DENYING)[operation & 0xFF]


def mask_table() -> Masks:
    """Return the masks by [permission code as a byte, operation code as a byte]."""
    table = np.empty((256, 256), np.uint32)
    table[:] = _DENYING
    table[AclPermissionType.ALLOW] = _ALLOWING
    return table
