"""Finding an offset in a partition with holes, by bisection over a partition in memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.errors import ReplayError
from aclog.metalog.topic_message import Placement
from aclog.metalog.topiclog.positions import StoredMessage, find_first, find_last, find_offset

HOLES = st.lists(st.integers(0, 200) | st.just(0), min_size=1, max_size=60)


class FakePartition:
    """Messages at growing positions; counts the reads."""

    def __init__(self, stored: list[StoredMessage]) -> None:
        self.stored, self.asked = stored, 0

    def first_from(self, position, end):
        self.asked += 1
        return next((one for one in self.stored if position <= one.position < end), None)

    def last_in(self, position, end):
        self.asked += 1
        return next((one for one in reversed(self.stored) if position <= one.position < end), None)


def partition_of(holes, start=0, first_offset=0, epochs=()):
    """A message after each of these numbers of positions without one."""
    stored, position = [], start
    for number, hole in enumerate(holes):
        position += hole
        epoch = epochs[number] if epochs else 1
        place = Placement(offset=first_offset + number, base_offset=first_offset + number, count=1, epoch=epoch)
        stored.append(StoredMessage(position=position, place=place, value=b"x", timestamp=1))
        position += 1
    return FakePartition(stored), position


@given(HOLES, st.integers(0, 9), st.integers(0, 9), st.booleans(), st.data())
def test_every_offset_is_found(holes, start, first_offset, near_end, data):
    partition, _ = partition_of(holes, start, first_offset)
    first, last = partition.stored[0], partition.stored[-1]
    wanted = data.draw(st.sampled_from(partition.stored))
    assert find_offset(partition, wanted.place.offset, first, last, near_end=near_end) == wanted
    assert partition.asked <= 2 + sum(holes).bit_length()


@given(HOLES, st.data())
def test_a_missing_offset_is_an_error(holes, data):
    partition, _ = partition_of([0, *holes, 0])
    gone = data.draw(st.sampled_from(partition.stored[1:-1]))
    partition.stored.remove(gone)
    with pytest.raises(ReplayError, match=f"offset {gone.place.offset}"):
        find_offset(partition, gone.place.offset, partition.stored[0], partition.stored[-1])


@given(HOLES, st.integers(0, 5000), st.integers(0, 9))
def test_the_last_message_is_found_before_any_number_of_holes(holes, behind, start):
    partition, end = partition_of(holes, start)
    assert find_last(partition, start, end + behind) == partition.stored[-1]
    assert find_last(partition, end, end + behind) is None
    assert partition.asked <= 2 + 2 * max(behind, 1).bit_length()


@given(HOLES, st.data())
def test_the_first_message_of_an_epoch_is_found(holes, data):
    epochs = sorted(data.draw(st.lists(st.integers(1, 4), min_size=len(holes), max_size=len(holes))))
    partition, _ = partition_of(holes, epochs=epochs)
    first, last = partition.stored[0], partition.stored[-1]
    found = find_first(partition, first, last, lambda one: one.place.epoch >= epochs[-1])
    assert found == partition.stored[epochs.index(epochs[-1])]
