import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import unsigned_varint
from aclog.protocol.headers import MAX_TAGGED_FIELDS, decode_header, tagged_fields
from aclog.protocol.messages import decode_request

FIELDS = st.lists(st.tuples(st.integers(0, 2**32 - 1), st.binary(max_size=200)), max_size=4)


def section(fields):
    return unsigned_varint(len(fields)) + b"".join(
        unsigned_varint(tag) + unsigned_varint(len(data)) + data for tag, data in fields
    )


@given(st.binary(max_size=3), FIELDS, st.binary(max_size=3))
def test_fields_are_where_they_are(before, fields, behind):
    buffer = before + section(fields) + behind
    found, after = tagged_fields(buffer, len(before))
    assert [(tag, buffer[start:end]) for tag, start, end in found] == fields
    assert buffer[after:] == behind


@given(FIELDS.filter(len), st.data())
def test_a_cut_section_is_refused(fields, data):
    whole = section(fields)
    with pytest.raises(DecodeError):
        tagged_fields(whole[: data.draw(st.integers(0, len(whole) - 1))], 0)


@pytest.mark.parametrize(
    "decode",
    [
        lambda data: decode_request(41, 3, b"\0" + data, 0),
        lambda data: decode_request(36, 2, b"\2x" + data, 0),
        lambda data: decode_header(b"\0\x12\0\3\0\0\0\0\xff\xff" + data),
    ],
)
def test_no_structure_has_more_than_the_limit(decode):
    decode(section([(99, b"")] * MAX_TAGGED_FIELDS))
    with pytest.raises(DecodeError, match="1001 tagged fields: expected at most 1000"):
        decode(section([(99, b"")] * (MAX_TAGGED_FIELDS + 1)))
