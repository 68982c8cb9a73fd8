"""Responses with ACLs, encoded without kio because they may hold tens of thousands.

They are produced in chunks, so that the event loop can serve other clients in between.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.errors import AclRequestError, AuthorizerNotReadyError
from aclog.authorizer.interface import AclCreateResult, AclDeleteResult
from aclog.metalog.errors import MetadataError
from aclog.nodes.wire.api_keys import DESCRIBE_ACLS
from aclog.nodes.wire.error_codes import UNKNOWN_SERVER_ERROR
from aclog.nodes.wire.field_writer import NO_ERROR, NO_THROTTLE, FieldWriter, field_writer, int8

PIECE = 500
"""ACLs per chunk, which takes 1 to 2 ms."""


def acl_error(error: MetadataError | None) -> tuple[int, str | None]:
    """Return the error code and message for the result of an ACL or a filter.

    AUTHORIZER_NOT_READY goes into the message because Kafka has no code for it. Other errors are internal and not
    revealed to clients (ApiError.fromThrowable).
    """
    if error is None:
        return 0, None
    if isinstance(error, AclRequestError):
        return error.code, error.message
    if isinstance(error, AuthorizerNotReadyError):
        return UNKNOWN_SERVER_ERROR, f"AUTHORIZER_NOT_READY: {error}"
    return UNKNOWN_SERVER_ERROR, None


def describe_acls_chunks(version: int, acls: Iterable[StandardAclWithId], piece: int = PIECE) -> Iterator[bytes]:
    """Yield the body of the DescribeAcls response (versions 1 to 3) in chunks, some of them empty.

    ACLs are grouped by resource; ACLs that differ only in their ids appear once (DescribeAclsResponse.aclsResources).
    """
    form = field_writer(DESCRIBE_ACLS, version)
    resources: dict[tuple[int, str, int], dict[bytes, None]] = {}
    for count, each in enumerate(acls, 1):
        acl = each.acl
        key = acl.resource_type, acl.resource_name, acl.pattern_type
        resources.setdefault(key, {})[_entry(form, acl)] = None  # a dict as ordered set of encoded entries
        if count % piece == 0:
            yield b""
    yield NO_THROTTLE + NO_ERROR + form.string("") + form.array(len(resources))
    parts: list[bytes] = []
    for (resource_type, name, pattern_type), entries in resources.items():
        head = int8(resource_type) + form.string(name) + int8(pattern_type)
        parts += (head, form.array(len(entries)), *entries, form.tags)
        if len(parts) > piece:
            yield b"".join(parts)
            parts.clear()
    yield b"".join(parts) + form.tags


def delete_acls_chunks(version: int, results: Sequence[AclDeleteResult], piece: int = PIECE) -> Iterator[bytes]:
    """Yield the body of the DeleteAcls response (versions 1 to 3) in chunks, one result per filter."""
    form = field_writer(DESCRIBE_ACLS, version)
    yield NO_THROTTLE + form.array(len(results))
    for result in results:
        yield form.error(*acl_error(result.error)) + form.array(len(result.deleted))
        for start in range(0, len(result.deleted), piece):
            yield b"".join(_matching(form, deleted) for deleted in result.deleted[start : start + piece])
        yield form.tags
    yield form.tags


def create_acls_body(version: int, results: Sequence[AclCreateResult]) -> bytes:
    """Return the body of the CreateAcls response (versions 1 to 3); the message of a success is empty, as in Kafka."""
    if len(results) == 1 and results[0].error is None:
        return _one_created(version)
    form = field_writer(DESCRIBE_ACLS, version)
    success = NO_ERROR + form.string("") + form.tags
    parts = [success if each.error is None else form.error(*acl_error(each.error)) + form.tags for each in results]
    return NO_THROTTLE + form.array(len(parts)) + b"".join(parts) + form.tags


@cache
def _one_created(version: int) -> bytes:
    """Return the body that nearly every CreateAcls response has."""
    form = field_writer(DESCRIBE_ACLS, version)
    return NO_THROTTLE + form.array(1) + NO_ERROR + form.string("") + form.tags + form.tags


def _entry(form: FieldWriter, acl: StandardAcl) -> bytes:
    """Encode an ACL without its resource (AclDescription)."""
    codes = int8(acl.operation) + int8(acl.permission_type)
    return form.string(acl.principal) + form.string(acl.host) + codes + form.tags


def _matching(form: FieldWriter, each: StandardAclWithId) -> bytes:
    """Encode a deleted ACL (DeleteAclsMatchingAcl) without an error."""
    acl = each.acl
    resource = int8(acl.resource_type) + form.string(acl.resource_name) + int8(acl.pattern_type)
    return NO_ERROR + form.null + resource + _entry(form, acl)
