"""Writers and brokers are killed and paused while a topic log is written: nothing acknowledged is ever lost."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from aclog.metalog.errors import LogError
from aclog.metalog.topiclog import Election, FencedError, open_topic_log
from tests.support.kafka.jvm import ROOT
from tests.support.kafka.quorum import KafkaQuorum
from tests.support.kafka.topics import new_topic, records, values, whole
from tests.support.processes.waiting import SECONDS, wait_until


class Writer:
    """A writing process (tests.support.processes.topic_writer), and its output."""

    def __init__(self, settings, node_id: int) -> None:
        command = [sys.executable, "-m", "tests.support.processes.topic_writer", settings.topic, str(node_id)]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        self.process.stdin.write(json.dumps(dict(settings.properties)))
        self.process.stdin.close()
        self.epoch = int(self.process.stdout.readline().removeprefix("open "))
        self.acknowledged: dict[int, bytes] = {}
        self.failures: list[str] = []

    def hear(self, acknowledgements: int | None = None) -> None:
        """Read its output until so many more records are acknowledged, or to the end."""
        while acknowledgements != 0 and (line := self.process.stdout.readline()):
            what, *rest = line.split()
            if what == "ack":
                offset, value = int(rest[0]), rest[1].encode()
                assert offset not in self.acknowledged
                self.acknowledged[offset] = value
                acknowledgements = None if acknowledgements is None else acknowledgements - 1
            else:
                self.failures.append(rest[0])


@contextmanager
def writing(settings, node_id: int) -> Iterator[Writer]:
    writer = Writer(settings, node_id)
    try:
        yield writer
    finally:
        writer.process.kill()
        writer.process.stdout.close()
        writer.process.wait()


def check(reader, *writers: Writer) -> None:
    """Check that each acknowledged record is at its offset, in its writer's epoch, and occurs once."""
    found = {offset: (epoch, value) for offset, epoch, value in records(reader)}
    for writer in writers:
        assert writer.acknowledged
        for offset, value in writer.acknowledged.items():
            assert found[offset] == (writer.epoch, value)
    data = [value for _, value in found.values() if value is not None]
    assert len(data) == len(set(data))
    epochs = [epoch for epoch, _ in found.values()]
    assert epochs == sorted(epochs)


def test_a_killed_writers_acknowledged_records_stay(topic_kafka):
    settings, writers = new_topic(topic_kafka), []
    for node_id in (1, 2, 3):
        with writing(settings, node_id) as writer:
            writer.hear(100)
            writer.process.kill()
            writer.hear()
            writers.append(writer)
    with open_topic_log(settings, node_id=4) as log, whole(settings) as reader:
        assert [writer.epoch for writer in writers] == [1, 2, 3]
        assert log.leader_epoch == 4
        check(log, *writers)
        check(reader, *writers)


def test_a_paused_writer_is_fenced_on_waking_and_its_open_transaction_never_shows(topic_kafka):
    settings = new_topic(topic_kafka)
    with writing(settings, 1) as paused, whole(settings) as reader:
        paused.hear(100)
        paused.process.send_signal(signal.SIGSTOP)
        with open_topic_log(settings, node_id=2) as log:
            log.append([b"after"], timestamp=1).result(SECONDS)
            end = log.high_watermark()
            paused.process.send_signal(signal.SIGCONT)
            paused.hear()
            assert set(paused.failures) == {"FencedError"}
            assert paused.process.wait(SECONDS) == 0
            log.append([b"last"], timestamp=1).result(SECONDS)
            assert reader.wait(end, SECONDS)
            check(log, paused)
            check(reader, paused)
            assert values(log)[-2:] == [b"after", b"last"]


def test_two_writers_that_fence_each_other_repeatedly(topic_kafka):
    settings = new_topic(topic_kafka)
    kept, refused = [], 0
    logs = [open_topic_log(settings, node_id=0)]
    for number in range(1, 9):
        logs.append(open_topic_log(settings, node_id=number))
        late = logs[-2].append([b"late-%d" % number], timestamp=1)
        logs[-1].append([b"kept-%d" % number], timestamp=1).result(SECONDS)
        refused += isinstance(late.exception(SECONDS), FencedError)
        kept.append(b"kept-%d" % number)
    with whole(settings) as reader:
        assert values(reader) == kept
    assert refused == 8
    for log in logs:
        log.close()


@pytest.fixture
def own_kafka(tmp_path):
    """A Kafka of this test's own, which may be killed."""
    with KafkaQuorum(tmp_path / "kafka", nodes=1) as kafka:
        yield kafka


@pytest.mark.slow(16)
def test_a_killed_broker_that_restarts_is_survived(own_kafka):
    """Writer, reader and candidate recover without help; nothing acknowledged is lost or repeated."""
    settings, broker = new_topic(own_kafka), own_kafka.nodes[0]
    told: list[str] = []
    with (
        Election(settings, lambda: told.append("elected"), lambda: told.append("deposed")) as election,
        open_topic_log(settings, node_id=1) as log,
        whole(settings) as reader,
    ):
        acknowledged, failures, enough = {}, [], threading.Semaphore(0)

        def append(name: int) -> None:
            number = 0
            while len(acknowledged) < 600 and not failures:
                value = b"%d-%d" % (name, number)
                try:
                    acknowledged[log.append([value], timestamp=1).result().base_offset] = value
                except LogError as error:
                    failures.append(error)
                number += 1
                enough.release()

        threads = [threading.Thread(target=append, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(100):
            assert enough.acquire(timeout=SECONDS)
        broker.kill()
        broker.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert reader.wait(max(acknowledged), SECONDS)
        found = {offset: value for offset, _, value in records(reader) if value is not None}
        assert acknowledged.items() <= found.items()
        assert len(set(found.values())) == len(found)
        wait_until(lambda: election.elected, "the candidate is elected again")
        assert told[-1] == "elected"
    with open_topic_log(settings, node_id=2) as log:
        assert log.leader_epoch == 2
        assert values(log) == [found[offset] for offset in sorted(found)]
