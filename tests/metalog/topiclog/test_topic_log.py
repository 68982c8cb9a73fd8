"""The writer of a topic log on a real Kafka: epochs, offsets, fencing."""

import itertools
import threading
import time

import pytest

from aclog.metalog.batches import HEADER_SIZE, build_batch, build_control_batch, decode_batch, encode_batch, read_header
from aclog.metalog.control_records import KRaftVersion, LeaderChange, LeaderChangeVoter, decode_control_batch
from aclog.metalog.errors import FencedError, LogError, ReplayError
from aclog.metalog.topic_message import BatchMessage, Placement
from aclog.metalog.topiclog import Leader, TopicReader, open_topic_log
from aclog.metalog.topiclog.client import Transactions
from aclog.metalog.topiclog.reader import HistoricalReads
from aclog.metalog.topiclog.topic_log import ReadBack
from tests.support.kafka.topics import begin, contents, new_topic, records, send, values, whole
from tests.support.processes.waiting import SECONDS, wait_until


@pytest.fixture
def settings(topic_kafka):
    return new_topic(topic_kafka)


def test_an_epoch_begins_with_a_leader_change_that_is_committed_when_it_opens(settings):
    with open_topic_log(settings, node_id=7, voters=[7, 8, 9], timestamp=5) as log:
        data = log.read(0)
        header = read_header(data)
        assert (log.leader_epoch, log.high_watermark(), log.end_offset()) == (1, 1, 1)
        assert (header.leader_epoch, header.max_timestamp, header.is_control) == (1, 5, True)
        voters = tuple(LeaderChangeVoter(voter_id=voter) for voter in (7, 8, 9))
        change = LeaderChange(leader_id=7, voters=voters, granting_voters=voters[:1])
        assert decode_control_batch(data, 0, header) == (change,)
        with whole(settings) as reader:
            assert reader.read(0) == data
            assert reader.leader() == Leader(node_id=7, epoch=1, start_offset=0)


def test_the_next_writer_continues_offsets_and_epochs(settings):
    for epoch in (1, 2, 3):
        with open_topic_log(settings, node_id=epoch) as log:
            assert (log.leader_epoch, log.end_offset()) == (epoch, 3 * epoch - 2)
            log.append([b"%d" % epoch] * 2, timestamp=1).result(SECONDS)
    with whole(settings) as reader:
        assert [(epoch, value) for _, epoch, value in records(reader)] == [
            (epoch, value) for epoch in (1, 2, 3) for value in (None, b"%d" % epoch, b"%d" % epoch)
        ]
        assert reader.leader() == Leader(node_id=3, epoch=3, start_offset=6)


def test_what_precedes_a_takeover_is_in_the_topic_alone(settings):
    with open_topic_log(settings, node_id=1) as log:
        log.append([b"x"], timestamp=1).result(SECONDS)
        before = log.read(1)
        assert log.read_local(1) == before
    with open_topic_log(settings, node_id=2) as log:
        assert log.read_local(1) is None
        assert log.read(1, 1) == before
        assert log.read_local(2) == log.read(2)
        log.abandon("deposed")
        with pytest.raises(LogError, match="closed"):
            log.read(1)


def test_control_batches_keep_their_bytes(settings):
    with open_topic_log(settings, node_id=1) as log:
        log.append_control(KRaftVersion(kraft_version=1), KRaftVersion(kraft_version=1), timestamp=9).result(SECONDS)
        pairs = [(b"\0\0\0\5", b"\0\0\0\1\0")] * 2
        expected = build_control_batch(pairs, base_offset=1, leader_epoch=1, timestamp=9)
        assert log.read(1) == expected
        with whole(settings) as reader:
            assert reader.read(1) == expected


@pytest.mark.parametrize("timestamp", [-1, 0, 1, 1 << 42])
def test_any_timestamp_is_kept(settings, timestamp):
    """librdkafka cannot send a timestamp of 0 or less, and a broker by default refuses one far in the future."""
    with open_topic_log(settings, node_id=1, timestamp=timestamp) as log:
        log.append([b"x"], timestamp=timestamp).result(SECONDS)
        with whole(settings) as reader:
            assert contents(reader) == contents(log)
            assert {read_header(reader.read(offset)).max_timestamp for offset in (0, 1)} == {timestamp}


def test_transactions_are_bounded_and_complete(settings):
    with open_topic_log(settings, node_id=1) as log:
        many = [log.append([b"%d" % number], timestamp=1) for number in range(25_000)]
        large = [log.append([bytes([number]) * (3 << 20)], timestamp=1) for number in range(1, 9)]
        for future in [*many, *large]:
            future.result(SECONDS)
        with whole(settings) as reader:
            assert reader.high_watermark() == log.high_watermark() == 25_009
            assert contents(reader) == contents(log)


