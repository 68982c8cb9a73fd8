import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.protocol.headers import FrameBuffer, FrameError, frame, frame_length


def drain(buffer: FrameBuffer) -> list[bytes]:
    found = []
    while (whole := buffer.next()) is not None:
        found.append(whole)
    return found


@given(st.lists(st.binary(min_size=8, max_size=60), max_size=6), st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_frames_come_out_whole_however_they_were_cut(payloads, sizes):
    stream = b"".join(map(frame, payloads))
    buffer, found, at, turn = FrameBuffer(max_bytes=60), [], 0, 0
    while at < len(stream):
        buffer.feed(stream[at : at + sizes[turn % len(sizes)]])
        at, turn = at + sizes[turn % len(sizes)], turn + 1
        found += drain(buffer)
    assert found == payloads
    assert len(buffer) == 0


@pytest.mark.parametrize("length", [-1, -(2**31), 0, 7, 101, 2**31 - 1])
def test_an_invalid_length_is_rejected_before_its_bytes(length):
    buffer = FrameBuffer(max_bytes=100)
    buffer.feed(length.to_bytes(4, "big", signed=True))
    with pytest.raises(FrameError, match=f"frame length {length}: expected 8 to 100"):
        buffer.next()


@pytest.mark.parametrize("length", [8, 100])
def test_the_bounds_themselves_are_fine(length):
    assert frame_length(length.to_bytes(4, "big"), 100) == length


def test_bounds_change_between_frames():
    buffer = FrameBuffer(max_bytes=10, min_bytes=0)
    buffer.feed(frame(b"") + frame(b"x" * 20))
    assert buffer.next() == b""
    buffer.max_bytes = 20
    assert buffer.next() == b"x" * 20


def test_no_payload_is_in_the_repr():
    buffer = FrameBuffer(max_bytes=100)
    buffer.feed(b"\0\0\0\x20secret")
    assert "secret" not in repr(buffer)


@given(st.lists(st.binary(max_size=12), max_size=8))
def test_hostile_bytes_give_frames_or_a_frame_error(pieces):
    buffer = FrameBuffer(max_bytes=20)
    for piece in pieces:
        buffer.feed(piece)
        try:
            found = drain(buffer)
        except FrameError:
            return
        assert all(8 <= len(whole) <= 20 for whole in found)
