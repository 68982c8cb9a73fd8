"""DescribeAcls responses read without kio, and without an object per ACL, because they may hold a hundred thousand.

In versions 2 and 3 a response has the fields of an ACL in the order and encoding of an AccessControlEntryRecord, with
the resource once for all its ACLs. So the content of a record (aclog.metalog.codec.ACL_CONTENT) is two slices of it.
"""

from attrs import frozen

from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import compact_string, read_unsigned_varint
from aclog.nodes.wire.tagged_fields import tagged_fields

FIRST_COMPACT = 2
"""The first version with compact strings."""

_THROTTLE = 4
_LONG = 0x80
"""A length from here on takes more than one byte."""
_NO_TAGS = 0


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
        DecodeError: truncated, a null where a text is required, or bytes after the response.

    """
    at = position + _THROTTLE
    code = int.from_bytes(buffer[at : at + 2], "big", signed=True)
    message, at = _text(buffer, at + 2)
    resources, at = read_unsigned_varint(buffer, at)
    contents: set[bytes] = set()
    try:
        for _ in range(resources - 1):
            at = _read_resource(buffer, at, contents)
    except IndexError:
        raise DecodeError("truncated in a list of ACLs", position=len(buffer)) from None
    _, at = tagged_fields(buffer, at)
    if at != len(buffer):
        raise DecodeError(f"{len(buffer) - at} bytes after the end of the message", position=at)
    return AclListing(error_code=code, error_message=message, contents=contents)


def _read_resource(buffer: bytes, at: int, contents: set[bytes]) -> int:
    """Add the contents of the ACLs of the resource at this position; return the position after it."""
    size = buffer[at + 1]
    if 0 < size < _LONG:
        after = at + size + 2
        head = buffer[at:after]
    else:
        name, after = _required(buffer, at + 1)
        after += 1
        head = buffer[at : at + 1] + name + buffer[after - 1 : after]
    count, at = (buffer[after], after + 1) if buffer[after] < _LONG else read_unsigned_varint(buffer, after)
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
    return at + 1 if buffer[at] == _NO_TAGS else tagged_fields(buffer, at)[1]


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
