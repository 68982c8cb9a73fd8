import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.batches import read_header
from aclog.metalog.errors import DecodeError, EncodeError, ReplayError
from aclog.metalog.topic_message import Assembler, MessageBatch, Placement, decode_headers, encode_headers, read_batch


def place(offset: int, base: int, count: int, epoch: int = 1) -> Placement:
    return Placement(offset=offset, base_offset=base, count=count, epoch=epoch)


PLACES = st.tuples(
    st.integers(0, (1 << 62)), st.integers(1, (1 << 31) - 1), st.integers(0, (1 << 31) - 1), st.floats(0, 1)
).map(lambda drawn: place(drawn[0] + int((drawn[1] - 1) * drawn[3]), *drawn[:3]))


@given(PLACES)
def test_headers_are_read_back(one):
    headers = encode_headers(one)
    assert decode_headers(headers) == one
    assert decode_headers([("trace", b"x"), *reversed(headers), ("trace", None)]) == one


def test_headers_are_big_endian_and_of_fixed_width():
    assert encode_headers(place(258, 256, 3, 5)) == [
        ("offset", bytes(6) + b"\x01\x02"),
        ("batch", bytes(6) + b"\x01\x00"),
        ("count", b"\0\0\0\3"),
        ("epoch", b"\0\0\0\5"),
    ]
    with pytest.raises(EncodeError):
        encode_headers(place(0, 0, 1 << 31))


@pytest.mark.parametrize("name", ["offset", "batch", "count", "epoch"])
@pytest.mark.parametrize("change", ["missing", "twice", "null", "short", "long"])
def test_headers_that_are_not_ours_are_refused(name, change):
    headers = encode_headers(place(3, 2, 4))
    (value,) = [value for key, value in headers if key == name]
    others = [each for each in headers if each[0] != name]
    changed = {
        "missing": [],
        "twice": [(name, value)] * 2,
        "null": [(name, None)],
        "short": [(name, value[1:])],
        "long": [(name, value + b"\0")],
    }
    with pytest.raises(DecodeError, match=f"header '{name}'"):
        decode_headers(others + changed[change])
    with pytest.raises(DecodeError):
        decode_headers(None)


@pytest.mark.parametrize("numbers", [(1, 2, 3, 1), (5, 2, 3, 1), (2, 2, 0, 1), (-1, -1, 1, 1), (2, 2, 1, -1)])
def test_inconsistent_placements_are_refused(numbers):
    values = [struct.pack(code, number) for code, number in zip((">q", ">q", ">i", ">i"), numbers, strict=True)]
    with pytest.raises(DecodeError, match="inconsistent"):
        decode_headers(list(zip(("offset", "batch", "count", "epoch"), values, strict=True)))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(0, 10), st.data())
def test_batches_are_assembled_from_any_message_on(counts, start, data):
    messages, batches, offset = [], [], start
    for number, count in enumerate(counts):
        values = [b"%d" % each for each in range(offset, offset + count)]
        batches.append(MessageBatch(base_offset=offset, epoch=number, timestamp=number * 7, values=tuple(values)))
        messages += [(place(offset + n, offset, count, number), value, number * 7) for n, value in enumerate(values)]
        offset += count
    skipped = data.draw(st.integers(0, len(messages)))
    assembler = Assembler()
    found = [batch for message in messages[skipped:] if (batch := assembler.add(*message))]
    assert found == [batch for batch in batches if batch.base_offset >= start + skipped]
    assert assembler.end_offset == (offset if found else None)


@pytest.mark.parametrize(
    "messages",
    [
        [(0, 0, 1, 1), (2, 2, 1, 1)],
        [(0, 0, 1, 1), (0, 0, 1, 1)],
        [(0, 0, 2, 1), (1, 1, 1, 1)],
        [(0, 0, 2, 1), (1, 0, 3, 1)],
        [(0, 0, 2, 1), (1, 0, 2, 2)],
        [(0, 0, 2, 1), (0, 0, 2, 1)],
        [(0, 0, 3, 1), (2, 0, 3, 1)],
        [(0, 0, 1, 2), (1, 1, 1, 1)],
        [(0, 0, 1, 1), (1, 0, 2, 1)],
    ],
)
def test_messages_that_do_not_follow_are_an_error(messages):
    assembler = Assembler()
    for numbers in messages[:-1]:
        assembler.add(place(*numbers), b"x", 5)
    with pytest.raises(ReplayError):
        assembler.add(place(*messages[-1]), b"x", 5)


