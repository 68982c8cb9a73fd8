"""CreateAcls requests decoded by hand: as kio reads them, or not at all."""

from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl
from aclog.metalog.errors import DecodeError
from aclog.protocol.acls import decode_create_acls
from aclog.protocol.api_keys import CREATE_ACLS
from aclog.protocol.messages import build, decode_request, encode_request
from tests.support.runs.profiles import examples

CODES, TEXTS = st.integers(-128, 127), st.text(max_size=140)
COMMON_CODES, COMMON_TEXTS = st.integers(0, 127), st.text(max_size=30)


def creations(codes, texts):
    return st.builds(
        lambda **values: build(CREATE_ACLS, 3, "request", "AclCreation", **values),
        resource_type=codes,
        resource_name=texts,
        resource_pattern_type=codes,
        principal=texts,
        host=texts,
        operation=codes,
        permission_type=codes,
    )


REQUESTS = st.lists(st.one_of(creations(COMMON_CODES, COMMON_TEXTS), creations(CODES, TEXTS)), max_size=4)


def encoded(found):
    return encode_request(build(CREATE_ACLS, 3, "request", creations=tuple(found)))


def by_kio(buffer, position=0):
    return [
        StandardAcl(
            resource_type=each.resource_type,
            resource_name=each.resource_name,
            pattern_type=each.resource_pattern_type,
            principal=each.principal,
            host=each.host,
            operation=each.operation,
            permission_type=each.permission_type,
        )
        for each in decode_request(CREATE_ACLS, 3, buffer, position).creations
    ]


@given(st.lists(creations(COMMON_CODES, COMMON_TEXTS), max_size=126), st.binary(max_size=9), st.binary(max_size=3))
@settings(deadline=None, max_examples=examples(50))
def test_common_requests_are_read_as_kio_reads_them(found, before, after):
    buffer = before + encoded(found) + after
    decoded = decode_create_acls(3, buffer, len(before))
    assert decoded is not None
    assert list(decoded.creations) == by_kio(buffer, len(before))


@given(REQUESTS, st.data())
@settings(deadline=None, max_examples=examples(150))
def test_whatever_it_reads_it_reads_as_kio(found, data):
    """Also of damaged and truncated requests: it may read less than kio, and never something else."""
    buffer = bytearray(encoded(found))
    for _ in range(data.draw(st.integers(0, 2))):
        buffer[data.draw(st.integers(0, len(buffer) - 1))] = data.draw(st.integers(0, 255))
    buffer = bytes(buffer[: data.draw(st.integers(0, len(buffer)))])
    decoded = decode_create_acls(3, buffer, 0)
    if decoded is not None:
        try:
            expected = by_kio(buffer)
        except DecodeError:
            expected = None
        assert list(decoded.creations) == expected


def test_what_it_leaves_to_kio():
    plain = encoded([build(CREATE_ACLS, 3, "request", "AclCreation", resource_name="t", principal="User:a", host="*")])
    assert decode_create_acls(3, plain, 0) is not None
    assert decode_create_acls(1, plain, 0) is None, "an older version"
    assert decode_create_acls(3, plain[:-1], 0) is None, "truncated"
    assert decode_create_acls(3, plain[:-1] + b"\1\0\0", 0) is None, "a tagged field"
    assert decode_create_acls(3, plain.replace(b"t", b"\xff"), 0) is None, "not UTF-8"
    assert decode_create_acls(3, b"\0\0", 0) is None, "null"
    assert decode_create_acls(3, b"", 0) is None
