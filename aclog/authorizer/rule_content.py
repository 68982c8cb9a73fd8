"""The content of an ACL as bytes: its record from behind the id on. Sets of many ACLs are compared by it.

As objects, a hundred thousand ACLs take a second to make and to hash; as bytes, a tenth of that.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acl_records import acl_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.cidr import is_cidr
from aclog.authorizer.rule_object import CODES, rule_of_object
from aclog.metalog.acl_columns import read_acls
from aclog.metalog.codec import ACL_CONTENT, decode_record, encode_acl, encode_record
from aclog.metalog.records import AccessControlEntryRecord
from aclog.metalog.uuids import ZERO

_SHORT = 0x7E
"""The most bytes of a text whose length takes one byte."""
_TEXTS = ("resourceName", "principal", "host")
_BYTES = tuple(bytes((code,)) for code in range(0x80))


def contents_of(acls: AclsImage) -> set[bytes]:
    """Return the contents of all ACLs of an image."""
    index = acls.index
    if index.base.tags or any(record.tagged_fields for record in index.overlay.added.values()):
        return {content_of(rule.acl) for rule in acls}
    return {record[ACL_CONTENT:] for record in acls.records()}


def content_of(acl: StandardAcl) -> bytes:
    """Return the content of an ACL. Raises EncodeError: a text that no record can hold."""
    return encode_acl(acl, ZERO)[ACL_CONTENT:]


def content_of_object(value: dict[str, object]) -> bytes:
    """Return the content of the ACL in a JSON object. Raises ConfigError: as rule_of_object; EncodeError."""
    return _plain_content(value) or content_of(rule_of_object(value).acl)


def acl_of_content(content: bytes) -> StandardAcl:
    """Return the ACL with this content."""
    record = decode_record(_HEAD + content)
    if not isinstance(record, AccessControlEntryRecord):
        raise TypeError(f"not the content of an ACL: {content!r}")
    return acl_of(record)


def pattern_of_content(content: bytes) -> tuple[int, str, int, str]:
    """Return resource type, resource name, pattern type and principal; it is faster than making the whole ACL."""
    size = content[1] - 1
    at = 2 + size  # of the pattern type, if both lengths take one byte
    if size < _SHORT and content[at + 1] <= _SHORT:
        principal = content[at + 2 : at + 1 + content[at + 1]].decode()
        return content[0], content[2:at].decode(), content[at], principal
    acl = acl_of_content(content)
    return acl.resource_type, acl.resource_name, acl.pattern_type, acl.principal


def ranges_among(contents: Iterable[bytes]) -> Iterator[str]:
    """Yield the hosts that are ranges of addresses of the ACLs with these contents."""
    for content in contents:
        if b"/" in content:  # nearly none has it, and to make an ACL takes longer
            host = acl_of_content(content).host
            if is_cidr(host):
                yield host


def image_of(contents: Iterable[bytes]) -> AclsImage:
    """Return an image of the ACLs with these contents, each once, without ids."""
    values = [_HEAD + content for content in contents]
    ends = np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
    columns, left_out = read_acls(b"".join(values), np.concatenate((np.zeros(1, np.int64), ends))[:-1], ends)
    if len(left_out):  # none that content_of returns
        raise ValueError(f"not the content of an ACL: {values[left_out[0]][ACL_CONTENT:]!r}")
    return AclsImage.from_columns(columns, has_ids=False)


def _plain_content(value: Mapping[str, object]) -> bytes | None:
    """Return the content if all of the object is as nearly always: short ASCII texts, and known names."""
    types, patterns, operations, permissions = CODES
    try:
        name, principal, host = (value[key].encode("ascii") for key in _TEXTS)  # type: ignore[attr-defined]
        kind, pattern = types[value["resourceType"]], patterns[value["patternType"]]  # type: ignore[index]
        codes = bytes((operations[value["operation"]], permissions[value["permissionType"]], 0))  # type: ignore[index]
    except (KeyError, AttributeError, TypeError, UnicodeEncodeError):
        return None
    if len(name) >= _SHORT or len(principal) >= _SHORT or len(host) >= _SHORT:
        return None
    return b"".join(
        (
            _BYTES[kind],
            _BYTES[len(name) + 1],
            name,
            _BYTES[pattern],
            _BYTES[len(principal) + 1],
            principal,
            _BYTES[len(host) + 1],
            host,
            codes,
        )
    )


_HEAD = encode_record(
    AccessControlEntryRecord(
        id=ZERO,
        resource_type=0,
        resource_name="",
        pattern_type=0,
        principal="",
        host="",
        operation=0,
        permission_type=0,
    )
)[:ACL_CONTENT]
