"""Messages with ACLs and tokens, encoded without kio."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from typing import TypeAlias

from aclog.authorizer.acl import StandardAcl, StandardAclWithId, make_acl
from aclog.authorizer.index.layout import ByteStrings
from aclog.authorizer.interface import (
    AclCreateResult,
    AclDeleteResult,
    AclRequestError,
    AuthorizerNotReadyError,
    ResourceGroups,
)
from aclog.metalog.errors import DecodeError, MetadataError
from aclog.metalog.native import np
from aclog.metalog.primitives import compact_string, read_unsigned_varint
from aclog.metalog.records import DelegationTokenRecord
from aclog.metalog.values import frozen
from aclog.protocol import api_keys, error_codes
from aclog.protocol.headers import tagged_fields
from aclog.protocol.messages import NO_ERROR, NO_THROTTLE, FieldWriter, field_writer, int8

# DescribeAcls responses read without kio, and without an object per ACL, because they may hold a hundred thousand.
#
# In versions 2 and 3 a response has the fields of an ACL in the order and encoding of an AccessControlEntryRecord,
# with the resource once for all its ACLs. So the content of a record (aclog.metalog.codec.ACL_CONTENT) is two
# slices of the response.


FIRST_COMPACT = 2
"""The first version with compact strings."""

MOST_LISTED = 4_000_000
"""The most ACLs of one response: more than any cluster has, and no more than memory holds."""

_THROTTLE = 4
_LONG = 0x80
"""A length from here on takes more than one byte."""
_NO_TAGS = 0
_MANY_BYTES = 1 << 20
"""A smaller response has fewer than 200,000 ACLs, regardless of the number that it announces."""
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")


@frozen(kw_only=True)
class AclListing:
    """The answer to DescribeAcls: an error, or the contents of ACLs, each once."""

    error_code: int
    error_message: str | None
    contents: set[bytes]
    """As in an AccessControlEntryRecord behind its id."""


def decode_listing(buffer: bytes, position: int) -> AclListing:
    """Decode the body of a DescribeAcls response of version 2 or 3 that begins at this position.

    Invalid UTF-8 becomes U+FFFD, as in Java; unknown tagged fields are skipped.

    Raises:
        DecodeError: truncated, a null where a text is required, more than MOST_LISTED ACLs, or bytes after the end.

    """
    at = position + _THROTTLE
    code = int.from_bytes(buffer[at : at + 2], "big", signed=True)
    message, at = _text(buffer, at + 2)
    resources, at = read_unsigned_varint(buffer, at)
    contents: set[bytes] = set()
    listed = 0
    try:
        for _ in range(resources - 1):
            at, count = _read_resource(buffer, at, contents, MOST_LISTED - listed)
            listed += count
    except IndexError:
        raise DecodeError("truncated in a list of ACLs", position=len(buffer)) from None
    _, at = tagged_fields(buffer, at)
    if at != len(buffer):
        raise DecodeError(f"{len(buffer) - at} bytes after the end of the message", position=at)
    return AclListing(error_code=code, error_message=message, contents=contents)


def listing_digest(buffer: bytes, position: int) -> str:
    """Return the SHA-256 of the body of such a response, in hexadecimal, without the throttle time before it."""
    return sha256(memoryview(buffer)[position + _THROTTLE :]).hexdigest()


def _read_resource(buffer: bytes, at: int, contents: set[bytes], most: int) -> tuple[int, int]:
    """Add the contents of the ACLs of the resource at this position; return the position after it, and their number."""
    size = buffer[at + 1]
    if 0 < size < _LONG:
        after = at + size + 2
        head = buffer[at:after]
    else:
        name, after = _required(buffer, at + 1)
        after += 1
        head = buffer[at : at + 1] + name + buffer[after - 1 : after]
    count, at = (buffer[after], after + 1) if buffer[after] < _LONG else read_unsigned_varint(buffer, after)
    _check_number(count - 1, most, at)
    if not head.isascii():
        name, _ = _required(head, 1)
        head = head[:1] + name + head[-1:]
    for _ in range(count - 1):
        start = at
        size = buffer[at]
        host = buffer[at + size] if 0 < size < _LONG else 0
        at += size + host + 3
        if 0 < host < _LONG and buffer[at - 1] == _NO_TAGS and (entry := buffer[start:at]).isascii():
            contents.add(head + entry)
        else:
            entry, at = _entry(buffer, start)
            contents.add(head + entry)
    return (at + 1 if buffer[at] == _NO_TAGS else tagged_fields(buffer, at)[1]), max(count - 1, 0)


def _check_number(count: int, most: int, at: int) -> None:
    if count > most:
        raise DecodeError(f"more than {MOST_LISTED:,} ACLs in one response", position=at)


def check_listing(version: int, buffer: bytes, position: int) -> None:
    """Check that the body of a DescribeAcls response has no more than MOST_LISTED ACLs, before each becomes an object.

    Raises:
        DecodeError: it has more, or is malformed.

    """
    if len(buffer) - position < _MANY_BYTES:
        return
    if version >= FIRST_COMPACT:
        decode_listing(buffer, position)
        return
    try:
        _check_older_listing(buffer, position + _THROTTLE + 2)
    except struct.error:
        raise DecodeError("truncated in a list of ACLs", position=len(buffer)) from None


def _check_older_listing(buffer: bytes, at: int) -> None:
    at = _after_text(buffer, at)
    [resources] = _INT32.unpack_from(buffer, at)
    at, listed = at + 4, 0
    for _ in range(resources):
        at = _after_text(buffer, at + 1) + 1
        [count] = _INT32.unpack_from(buffer, at)
        _check_number(count, MOST_LISTED - listed, at)
        listed, at = listed + max(count, 0), at + 4
        for _ in range(count):
            at = _after_text(buffer, _after_text(buffer, at)) + 2


def _after_text(buffer: bytes, at: int) -> int:
    """Return the position after the string with a length of two bytes at this one; -1 is null."""
    size: int = _INT16.unpack_from(buffer, at)[0]
    return at + 2 + max(size, 0)


def _entry(buffer: bytes, at: int) -> tuple[bytes, int]:
    """Return the ACL at this position as a record has it, without its resource, and the position after it."""
    principal, at = _required(buffer, at)
    host, at = _required(buffer, at)
    codes = bytes((buffer[at], buffer[at + 1]))
    return principal + host + codes + bytes((_NO_TAGS,)), tagged_fields(buffer, at + 2)[1]


def _required(buffer: bytes, at: int) -> tuple[bytes, int]:
    """Return the compact string at this position, encoded anew, and the position after it."""
    text, after = _text(buffer, at)
    if text is None:
        raise DecodeError("null where a text is required", position=at)
    return compact_string(text), after


def _text(buffer: bytes, at: int) -> tuple[str | None, int]:
    size, start = read_unsigned_varint(buffer, at)
    if size == 0:
        return None, start
    end = start + size - 1
    if end > len(buffer):
        raise DecodeError(f"a text of {size - 1} bytes: {len(buffer) - start} left", position=at)
    return buffer[start:end].decode(errors="replace"), end


# CreateAcls requests as clients send them, decoded without kio: the requests of which a controller gets the most.


_SINCE = 2
"""The first flexible version; older ones are left to kio."""


@frozen
class CreateAclsRequest:
    """The body of a CreateAclsRequest (versions 2 and 3), whose creations are ACLs already."""

    creations: tuple[StandardAcl, ...]


def decode_create_acls(version: int, buffer: bytes, position: int) -> CreateAclsRequest | None:
    """Decode the body of a common request; None for others, which aclog.protocol.messages decodes or rejects.

    Common are requests of up to 126 ACLs whose strings have up to 126 bytes and whose codes are no negative numbers,
    without tagged fields.
    """
    if version < _SINCE:
        return None
    acls = []
    try:
        count, at = buffer[position] - 1, position + 1
        for _ in range(count):
            kind, size, name = buffer[at], buffer[at + 1], at + 2
            pattern = name + size - 1
            principal_size, principal = buffer[pattern + 1], pattern + 2
            # Every length is assumed to have one byte; a length of two has its high bit set, and is rejected below.
            host_at = principal + principal_size - 1
            host_size, host = buffer[host_at], host_at + 1
            end = host + host_size - 1
            operation, permission, tags = buffer[end], buffer[end + 1], buffer[end + 2]
            codes = kind | buffer[pattern] | operation | permission
            if (codes | count | size | principal_size | host_size) > 0x7F or tags:
                return None
            if not (size and principal_size and host_size):
                return None
            acls.append(
                make_acl(
                    kind,
                    buffer[name:pattern].decode(),
                    buffer[pattern],
                    buffer[principal:host_at].decode(),
                    buffer[host:end].decode(),
                    operation,
                    permission,
                )
            )
            at = end + 3
        # A count of -1 is null, and the next bytes need no check.
        return None if count < 0 or count > 0x7E or buffer[at] else CreateAclsRequest(tuple(acls))
    except (IndexError, ValueError):
        return None  # truncated, or not UTF-8


# Responses with ACLs, encoded without kio because they may hold tens of thousands.
#
# They are produced in chunks, so that the event loop can serve other clients in between.


PIECE = 500
"""ACLs per chunk, which takes 1 to 2 ms."""

_ROWS = 1 << 13
"""The same of ACLs in columns."""


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
        return error_codes.UNKNOWN_SERVER_ERROR, f"AUTHORIZER_NOT_READY: {error}"
    return error_codes.UNKNOWN_SERVER_ERROR, None


def describe_acls_chunks(version: int, acls: Iterable[StandardAclWithId], piece: int = PIECE) -> Iterator[bytes]:
    """Yield the body of the DescribeAcls response (versions 1 to 3) in chunks, some of them empty.

    ACLs are grouped by resource; ACLs that differ only in their ids appear once (DescribeAclsResponse.aclsResources).
    """
    form = field_writer(api_keys.DESCRIBE_ACLS, version)
    resources: _Resources = {}
    for count, each in enumerate(acls, 1):
        _add(resources, form, each.acl)
        if count % piece == 0:
            yield b""
    yield NO_THROTTLE + NO_ERROR + form.string("") + form.array(len(resources))
    yield from _resources(form, resources, piece)
    yield form.tags


def describe_groups_chunks(groups: ResourceGroups, piece: int = _ROWS) -> Iterator[bytes]:
    """Yield the body of version 2 or 3 for ACLs in columns, whose keys have the bytes of the response."""
    form, firsts = field_writer(api_keys.DESCRIBE_ACLS, FIRST_COMPACT), groups.firsts
    count, low = len(groups.firsts) - 1, 0
    yield NO_THROTTLE + NO_ERROR + form.string("") + form.array(count)
    while low < count:
        high = max(int(np.searchsorted(firsts, firsts[low] + piece, "right")) - 1, low + 1)
        yield _grouped(form, groups, low, high)
        low = high
    yield form.tags


def _grouped(form: FieldWriter, groups: ResourceGroups, low: int, high: int) -> bytes:
    """Encode some groups, each as its key, the number of its ACLs, and their pairs of principal and host and codes."""
    firsts = groups.firsts[low : high + 1]
    acls = slice(int(firsts[0]), int(firsts[-1]))
    firsts = firsts - firsts[0]
    numbers = np.diff(firsts)
    sizes, size_of = np.unique(numbers, return_inverse=True)
    resources = ByteStrings(groups.resource_offsets, groups.resources).take(np.arange(low, high))
    lengths = ByteStrings.of([form.array(size) for size in sizes.tolist()])
    pairs = ByteStrings(groups.pair_offsets, groups.pairs).take(groups.pair_of[acls])
    codes = np.zeros((len(pairs), 3), np.uint8)  # the last byte: no tagged fields
    codes[:, :2] = groups.codes[acls]
    code_at = 3 * np.arange(len(pairs))
    # the response as slices of these, each of which has a place in its order
    key_at = 3 * np.arange(high - low) + 2 * firsts[:-1]
    pair_at = np.repeat(key_at + 2 - 2 * firsts[:-1], numbers) + 2 * np.arange(len(pairs))
    edges = np.empty((2, 3 * (high - low) + 2 * len(pairs)), np.int64)
    begin, data = 0, []
    for at, source, starts, ends in (
        (key_at, resources.data, resources.starts, resources.ends),
        (key_at + 1, lengths.data, lengths.starts[size_of], lengths.ends[size_of]),
        (pair_at, pairs.data, pairs.starts, pairs.ends),
        (pair_at + 1, codes.ravel(), code_at, code_at + 3),
        (key_at + 2 + 2 * numbers, np.zeros(1, np.uint8), np.int64(0), np.int64(1)),  # no tagged fields
    ):
        edges[0, at], edges[1, at] = starts + begin, ends + begin
        data.append(source)
        begin += len(source)
    return ByteStrings.cut(np.concatenate(data), edges[0], edges[1]).data.tobytes()


_Resources: TypeAlias = dict[tuple[int, str, int], dict[bytes, None]]
"""By resource pattern: the encoded entries of its ACLs, in a dict as an ordered set."""


def _add(resources: _Resources, form: FieldWriter, acl: StandardAcl) -> None:
    key = acl.resource_type, acl.resource_name, acl.pattern_type
    resources.setdefault(key, {})[_response_entry(form, acl)] = None


def _resources(form: FieldWriter, resources: _Resources, piece: int) -> Iterator[bytes]:
    parts: list[bytes] = []
    for (resource_type, name, pattern_type), entries in resources.items():
        head = int8(resource_type) + form.string(name) + int8(pattern_type)
        parts += (head, form.array(len(entries)), *entries, form.tags)
        if len(parts) > piece:
            yield b"".join(parts)
            parts.clear()
    yield b"".join(parts)


def delete_acls_chunks(version: int, results: Sequence[AclDeleteResult], piece: int = PIECE) -> Iterator[bytes]:
    """Yield the body of the DeleteAcls response (versions 1 to 3) in chunks, one result per filter."""
    form = field_writer(api_keys.DESCRIBE_ACLS, version)
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
    form = field_writer(api_keys.DESCRIBE_ACLS, version)
    success = NO_ERROR + form.string("") + form.tags
    parts = [success if each.error is None else form.error(*acl_error(each.error)) + form.tags for each in results]
    return NO_THROTTLE + form.array(len(parts)) + b"".join(parts) + form.tags


@cache
def _one_created(version: int) -> bytes:
    """Return the body that nearly every CreateAcls response has."""
    form = field_writer(api_keys.DESCRIBE_ACLS, version)
    return NO_THROTTLE + form.array(1) + NO_ERROR + form.string("") + form.tags + form.tags


def _response_entry(form: FieldWriter, acl: StandardAcl) -> bytes:
    """Encode an ACL without its resource (AclDescription)."""
    codes = int8(acl.operation) + int8(acl.permission_type)
    return form.string(acl.principal) + form.string(acl.host) + codes + form.tags


def _matching(form: FieldWriter, each: StandardAclWithId) -> bytes:
    """Encode a deleted ACL (DeleteAclsMatchingAcl) without an error."""
    acl = each.acl
    resource = int8(acl.resource_type) + form.string(acl.resource_name) + int8(acl.pattern_type)
    return NO_ERROR + form.null + resource + _response_entry(form, acl)


# Responses with delegation tokens, encoded without kio because their timestamps exceed datetime's range.


REQUESTER_SINCE = 3
"""The version since which create and describe distinguish owner and requester (KIP-373)."""


def token_created_response(version: int, token: DelegationTokenRecord, token_hmac: bytes) -> bytes:
    """Return the body of a successful CreateDelegationToken response (versions 1 to 3)."""
    form = field_writer(api_keys.CREATE_DELEGATION_TOKEN, version)
    who = form.principal(token.owner) + (form.principal(token.requester) if version >= REQUESTER_SINCE else b"")
    times = _long(token.issue_timestamp) + _long(token.expiration_timestamp) + _long(token.max_timestamp)
    token_fields = form.string(token.token_id) + form.binary(token_hmac)
    return bytes(2) + who + times + token_fields + NO_THROTTLE + form.tags


def token_refused_response(version: int, owner: str, requester: str, *, error_code: int, timestamp: int) -> bytes:
    """Return the body of a failed CreateDelegationToken response; `timestamp` is used for all three times."""
    form = field_writer(api_keys.CREATE_DELEGATION_TOKEN, version)
    who = form.principal(owner) + (form.principal(requester) if version >= REQUESTER_SINCE else b"")
    nothing = form.string("") + form.binary(b"")
    return _short(error_code) + who + 3 * _long(timestamp) + nothing + NO_THROTTLE + form.tags


def token_expiry_response(version: int, error_code: int, expiry_ms: int) -> bytes:
    """Return the body of a RenewDelegationToken or ExpireDelegationToken response (versions 1 and 2)."""
    return (
        _short(error_code)
        + _long(expiry_ms)
        + NO_THROTTLE
        + field_writer(api_keys.RENEW_DELEGATION_TOKEN, version).tags
    )


def describe_tokens_response(
    version: int, tokens: Iterable[tuple[DelegationTokenRecord, bytes]], error_code: int = 0
) -> bytes:
    """Return the body of a DescribeDelegationToken response (versions 1 to 3) with tokens and their HMACs."""
    form = field_writer(api_keys.DESCRIBE_DELEGATION_TOKEN, version)
    described = [_described(form, version, token, token_hmac) for token, token_hmac in tokens]
    return _short(error_code) + form.array(len(described)) + b"".join(described) + NO_THROTTLE + form.tags


def _described(form: FieldWriter, version: int, token: DelegationTokenRecord, token_hmac: bytes) -> bytes:
    who = form.principal(token.owner) + (form.principal(token.requester) if version >= REQUESTER_SINCE else b"")
    times = _long(token.issue_timestamp) + _long(token.expiration_timestamp) + _long(token.max_timestamp)
    renewers = [form.principal(renewer) + form.tags for renewer in token.renewers]
    secret = form.string(token.token_id) + form.binary(token_hmac)
    return who + times + secret + form.array(len(renewers)) + b"".join(renewers) + form.tags


def _short(code: int) -> bytes:
    return code.to_bytes(2, "big", signed=True)


def _long(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)
