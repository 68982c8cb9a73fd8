"""Contract of LogReader, run against every backend that can be read."""

import random
import threading

import pytest

from aclog.metalog.batches import HEADER_SIZE, decode_batch, iter_batches
from aclog.metalog.errors import LogError
from tests.support.builders.log_backends import READABLE, kinds


@pytest.fixture(params=kinds(READABLE), ids=str)
def readable(request, place):
    with READABLE[request.param](place) as opened:
        yield opened


def data_batches(data):
    """Return (base offset, timestamp, values) of each data batch; every byte must belong to a whole batch."""
    found, end = [], 0
    for position, header in iter_batches(data):
        batch = decode_batch(data, position)
        end = position + header.size
        if not header.is_control:
            found.append((header.base_offset, header.max_timestamp, [record.value for record in batch.records]))
    assert end == len(data)
    return found


def read_all(reader, offset=None, max_bytes=1 << 20):
    """Return all batches from `offset` on, read as a follower does."""
    offset = reader.start_offset() if offset is None else offset
    found = []
    while data := reader.read(offset, max_bytes):
        for _, header in iter_batches(data):
            assert header.base_offset <= offset < header.end_offset or header.base_offset == offset
            offset = header.end_offset
        found += data_batches(data)
    assert offset == reader.high_watermark()
    return found


def feed_many(readable, count, seed):
    numbers = random.Random(seed)
    fed = []
    for number in range(count):
        values = [numbers.randbytes(numbers.choice([1, 10, 300])) for _ in range(numbers.choice([1, 1, 2, 5]))]
        appended = readable.feed(values, timestamp=number)
        fed.append((appended.base_offset, number, values))
    return fed


def test_reads_back_what_was_committed(readable):
    fed = feed_many(readable, 60, 1)
    assert read_all(readable.reader) == fed


@pytest.mark.parametrize("max_bytes", [1, HEADER_SIZE, 500, 5000, 1 << 20])
@pytest.mark.sample(4)
def test_reads_of_any_size_give_the_same(readable, max_bytes):
    fed = feed_many(readable, 40, 2)
    assert read_all(readable.reader, max_bytes=max_bytes) == fed


def test_a_read_returns_at_most_max_bytes_unless_one_batch_is_larger(readable):
    feed_many(readable, 40, 3)
    for offset in range(readable.reader.start_offset(), readable.reader.high_watermark()):
        data = readable.reader.read(offset, 700)
        batches = list(iter_batches(data))
        assert batches
        assert len(data) <= 700 or len(batches) == 1


def test_a_read_begins_with_the_batch_that_contains_the_offset(readable):
    fed = feed_many(readable, 30, 4)
    for base, timestamp, values in fed:
        for offset in range(base, base + len(values)):
            first = data_batches(readable.reader.read(offset, 1))
            assert first == [(base, timestamp, values)]


def test_reads_in_any_order(readable):
    fed = feed_many(readable, 60, 5)
    random.Random(6).shuffle(fed)
    for base, timestamp, values in fed:
        assert data_batches(readable.reader.read(base, 1)) == [(base, timestamp, values)]


def test_nothing_at_the_high_watermark(readable):
    readable.feed([b"x"])
    assert readable.reader.read(readable.reader.high_watermark()) == b""


def test_the_high_watermark_is_the_end_of_what_was_appended(readable):
    for number in range(5):
        last = readable.feed([b"x"] * (number + 1)).last_offset
        assert readable.reader.high_watermark() == last + 1


@pytest.mark.parametrize("beyond", [1, 1000, 1 << 62])
def test_an_offset_beyond_the_mark_is_refused(readable, beyond):
    readable.feed([b"x"])
    with pytest.raises(LogError, match="outside"):
        readable.reader.read(readable.reader.high_watermark() + beyond)


def test_an_offset_below_the_start_is_refused(readable):
    readable.feed([b"x"])
    with pytest.raises(LogError, match="outside"):
        readable.reader.read(readable.reader.start_offset() - 1)


def test_wait_returns_at_once_for_committed_offsets(readable):
    last = readable.feed([b"x"]).last_offset
    assert readable.reader.wait(last, 0)
    assert not readable.reader.wait(last + 1, 0)


@pytest.mark.parametrize("timeout", [60, 1e12])
def test_wait_is_woken_by_a_commit(readable, timeout):
    mark = readable.reader.high_watermark()
    feeder = threading.Timer(0.01, readable.feed, args=([b"x"],))
    feeder.start()
    assert readable.reader.wait(mark, timeout)
    feeder.join()


def test_many_threads_read_the_same(readable):
    fed = feed_many(readable, 40, 7)
    answers = []

    def read():
        answers.append(read_all(readable.reader, max_bytes=600))

    threads = [
        threading.Thread(target=lambda: answers.append(read_all(readable.reader, max_bytes=600))) for _ in "1234"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [fed] * 4


def test_a_closed_reader_refuses_reads(readable):
    last = readable.feed([b"x"]).last_offset
    readable.reader.close()
    readable.reader.close()
    with pytest.raises(LogError, match="closed"):
        readable.reader.read(last)


def test_it_has_a_name(readable):
    assert readable.reader.name
