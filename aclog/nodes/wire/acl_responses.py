"""The answers about rules, written straight to bytes: an answer may hold tens of thousands.

They are made in pieces, so that an event loop can serve others between two of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.errors import AclRequestError, AuthorizerNotReadyError
from aclog.authorizer.interface import AclCreateResult, AclDeleteResult
from aclog.metalog.errors import MetadataError
from aclog.metalog.primitives import unsigned_varint
from aclog.nodes.wire.api_keys import DESCRIBE_ACLS, is_flexible
from aclog.nodes.wire.error_codes import UNKNOWN_SERVER_ERROR

PIECE = 500
"""How many rules are worked on between two pieces: one or two milliseconds."""


_NO_THROTTLE = bytes(4)
_SUCCESS = bytes(2)
_BYTES = tuple(bytes((code,)) for code in range(256))


def acl_error(error: MetadataError | None) -> tuple[int, str | None]:
    """The error code and message that a rule's or filter's result carries.

    Not being ready is told in words, as Kafka's protocol has no code for it; of other errors, which are ours, a client
    is told nothing (ApiError.fromThrowable).
    """
    if error is None:
        return 0, None
    if isinstance(error, AclRequestError):
        return error.code, error.message
    if isinstance(error, AuthorizerNotReadyError):
        return UNKNOWN_SERVER_ERROR, f"AUTHORIZER_NOT_READY: {error}"
    return UNKNOWN_SERVER_ERROR, None


def describe_acls_chunks(version: int, acls: Iterable[StandardAclWithId], piece: int = PIECE) -> Iterator[bytes]:
    """The body of the answer to DescribeAcls (versions 1 to 3), in pieces to be joined; some are empty.

    Rules are grouped by resource, and rules that differ in their ids only are told once (aclsResources).
    """
    form = _form(version)
    resources: dict[tuple[int, str, int], dict[bytes, None]] = {}
    for count, each in enumerate(acls, 1):
        acl = each.acl
        key = acl.resource_type, acl.resource_name, acl.pattern_type
        resources.setdefault(key, {})[form.entry(acl)] = None
        if count % piece == 0:
            yield b""
    yield _NO_THROTTLE + _SUCCESS + form.string("") + form.array(len(resources))
    parts: list[bytes] = []
    for (resource_type, name, pattern_type), entries in resources.items():
        head = _byte(resource_type) + form.string(name) + _byte(pattern_type)
        parts += (head, form.array(len(entries)), *entries, form.tags)
        if len(parts) > piece:
            yield b"".join(parts)
            parts.clear()
    yield b"".join(parts) + form.tags


def delete_acls_chunks(version: int, results: Sequence[AclDeleteResult], piece: int = PIECE) -> Iterator[bytes]:
    """The body of the answer to DeleteAcls (versions 1 to 3), in pieces to be joined: one result a filter."""
    form = _form(version)
    yield _NO_THROTTLE + form.array(len(results))
    for result in results:
        yield form.error(*acl_error(result.error)) + form.array(len(result.deleted))
        for start in range(0, len(result.deleted), piece):
            yield b"".join(map(form.matching, result.deleted[start : start + piece]))
        yield form.tags
    yield form.tags


def create_acls_body(version: int, results: Sequence[AclCreateResult]) -> bytes:
    """The body of the answer to CreateAcls (versions 1 to 3), one result a creation; a success has an empty message."""
    form = _form(version)
    success = _SUCCESS + form.string("") + form.tags
    parts = [success if each.error is None else form.error(*acl_error(each.error)) + form.tags for each in results]
    return _NO_THROTTLE + form.array(len(parts)) + b"".join(parts) + form.tags


class _Form:
    """How strings, arrays and rules look: in flexible versions or in older ones."""

    def __init__(self, *, flexible: bool) -> None:
        self.flexible = flexible
        self.tags = b"\0" if flexible else b""
        self.null = b"\0" if flexible else b"\xff\xff"

    def array(self, length: int) -> bytes:
        """An array's length."""
        return _length(length + 1) if self.flexible else length.to_bytes(4, "big")

    def string(self, text: str) -> bytes:
        """A string with its length; the log holds none that is too long."""
        data = text.encode(errors="replace")
        return (_length(len(data) + 1) if self.flexible else len(data).to_bytes(2, "big")) + data

    def error(self, code: int, message: str | None) -> bytes:
        """An error code and message."""
        return code.to_bytes(2, "big", signed=True) + (self.null if message is None else self.string(message))

    def entry(self, acl: StandardAcl) -> bytes:
        """A rule without its resource (AclDescription)."""
        codes = _byte(acl.operation) + _byte(acl.permission_type)
        return self.string(acl.principal) + self.string(acl.host) + codes + self.tags

    def matching(self, each: StandardAclWithId) -> bytes:
        """A deleted rule (DeleteAclsMatchingAcl), without an error."""
        acl = each.acl
        resource = _byte(acl.resource_type) + self.string(acl.resource_name) + _byte(acl.pattern_type)
        return _SUCCESS + self.null + resource + self.entry(acl)


@cache
def _form(version: int) -> _Form:
    return _Form(flexible=is_flexible(DESCRIBE_ACLS, version))


def _byte(code: int) -> bytes:
    return _BYTES[code & 0xFF]


def _length(value: int) -> bytes:
    return _BYTES[value] if value < 0x80 else unsigned_varint(value)
