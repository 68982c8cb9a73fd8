import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog import primitives as p
from aclog.metalog.columns import lengths, unsigned_varints
from aclog.metalog.errors import DecodeError, EncodeError

UINT32 = st.integers(0, 0xFFFFFFFF) | st.sampled_from([1 << n for n in range(32)] + [(1 << n) - 1 for n in range(33)])
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (16384, "808001"), (0xFFFFFFFF, "ffffffff0f")],
)
def test_unsigned_varints_of_known_bytes(value, data):
    assert p.unsigned_varint(value) == bytes.fromhex(data)
    assert p.read_unsigned_varint(bytes.fromhex(data), 0) == (value, len(data) // 2)


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001"), (2147483647, "feffffff0f")],
)
def test_zigzag_varints_of_known_bytes(value, data):
    assert p.varint(value) == bytes.fromhex(data)
    assert p.read_varint(bytes.fromhex(data), 0) == (value, len(data) // 2)
    assert p.read_varlong(bytes.fromhex(data), 0) == (value, len(data) // 2)


@given(UINT32)
def test_unsigned_varint_round_trip(value):
    data = p.unsigned_varint(value)
    assert p.read_unsigned_varint(b"\xff" + data + b"\xff", 1) == (value, 1 + len(data))


@given(INT64)
def test_varlong_round_trip(value):
    data = p.varint(value)
    assert p.read_varlong(data, 0) == (value, len(data))


@pytest.mark.parametrize("read", [p.read_unsigned_varint, p.read_varint, p.read_varlong])
@pytest.mark.parametrize("data", ["", "80", "ffff", "8000", "ff00", "80808000", "ff" * 11, "ffffffffffffffffff02"])
def test_bad_varints_are_refused_where_they_begin(read, data):
    with pytest.raises(DecodeError) as caught:
        read(b"\x05" + bytes.fromhex(data), 1)
    assert caught.value.position == 1


@pytest.mark.parametrize("data", ["8080808010", "ffffffff1f", "ffffffffff01"])
def test_a_varint_beyond_32_bits_is_refused(data):
    with pytest.raises(DecodeError, match="32 bits"):
        p.read_unsigned_varint(bytes.fromhex(data), 0)
    with pytest.raises(DecodeError, match="32 bits"):
        p.read_varint(bytes.fromhex(data), 0)


@pytest.mark.parametrize("value", [-1, 1 << 32])
def test_an_unsigned_varint_holds_32_bits(value):
    with pytest.raises(EncodeError):
        p.unsigned_varint(value)


def test_a_varint_holds_64_bits():
    with pytest.raises(EncodeError):
        p.varint(1 << 63)


@given(st.text(max_size=200))
def test_compact_string_round_trip(value):
    data = p.compact_string(value)
    assert p.read_compact_string(memoryview(data), 0) == (value, len(data))


def test_the_longest_string_and_one_byte_more():
    data = p.compact_string("x" * p.MAX_STRING)
    assert p.read_compact_string(data, 0)[1] == len(data)
    with pytest.raises(EncodeError, match="32768 bytes"):
        p.compact_string("x" * (p.MAX_STRING + 1))
    with pytest.raises(DecodeError, match="at most 32767"):
        p.read_compact_string(p.compact_bytes(b"x" * (p.MAX_STRING + 1)), 0)


def test_a_lone_surrogate_has_no_bytes():
    with pytest.raises(EncodeError, match="surrogate"):
        p.compact_string("\ud800")


@pytest.mark.parametrize(
    ("data", "position", "what"),
    [
        ("00", 0, "null"),
        ("0561", 0, "field of 4 bytes, but only 1 remain"),
        ("ffffffff0f61", 0, "field of 4294967294 bytes, but only 1 remain"),
        ("0461ff62", 2, "UTF-8"),
        ("03c0af", 1, "UTF-8"),
        ("04eda080", 1, "UTF-8"),
    ],
)
def test_bad_strings_are_refused_where_they_are_bad(data, position, what):
    with pytest.raises(DecodeError, match=what) as caught:
        p.read_compact_string(bytes.fromhex(data), 0)
    assert caught.value.position == position


@given(st.lists(st.binary(min_size=1, max_size=7) | UINT32.map(p.unsigned_varint), min_size=1, max_size=20))
def test_many_varints_at_once_are_those_read_one_by_one(parts):
    data = b"".join(parts) + b"\x00" * 6
    at = np.arange(len(data) - 5, dtype=np.int64)
    value, after, valid = unsigned_varints(np.frombuffer(data, np.uint8), at)
    length, _, positive = lengths(np.frombuffer(data, np.uint8), at)
    for row in at.tolist():
        try:
            expected = p.read_unsigned_varint(data, row)
        except DecodeError:
            assert not valid[row]
            assert not positive[row]
        else:
            assert valid[row]
            assert (value[row], after[row]) == expected
            zigzag = p.read_varint(data, row)[0]
            assert positive[row] == (zigzag >= 0)
            assert zigzag < 0 or length[row] == zigzag