def test_a_batch_that_cannot_be_stored_unchanged_is_refused(settings):
    with open_topic_log(settings, node_id=1) as log:
        batch = decode_batch(build_batch([b"x"], base_offset=1, leader_epoch=1, timestamp=7))
        other = encode_batch(batch.__class__(header=batch.header._replace(base_timestamp=6), records=batch.records))
        assert len(other) > HEADER_SIZE
        with pytest.raises(LogError, match="cannot be stored unchanged"):
            log.append_batch(other)
        assert log.append([b"x"], timestamp=7).result(SECONDS).base_offset == 1


def test_opening_fences_the_previous_writer_whose_next_append_fails(settings):
    failures = []
    with open_topic_log(settings, node_id=1, on_failure=failures.append) as old:
        old.append([b"old"], timestamp=1).result(SECONDS)
        with open_topic_log(settings, node_id=2) as new:
            assert (old.failure, failures) == (None, [])
            late = old.append([b"late"], timestamp=1)
            assert isinstance(late.exception(SECONDS), FencedError)
            assert isinstance(old.failure, FencedError)
            assert [type(failure) for failure in failures] == [FencedError]
            with pytest.raises(FencedError, match="until the log is opened again"):
                old.append([b"later"], timestamp=1)
            assert old.high_watermark() == 2
            new.append([b"new"], timestamp=1).result(SECONDS)
            with whole(settings) as reader:
                assert [(epoch, value) for _, epoch, value in records(reader)] == [
                    (1, None),
                    (1, b"old"),
                    (2, None),
                    (2, b"new"),
                ]
    assert len(failures) == 1


