"""Candidates in a real Kafka's consumer group: one is elected, and another one when it leaves."""

import json
import queue
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from aclog.metalog.errors import LogError
from aclog.metalog.topiclog import Election, TopicSettings
from tests.support.kafka.jvm import ROOT
from tests.support.kafka.server import free_port
from tests.support.kafka.topics import new_topic
from tests.support.processes.waiting import SECONDS, wait_until


@pytest.fixture
def settings(topic_kafka):
    return new_topic(topic_kafka)


class Candidate:
    """Records the callbacks."""

    def __init__(self, settings: TopicSettings) -> None:
        self.told: queue.Queue[str] = queue.Queue()
        self.election = Election(settings, lambda: self.told.put("elected"), lambda: self.told.put("deposed"))

    def hears(self) -> str:
        return self.told.get(timeout=SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.election.close()


def test_a_single_candidate_is_elected_and_deposed_by_its_close(settings):
    with Candidate(settings) as only:
        assert only.hears() == "elected"
        assert only.election.elected
        only.election.close()
        assert only.told.get_nowait() == "deposed"
        assert not only.election.elected
    assert only.told.empty()


def test_a_new_candidate_deposes_nobody_and_takes_over_when_the_first_leaves(settings):
    with Candidate(settings) as first:
        assert first.hears() == "elected"
        with Candidate(settings) as second, Candidate(settings) as third:
            first.election.close()
            assert first.hears() == "deposed"
            wait_until(lambda: second.election.elected or third.election.elected, "another one is elected")
            follower, other = (second, third) if second.election.elected else (third, second)
            assert follower.hears() == "elected"
            assert other.told.empty()
            follower.election.close()
            assert follower.hears() == "deposed"
            assert other.hears() == "elected"
    assert first.told.empty()


@contextmanager
def candidate_process(settings):
    command = [sys.executable, "-m", "tests.support.processes.topic_candidate", settings.topic]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    try:
        process.stdin.write(json.dumps(dict(settings.properties)))
        process.stdin.close()
        yield process
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


@pytest.mark.slow(12)
def test_a_paused_or_killed_candidate_is_replaced_and_deposed_on_waking(settings):
    with candidate_process(settings) as paused:
        assert paused.stdout.readline() == "elected\n"
        with candidate_process(settings) as second:
            paused.send_signal(signal.SIGSTOP)
            assert second.stdout.readline() == "elected\n"
            paused.send_signal(signal.SIGCONT)
            assert paused.stdout.readline() == "deposed\n"
            second.kill()
            assert paused.stdout.readline() == "elected\n"


def test_a_callback_that_fails_does_not_end_the_candidate(settings, caplog):
    told = queue.Queue()

    def fail():
        told.put("elected")
        raise ValueError("a mistake")

    with Election(settings, fail, lambda: told.put("deposed")):
        assert told.get(timeout=SECONDS) == "elected"
    assert told.get(timeout=SECONDS) == "deposed"
    assert "a callback of the election failed" in caplog.text


def test_no_broker_responds(capfd):
    settings = TopicSettings(topic="log", properties={"bootstrap.servers": f"localhost:{free_port()}"})
    with Candidate(settings) as candidate:
        wait_until(lambda: candidate.election.error is not None, "it is told that nobody answers")
        assert isinstance(candidate.election.error, LogError)
    assert candidate.told.empty()
    assert capfd.readouterr() == ("", "")
