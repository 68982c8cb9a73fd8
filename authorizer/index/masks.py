"""What a rule says about operations, as bits: allowed in bits 0..15, denied in bits 16..31 (AclOperation's codes)."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from authorizer.acl import AclOperation, AclPermissionType

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


def rule_mask(operation: int, permission_type: int) -> int:
    """The operations a rule allows, implied ones too, or denies: whatever does not allow, denies."""
    operation = known_operation(operation)
    bits = ALL_OPERATIONS if operation == AclOperation.ALL else 1 << operation
    if permission_type == AclPermissionType.ALLOW:
        return bits | _IMPLIED.get(AclOperation(operation), 0)
    return bits << 16


def mask_table() -> Masks:
    """Masks by [permission code as a byte, operation code as a byte]."""
    table = np.empty((256, 256), np.uint32)
    table[:] = [rule_mask(operation, AclPermissionType.DENY) for operation in range(256)]
    table[AclPermissionType.ALLOW] = [rule_mask(operation, AclPermissionType.ALLOW) for operation in range(256)]
    return table
