"""Requests about a topic when the broker that was asked does not respond: another client asks another broker."""

from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from aclog.metalog.errors import LogError
from aclog.metalog.topiclog import topic
from aclog.metalog.topiclog.topic import TopicAdmin


class Client:
    """An admin client whose broker responds, or not."""

    def __init__(self, outcome: object) -> None:
        self.outcome, self.asked = outcome, 0
        self.timeouts: list[float] = []

    def describe_topics(self, topics: object, request_timeout: float) -> dict[str, Future[object]]:
        self.asked += 1
        self.timeouts.append(request_timeout)
        future: Future[object] = Future()
        if isinstance(self.outcome, Exception):
            future.set_exception(self.outcome)
        elif self.outcome is not None:
            future.set_result(self.outcome)
        return {"log": future}

    def poll(self, timeout: float) -> None:
        pass


@pytest.fixture
def clients(monkeypatch):
    """Those that come next; without waits."""
    coming: list[Client] = []
    monkeypatch.setattr(topic, "new_admin", lambda *_: coming.pop(0))
    monkeypatch.setattr(topic, "_RETRY_SECONDS", 0)
    monkeypatch.setattr(topic, "_FIRST_ATTEMPT_SECONDS", 0.001)
    monkeypatch.setattr(topic, "_LEAST_ATTEMPT_SECONDS", 0.001)
    return coming


def timed_out() -> KafkaException:
    return KafkaException(KafkaError(KafkaError._TIMED_OUT))


@pytest.mark.parametrize("outcome", [timed_out(), None], ids=["a timeout", "nothing at all"])
def test_a_client_without_a_response_is_replaced(clients, outcome):
    silent, second = Client(outcome), Client("found")
    clients += [silent, second]
    admin = TopicAdmin("kafka://h/log", {}, 60)
    assert admin.describe("log") == "found"
    assert (silent.asked, second.asked) == (1, 1)
    assert admin.describe("log") == "found"
    assert second.asked == 2


def test_in_the_end_it_is_an_error(clients):
    clients += [Client(timed_out()) for _ in range(10_000)]
    admin = TopicAdmin("kafka://h/log", {}, 0.01)
    with pytest.raises(LogError, match=r"kafka://h/log: no response within 0\.01 s"):
        admin.describe("log")
    clients.insert(0, Client("found"))
    admin.allow(60)
    assert admin.describe("log") == "found"


def test_attempts_take_longer_and_longer_until_the_next_requests(clients):
    """Requests after a slow time must not wait for a dead broker as long as its last ones did."""
    silent = [Client(timed_out()) for _ in range(3)]
    refused = Client(KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
    clients += [*silent, refused]
    admin = TopicAdmin("kafka://h/log", {}, 60)
    with pytest.raises(LogError):
        admin.describe("log")
    assert [*(each.timeouts for each in silent), refused.timeouts] == [[0.001], [0.002], [0.004], [0.008]]
    refused.outcome = "found"
    admin.allow(60)
    assert admin.describe("log") == "found"
    assert refused.timeouts == [0.008, 0.001]


def test_no_attempt_is_longer_than_the_time_that_is_left(clients, monkeypatch):
    monkeypatch.setattr(topic, "_FIRST_ATTEMPT_SECONDS", 60.0)
    monkeypatch.setattr(topic, "_LEAST_ATTEMPT_SECONDS", 0.01)
    prompt, silent = Client("found"), Client(None)
    clients += [prompt]
    admin = TopicAdmin("kafka://h/log", {}, 5.0)
    for left in (5.0, 0.0):
        admin.allow(left)
        assert admin.describe("log") == "found"
    assert prompt.timeouts == [pytest.approx(5.0, abs=1.0), 0.01]
    admin.allow(0.02)
    admin._client = silent
    with pytest.raises(LogError, match=r"no response within 0\.02 s"):
        admin.describe("log")
