"""Contract of Log, run against every backend that can be written."""

import threading
from concurrent.futures import wait as wait_for

import pytest

from aclog.metalog.batches import decode_batch, iter_batches
from aclog.metalog.committed_log import Appended
from aclog.metalog.errors import LogError
from tests.support.builders.log_backends import WRITABLE, kinds


@pytest.fixture(params=kinds(WRITABLE), ids=str)
def log(request, place):
    with WRITABLE[request.param](place) as opened:
        yield opened


def values_by_offset(log):
    found, offset = {}, log.start_offset()
    while data := log.read(offset):
        for position, header in iter_batches(data):
            offset = header.end_offset
            if not header.is_control:
                for record in decode_batch(data, position).records:
                    found[header.base_offset + record.offset_delta] = record.value
    return found


def test_an_append_is_acknowledged_with_its_offsets(log):
    base, epoch = log.end_offset(), log.leader_epoch
    first = log.append([b"a", b"b"], timestamp=1).result(60)
    second = log.append([b"c"], timestamp=2).result(60)
    assert first == Appended(base_offset=base, last_offset=base + 1, leader_epoch=epoch)
    assert second == Appended(base_offset=base + 2, last_offset=base + 2, leader_epoch=epoch)
    assert values_by_offset(log) == {base: b"a", base + 1: b"b", base + 2: b"c"}


def test_what_is_acknowledged_is_below_the_mark(log):
    for _ in range(20):
        appended = log.append([b"x"], timestamp=0).result(60)
        assert log.high_watermark() > appended.last_offset


def test_the_end_offset_advances_at_append_not_at_commit(log):
    end = log.end_offset()
    log.append([b"x"] * 3, timestamp=0)
    assert log.end_offset() == end + 3
    assert log.high_watermark() <= log.end_offset()


def test_a_batch_carries_epoch_and_timestamp(log):
    appended = log.append([b"x", b"y"], timestamp=1_795_227_826_249).result(60)
    ((_, header),) = iter_batches(log.read(appended.base_offset))
    assert (header.leader_epoch, header.base_timestamp, header.max_timestamp, header.record_count) == (
        log.leader_epoch,
        1_795_227_826_249,
        1_795_227_826_249,
        2,
    )


def test_batches_keep_the_order_of_the_calls(log):
    futures = [log.append([str(number).encode()], timestamp=0) for number in range(300)]
    bases = [future.result(60).base_offset for future in futures]
    assert bases == list(range(bases[0], bases[0] + 300))
    assert values_by_offset(log) == {base: str(number).encode() for number, base in enumerate(bases)}


def test_concurrent_appends_are_neither_lost_nor_duplicated(log):
    acknowledged, guard = {}, threading.Lock()

    def append_many(writer):
        for number in range(50):
            value = f"{writer}-{number}".encode()
            appended = log.append([value] * (1 + number % 3), timestamp=0).result(60)
            with guard:
                for offset in range(appended.base_offset, appended.last_offset + 1):
                    assert offset not in acknowledged
                    acknowledged[offset] = value

    threads = [threading.Thread(target=append_many, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values_by_offset(log) == acknowledged


@pytest.mark.parametrize("values", [[], [b""], [b"x", b""]])
def test_no_value_or_an_empty_one_is_refused(log, values):
    end = log.end_offset()
    with pytest.raises(LogError):
        log.append(values, timestamp=0)
    assert log.end_offset() == end


def test_a_batch_beyond_8_mib_is_refused_before_anything_is_written(log):
    end = log.end_offset()
    with pytest.raises(LogError, match="8388608"):
        log.append([bytes([1]) * (1 << 20)] * 9, timestamp=0)
    assert log.end_offset() == end
    assert log.append([b"x"], timestamp=0).result(60).base_offset == end


def test_a_batch_of_almost_8_mib_is_accepted(log):
    value = bytes([7]) * ((8 << 20) - 100)
    appended = log.append([value], timestamp=0).result(60)
    assert decode_batch(log.read(appended.base_offset)).records[0].value == value


def test_an_append_cannot_be_cancelled(log):
    future = log.append([b"x"], timestamp=0)
    assert not future.cancel()
    future.result(60)


def test_a_callback_may_append(log):
    done = threading.Event()

    def again(future):
        log.append([b"second"], timestamp=0).add_done_callback(lambda _: done.set())

    log.append([b"first"], timestamp=0).add_done_callback(again)
    assert done.wait(60)
    assert list(values_by_offset(log).values()) == [b"first", b"second"]


def test_close_commits_what_is_queued_and_refuses_later_appends(log):
    futures = [log.append([b"x"], timestamp=0) for _ in range(50)]
    log.close()
    log.close()
    assert not wait_for(futures, timeout=300).not_done
    assert all(future.result().last_offset >= 0 for future in futures)
    with pytest.raises(LogError, match="closed"):
        log.append([b"x"], timestamp=0)