@pytest.mark.parametrize("step", ["_flush", "_end"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_fenced_in_the_middle_of_a_transaction(settings, monkeypatch, step, after):
    """It is held before or after sending its messages or its commit; what was committed before the takeover stays."""
    reached, go_on = threading.Event(), threading.Event()
    original = getattr(Transactions, step)

    def held(transactions, deadline):
        if after:
            original(transactions, deadline)
        reached.set()
        assert go_on.wait(SECONDS)
        if not after:
            original(transactions, deadline)

    with open_topic_log(settings, node_id=1) as old:
        old.append([b"first"], timestamp=1).result(SECONDS)
        with monkeypatch.context() as patched:
            patched.setattr(Transactions, step, held)
            future = old.append([b"held"] * 3, timestamp=1)
            assert reached.wait(SECONDS)
        behind = old.append([b"behind"], timestamp=1)
        with open_topic_log(settings, node_id=2) as new:
            go_on.set()
            assert isinstance(behind.exception(SECONDS), FencedError)
            committed = step == "_end" and after
            assert isinstance(future.exception(SECONDS), type(None) if committed else FencedError)
            new.append([b"second"], timestamp=1).result(SECONDS)
            with whole(settings) as reader:
                assert values(reader) == values(new) == [b"first", *[b"held"] * 3 * committed, b"second"]


def test_readers_never_see_open_or_aborted_transactions(settings, monkeypatch):
    reached, go_on = threading.Event(), threading.Event()
    original = Transactions._end

    def held(transactions, deadline):
        reached.set()
        assert go_on.wait(SECONDS)
        original(transactions, deadline)

    with open_topic_log(settings, node_id=1) as log, whole(settings) as early:
        with monkeypatch.context() as patched:
            patched.setattr(Transactions, "_end", held)
            future = log.append([b"open"], timestamp=1)
            assert reached.wait(SECONDS)
        with TopicReader(settings) as late:
            late.wait_known(SECONDS)
            assert early.high_watermark() == late.high_watermark() == log.high_watermark() == 1
            go_on.set()
            future.result(SECONDS)
            assert early.wait(1, SECONDS)
            assert late.wait(1, SECONDS)


def test_of_many_concurrent_writers_one_remains(settings):
    logs, guard = [], threading.Lock()

    def contend(node_id):
        try:
            log = open_topic_log(settings, node_id=node_id)
        except FencedError:
            return
        with guard:
            logs.append(log)

    threads = [threading.Thread(target=contend, args=(node_id,)) for node_id in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers = [log.append([b"x"], timestamp=1).exception(SECONDS) for log in logs]
    for log in logs:
        log.close()
    with whole(settings) as reader:
        found = records(reader)
    assert [type(answer) for answer in answers].count(type(None)) == 1
    assert [value for _, _, value in found].count(b"x") == 1
    assert found[-1][1] == max(log.leader_epoch for log in logs)


def test_abandoning_does_not_wait_for_brokers(settings, monkeypatch):
    reached, failures = threading.Event(), []

    def stuck(transactions, deadline):
        reached.set()
        while True:
            transactions._check_waiting(deadline)

    with open_topic_log(settings, node_id=1, on_failure=failures.append) as log:
        monkeypatch.setattr(Transactions, "_end", stuck)
        first = log.append([b"x"], timestamp=1)
        assert reached.wait(SECONDS)
        second = log.append([b"y"], timestamp=1)
        log.abandon("deposed")
        for future in (first, second):
            assert "deposed" in str(future.exception(0))
        assert "deposed" in str(log.failure)
        log.abandon("again")
        with pytest.raises(LogError, match="deposed"):
            log.append([b"z"], timestamp=1)
    assert failures == []


@pytest.mark.parametrize("gives_up", [False, True])
def test_a_takeover_without_a_response_to_its_commit_ends(settings, monkeypatch, gives_up):
    """After its time, or as soon as the caller gives up; the next one sees that it was committed all the same."""
    abandoned, end = threading.Event(), Transactions._end

    def unanswered(transactions, deadline):
        end(transactions, deadline)
        if gives_up:
            abandoned.set()
        while True:
            transactions._check_waiting(deadline)
            time.sleep(0.01)

    monkeypatch.setattr(Transactions, "_end", unanswered)
    begun = time.monotonic()
    why = "abandoned" if gives_up else "no response in time"
    with pytest.raises(LogError, match=f"{why}; the record that begins epoch 1 may be committed"):
        open_topic_log(settings, node_id=1, timeout=SECONDS if gives_up else 10.0, abandoned=abandoned)
    assert time.monotonic() - begun < 40.0
    monkeypatch.undo()
    with open_topic_log(settings, node_id=2) as log:
        assert (log.leader_epoch, log.end_offset()) == (2, 2)


@pytest.mark.parametrize("step", ["_connected", "survey_stable"])
def test_a_takeover_that_is_abandoned_before_its_commit(settings, monkeypatch, step):
    abandoned, step_of = threading.Event(), getattr(HistoricalReads, step)

    def given_up(*args):
        outcome = step_of(*args)
        abandoned.set()
        return outcome

    monkeypatch.setattr(HistoricalReads, step, given_up)
    with pytest.raises(LogError, match="abandoned"):
        open_topic_log(settings, node_id=1, abandoned=abandoned)


def test_a_message_that_is_not_a_record_stops_readers_and_writers(settings):
    with open_topic_log(settings, node_id=1) as log:
        log.append([b"x"], timestamp=1).result(SECONDS)
    with TopicReader(settings) as reader:
        reader.wait_known(SECONDS)
        gap = Placement(offset=9, base_offset=9, count=1, epoch=1)
        send(settings, BatchMessage(place=gap, value=b"stranger", timestamp=1))
        with pytest.raises(ReplayError, match="a gap or a duplicate"):
            reader.wait(2, SECONDS)
        assert reader.high_watermark() == 2
        assert values(reader) == [b"x"]


def test_a_foreign_open_transaction_is_waited_for(settings, monkeypatch):
    with open_topic_log(settings, node_id=1) as log:
        stray = Placement(offset=9, base_offset=9, count=1, epoch=1)
        stranger = begin(settings, BatchMessage(place=stray, value=b"never", timestamp=1))

        def unread(*_: object) -> None:
            raise LogError("not waited for")

        monkeypatch.setattr(ReadBack, "check", unread)
        assert "not waited for" in str(log.append([b"behind"], timestamp=1).exception(SECONDS))
        monkeypatch.undo()
    limits = (2**tried for tried in itertools.count())
    expected = "another producer's transaction is open"
    # A busy machine does not get as far as this within a second.
    wait_until(lambda: expected in refusal(settings, next(limits)), expected)
    stranger.abort_transaction(SECONDS)
    with open_topic_log(settings, node_id=3) as log:
        assert values(log) == [b"behind"]
        assert log.leader_epoch == 2


def refusal(settings, seconds):
    """Why a log is not opened within so many seconds."""
    with pytest.raises(LogError) as refused:
        open_topic_log(settings, node_id=2, timeout=seconds)
    return str(refused.value)


def test_the_end_must_be_a_whole_batch(settings):
    cut = Placement(offset=0, base_offset=0, count=2, epoch=1)
    send(settings, BatchMessage(place=cut, value=b"x", timestamp=1))
    with pytest.raises(ReplayError, match="not the last one of its batch"):
        open_topic_log(settings, node_id=1)
