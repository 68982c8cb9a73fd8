from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.metalog.codec import ACL_CONTENT, encode_acl
from aclog.metalog.errors import DecodeError, MetadataError
from aclog.metalog.primitives import ZERO
from aclog.protocol.acls import decode_listing, describe_acls_chunks
from aclog.protocol.messages import build, decode_response, encode_response
from tests.support.builders.acls import acl

CODES = st.integers(-128, 127)
NAMES = st.sampled_from(["", "a", "*", "é" * 70, "é" * 63, "x" * 126, "x" * 127, "x" * 32767]) | st.text(max_size=4)
ACLS = st.builds(
    StandardAcl,
    resource_type=st.sampled_from([2, 3]) | CODES,
    resource_name=NAMES,
    pattern_type=st.sampled_from([3, 4]) | CODES,
    principal=NAMES,
    host=NAMES,
    operation=CODES,
    permission_type=CODES,
)
FEW = [acl("orders", "User:a"), acl("orders", "User:é"), acl("ö", "User:b"), acl("x" * 200, "User:c")]


def body_of(acls, version=3):
    return b"".join(describe_acls_chunks(version, [StandardAclWithId(id=None, acl=each) for each in acls]))


def content(each):
    return encode_acl(each, ZERO)[ACL_CONTENT:]


def by_kio(body, position=0):
    """The same answer through kio's messages, as objects."""
    found = decode_response(29, 3, body, position, whole=True)
    return {
        content(
            StandardAcl(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                pattern_type=resource.pattern_type,
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission_type,
            )
        )
        for resource in found.resources
        for each in resource.acls
    }


@given(st.sampled_from([2, 3]), st.lists(ACLS, max_size=12), st.binary(max_size=3))
def test_contents_are_those_of_records(version, acls, before):
    found = decode_listing(before + body_of(acls, version), len(before))
    assert (found.error_code, found.error_message) == (0, "")
    assert found.contents == set(map(content, acls))


def test_a_refusal():
    fields = {"throttle_time": timedelta(0), "error_code": 31, "error_message": "no DESCRIBE", "resources": ()}
    found = decode_listing(encode_response(build(29, 3, "response", **fields)), 0)
    assert (found.error_code, found.error_message, found.contents) == (31, "no DESCRIBE", set())


def test_cut_anywhere_it_is_refused():
    body = body_of(FEW)
    for size in range(len(body)):
        with pytest.raises(DecodeError):
            decode_listing(body[:size], 0)
    with pytest.raises(DecodeError, match="1 bytes after the end"):
        decode_listing(body + b"\0", 0)


def test_unknown_tagged_fields_are_skipped():
    body = body_of([FEW[0]])
    entry = content(FEW[0])[len(b"\x02\x07orders\x03") :]
    tag = b"\x01\x63\x02ab"
    at = body.index(entry) + len(entry)
    # After the ACL, after its resource, after the response.
    tagged = body[: at - 1] + tag + tag + tag
    assert decode_listing(tagged, 0).contents == {content(FEW[0])}


@given(st.integers(0, 400), st.integers(0, 255))
def test_damage_is_refused_or_read_as_kio_reads_it(position, value):
    body = bytearray(body_of(FEW))
    body[position % len(body)] = value
    try:
        expected = by_kio(bytes(body))
    except MetadataError:
        expected = None
    try:
        found = decode_listing(bytes(body), 0).contents
    except MetadataError:
        return  # stricter than kio at lengths that are not in their shortest form
    assert found == expected


def test_invalid_text_is_replaced_as_in_java():
    body = body_of([acl("orders", "User:abc")]).replace(b"abc", b"a\xffc")
    assert decode_listing(body, 0).contents == {content(acl("orders", "User:a�c"))}