def test_a_batch_has_one_time_and_every_message_a_value():
    assembler = Assembler()
    assembler.add(place(0, 0, 2), b"x", 5)
    with pytest.raises(ReplayError, match="disagree with the first message of its batch"):
        assembler.add(place(1, 0, 2), b"x", 6)
    for value in (None, b""):
        with pytest.raises(DecodeError, match="without a value"):
            Assembler().add(place(0, 0, 1), value, 5)


BATCHES = st.lists(
    st.tuples(st.integers(1, 4), st.booleans(), st.integers(-2, 1 << 41), st.integers(0, 2)), min_size=1, max_size=6
)
"""Records, whether they are control records, the time, by how much the epoch grows."""


def batches_of(drawn, offset=0):
    batches, epoch = [], 1
    for count, control, time, more in drawn:
        epoch += more
        values = tuple(b"%d" % number for number in range(offset, offset + count))
        keys = (b"\0\0\0\2",) * count if control else ()
        batches.append(MessageBatch(base_offset=offset, epoch=epoch, timestamp=time, values=values, keys=keys))
        offset += count
    return batches


def assembled(messages, assembler):
    """Return what is assembled from messages after a round trip through headers."""
    found = []
    for message in messages:
        sent = decode_headers(encode_headers(message.place))
        batch = assembler.add(sent, message.value, message.timestamp or 1_700_000_000_000)
        found += [batch] if batch else []
    return found


@given(BATCHES, st.integers(0, 9))
def test_batches_go_through_messages_and_come_back_byte_for_byte(drawn, start):
    batches = batches_of(drawn, start)
    messages = [message for batch in batches for message in batch.messages()]
    assert all(message.timestamp >= 0 for message in messages)
    assert assembled(messages, Assembler(start)) == batches
    for batch in batches:
        data = batch.encode()
        assert read_batch(data, 0, read_header(data)) == batch


@given(BATCHES, st.data())
def test_a_lost_or_duplicated_message_is_an_error(drawn, data):
    messages = [message for batch in batches_of(drawn) for message in batch.messages()]
    place = data.draw(st.integers(0, len(messages) - 1))
    with pytest.raises(ReplayError):
        assembled([*messages[: place + 1], *messages[place:]], Assembler(0))
    if place < len(messages) - 1:
        with pytest.raises(ReplayError):
            assembled([*messages[:place], *messages[place + 1 :]], Assembler(0))


@given(BATCHES, st.data())
def test_truncated_messages_yield_whole_batches_only(drawn, data):
    batches = batches_of(drawn)
    messages = [message for batch in batches for message in batch.messages()]
    cut = data.draw(st.integers(0, len(messages)))
    assert assembled(messages[:cut], Assembler(0)) == [batch for batch in batches if batch.end_offset <= cut]


def test_a_batch_is_of_control_records_or_has_none():
    control = Placement(offset=0, base_offset=0, count=2, epoch=1, control=b"\0\0\0\2")
    assembler = Assembler()
    assembler.add(control, b"x", 5)
    with pytest.raises(ReplayError, match="disagree with the first message of its batch"):
        assembler.add(place(1, 0, 2), b"x", 5)


@pytest.mark.parametrize(("name", "value"), [("control", b"\0\0\0"), ("control", None), ("time", b"\0" * 4)])
def test_optional_headers_have_fixed_width_too(name, value):
    with pytest.raises(DecodeError, match=f"header '{name}'"):
        decode_headers([*encode_headers(place(0, 0, 1)), (name, value)])


def test_headers_of_control_records_and_of_times():
    one = Placement(offset=0, base_offset=0, count=1, epoch=1, control=b"\0\0\0\2", time=-1)
    assert encode_headers(one)[4:] == [("time", b"\xff" * 8), ("control", b"\0\0\0\2")]
    assert decode_headers(encode_headers(one)) == one
    with pytest.raises(EncodeError):
        encode_headers(Placement(offset=0, base_offset=0, count=1, epoch=1, control=b"\0"))
