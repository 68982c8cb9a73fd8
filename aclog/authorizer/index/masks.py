"""What a rule says about operations, as bits: allowed in bits 0..15, denied in bits 16..31 (AclOperation's codes)."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclog.authorizer.acl import AclOperation, AclPermissionType

Masks: TypeAlias = NDArray[np.uint32]

OPERATIONS = 16
TYPES = 8
"""Operation codes 0..15 and resource type codes 0..7 are known; Kafka reads any other as UNKNOWN (0)."""

ALL_OPERATIONS = 0xFFFF
ALLOWED = 1
DENIED = 1 << 16
"""The two bits left of a mask shifted down by an operation's code."""

_IMPLIED = {
    AclOperation.READ: 1 << AclOperation.DESCRIBE,
    AclOperation.WRITE: 1 << AclOperation.DESCRIBE,
    AclOperation.DELETE: 1 << AclOperation.DESCRIBE,
    AclOperation.ALTER: 1 << AclOperation.DESCRIBE,
    AclOperation.ALTER_CONFIGS: 1 << AclOperation.DESCRIBE_CONFIGS,
}


def known_operation(code: int) -> int:
    """The operation that Kafka takes a code for (AclOperation.fromCode)."""
    return code if 0 <= code < OPERATIONS else 0


def known_type(code: int) -> int:
    """The resource type that Kafka takes a code for (ResourceType.fromCode)."""
    return code if 0 <= code < TYPES else 0


def known_pattern(code: int) -> int:
    """The pattern type that Kafka takes a code for (PatternType.fromCode)."""
    return code if 0 <= code <= 4 else 0


def known_permission(code: int) -> int:
    """The permission that Kafka takes a code for (AclPermissionType.fromCode)."""
    return code if 0 <= code <= 3 else 0


def _mask(operation: int, *, allow: bool) -> int:
    bits = ALL_OPERATIONS if operation == AclOperation.ALL else 1 << operation
    return bits | _IMPLIED.get(AclOperation(operation), 0) if allow else bits << 16


_ALLOWING = tuple(_mask(known_operation(byte), allow=True) for byte in range(256))
_DENYING = tuple(_mask(known_operation(byte), allow=False) for byte in range(256))


def rule_mask(operation: int, permission_type: int) -> int:
    """The operations a rule allows, implied ones too, or denies: whatever does not allow, denies."""
    return (_ALLOWING if permission_type == AclPermissionType.ALLOW else _DENYING)[operation & 0xFF]


def mask_table() -> Masks:
    """Masks by [permission code as a byte, operation code as a byte]."""
    table = np.empty((256, 256), np.uint32)
    table[:] = _DENYING
    table[AclPermissionType.ALLOW] = _ALLOWING
    return table
