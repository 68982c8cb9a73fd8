"""Contract of Log.append_batch (caller-built batches), run against every backend."""

import threading

import pytest

from aclog.metalog.batches import build_batch, build_control_batch, decode_batch, iter_batches
from aclog.metalog.committed_log import Appended
from aclog.metalog.errors import LogError
from tests.support.builders.log_backends import WRITABLE, kinds


@pytest.fixture(params=kinds(WRITABLE), ids=str)
def log(request, place):
    with WRITABLE[request.param](place) as opened:
        opened.append([b"before"], timestamp=0).result(60)
        yield opened


def batch_of(log, *values, later=0, newer=0):
    """Return a batch that continues the log, or one that is `later` offsets too far, or of a newer epoch."""
    base, epoch = log.end_offset() + later, log.leader_epoch + newer
    return build_batch(values, base_offset=base, leader_epoch=epoch, timestamp=7)


def contents(log, offset):
    """Return the bytes of the log from `offset` on."""
    found = b""
    while data := log.read(offset):
        found += data
        *_, (_, last) = iter_batches(data)
        offset = last.end_offset
    return found


def test_it_is_in_the_log_byte_for_byte(log):
    base, batch = log.end_offset(), batch_of(log, b"a", b"b")
    appended = log.append_batch(batch).result(60)
    assert appended == Appended(base_offset=base, last_offset=base + 1, leader_epoch=log.leader_epoch)
    assert log.high_watermark() == log.end_offset() == base + 2
    assert contents(log, base) == batch


def test_it_keeps_its_order_among_other_appends(log):
    base, futures = log.end_offset(), []
    for number in range(100):
        name = str(number).encode()
        futures.append(log.append([name] * 2, timestamp=7) if number % 3 else log.append_batch(batch_of(log, name)))
    bases = [future.result(60).base_offset for future in futures]
    data = contents(log, base)
    batches = [decode_batch(data, position) for position, _ in iter_batches(data)]
    assert [batch.header.base_offset for batch in batches] == bases == sorted(bases)
    assert [batch.records[0].value for batch in batches] == [str(number).encode() for number in range(100)]


def refused(log, batch, match=None):
    """Check that the batch is refused and leaves nothing behind: the next one gets its offset."""
    base = log.end_offset()
    with pytest.raises(LogError, match=match):
        log.append_batch(batch)
    assert log.end_offset() == base
    next_one = batch_of(log, b"next")
    assert log.append_batch(next_one).result(60).base_offset == base
    assert contents(log, base) == next_one


@pytest.mark.parametrize("later", [-1, 1, 1 << 40])
def test_another_base_offset_is_refused(log, later):
    refused(log, batch_of(log, b"x", later=later), f"base offset {log.end_offset() + later}, but the log ends at")


def test_a_batch_built_before_another_append_is_refused(log):
    batch = batch_of(log, b"late")
    log.append([b"early"], timestamp=0)
    refused(log, batch, "another caller has appended")


def test_the_same_batch_again_is_refused(log):
    batch = batch_of(log, b"once")
    log.append_batch(batch)
    refused(log, batch, "another caller has appended")


@pytest.mark.parametrize("newer", [-1, 1])
def test_another_epoch_is_refused(log, newer):
    expected = f"a batch of leader epoch {log.leader_epoch + newer}, expected {log.leader_epoch}"
    refused(log, batch_of(log, b"x", newer=newer), expected)


def test_a_control_batch_is_refused(log):
    records = [(b"\0\0\0\2", b"\0\0\0")]
    base, epoch = log.end_offset(), log.leader_epoch
    refused(log, build_control_batch(records, base_offset=base, leader_epoch=epoch, timestamp=7), "a control batch")


NOT_ONE_BATCH = {
    "nothing": lambda batch, _: b"",
    "a piece of a header": lambda batch, _: batch[:11],
    "a header": lambda batch, _: batch[:61],
    "a byte too few": lambda batch, _: batch[:-1],
    "a byte too many": lambda batch, _: batch + b"\0",
    "a byte before": lambda batch, _: b"\0" + batch,
    "two batches": lambda batch, after: batch + after,
}


@pytest.mark.parametrize("damage", NOT_ONE_BATCH.values(), ids=NOT_ONE_BATCH)
def test_bytes_that_are_not_one_whole_batch_are_refused(log, damage):
    refused(log, damage(batch_of(log, b"x", b"y"), batch_of(log, b"z", later=2)))


def test_every_flipped_bit_is_noticed(log):
    base, batch = log.end_offset(), batch_of(log, b"x", b"y")
    for position in range(len(batch)):
        for bit in range(8):
            flipped = bytearray(batch)
            flipped[position] ^= 1 << bit
            with pytest.raises(LogError):
                log.append_batch(bytes(flipped))
    assert log.end_offset() == base
    log.append_batch(batch).result(60)
    assert contents(log, base) == batch


def test_a_batch_beyond_8_mib_is_refused(log):
    refused(log, batch_of(log, *[bytes([1]) * (1 << 20)] * 8), "8388608")


def test_of_many_batches_for_one_offset_one_is_appended(log):
    base, writers, each = log.end_offset(), 4, 20
    acknowledged, start = [], threading.Barrier(writers)

    def append_many(writer):
        start.wait(60)
        for number in range(each):
            while True:
                try:
                    future = log.append_batch(batch_of(log, value := f"{writer}-{number}".encode()))
                except LogError:
                    continue
                acknowledged.append((future.result(60).base_offset, value))
                break

    threads = [threading.Thread(target=append_many, args=(writer,)) for writer in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    data = contents(log, base)
    batches = [decode_batch(data, position) for position, _ in iter_batches(data)]
    assert [(one.header.base_offset, one.records[0].value) for one in batches] == sorted(acknowledged)
    assert len(batches) == writers * each


def test_a_closed_log_refuses_it(log):
    batch = batch_of(log, b"x")
    log.close()
    with pytest.raises(LogError, match="closed"):
        log.append_batch(batch)
