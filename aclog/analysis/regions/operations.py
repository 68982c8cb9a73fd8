"""Operations as masks: bit n is the operation with code n (AclOperation); only the 13 that a request can ask."""

from collections.abc import Iterator

from aclog.authorizer.acl import AclOperation

REQUESTED = sum(1 << code for code in AclOperation if code > AclOperation.ALL)
"""All 13: no request asks UNKNOWN, ANY or ALL."""


def operations_of(mask: int) -> Iterator[AclOperation]:
    """Yield the operations of a mask, by their codes."""
    return (operation for operation in AclOperation if mask >> operation & 1)
