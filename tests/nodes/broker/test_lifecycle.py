"""A broker's registration and heartbeats, against a controller in the test's hands."""

import asyncio
import logging
from types import SimpleNamespace
from uuid import UUID

import pytest

from aclog.client.errors import UnreachableError
from aclog.config.node_config import BrokerSettings
from aclog.metalog.records import BrokerEndpoint
from aclog.protocol.api_keys import BROKER_HEARTBEAT, BROKER_REGISTRATION
from aclog.protocol.headers import RequestError
from aclog.server.broker.lifecycle import BrokerLifecycle

UNKNOWN = "the controller has no such registration: restart this broker to register it again"
GONE = (UnreachableError("gone"),) * 99
HERE = BrokerEndpoint(name="CLIENT", host="b2", port=9092, security_protocol=2)


class Controller:
    """Answers what it is told to, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked, self.closed = list(answers), [], False

    async def ask(self, api_key, **fields):
        self.asked.append((api_key, fields))
        answer = self.answers.pop(0) if self.answers else beaten()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self):
        self.closed = True


def registered(epoch):
    return SimpleNamespace(broker_epoch=epoch)


def beaten(*, fenced=False):
    return SimpleNamespace(is_fenced=fenced)


async def run(controller, asked, **settings):
    """Until so much was asked; then the broker stops."""
    broker = BrokerLifecycle(
        channel=controller,
        settings=BrokerSettings(heartbeat_interval_ms=1, rack="r", **settings),
        node_id=2,
        cluster_id="c",
        incarnation_id=UUID(int=1000),
        log_dirs=(UUID(int=2000),),
        endpoints=lambda: [HERE],
        replayed=lambda: 41,
    )
    broker.start()
    async with asyncio.timeout(30):
        while len(controller.asked) < asked:
            await asyncio.sleep(0.001)
    await broker.stop()
    await broker.stop()
    return broker


def test_it_registers_sends_heartbeats_and_says_that_it_ends():
    controller = Controller(registered(7), beaten(fenced=True), beaten())
    asyncio.run(run(controller, 4))
    kinds = [api_key for api_key, _ in controller.asked]
    assert kinds == [BROKER_REGISTRATION] + [BROKER_HEARTBEAT] * (len(kinds) - 1)
    wanted = controller.asked[0][1]
    assert (wanted["broker_id"], wanted["cluster_id"], wanted["rack"]) == (2, "c", "r")
    (listener,) = wanted["listeners"]
    assert (listener.name, listener.host, listener.port, listener.security_protocol) == ("CLIENT", "b2", 9092, 2)
    assert {each.name: each.max_supported_version for each in wanted["features"]}["metadata.version"] == 30
    *beats, last = [fields for _, fields in controller.asked[1:]]
    same = {"broker_id": 2, "broker_epoch": 7, "current_metadata_offset": 41, "want_fence": False}
    assert all(beat == {**same, "want_shut_down": False} for beat in beats)
    assert last == {**same, "want_shut_down": True}
    assert controller.closed


def test_it_tries_again_and_says_once_what_is_wrong(caplog):
    caplog.set_level(logging.INFO)
    nobody, twin = UnreachableError("no controller is known"), RequestError(101)
    controller = Controller(nobody, nobody, twin, registered(7), RequestError(77), RequestError(77), beaten())
    asyncio.run(run(controller, 8))
    said = [record.getMessage() for record in caplog.records if record.name.startswith("aclog.server.broker")]
    assert said == [
        "broker 2: not registered yet: no controller is known",
        "broker 2: not registered yet: another broker with this node.id is alive, or was until a moment ago",
        "registered as broker 2 with epoch 7",
        f"broker 2: no heartbeat: {UNKNOWN}",
    ]


def test_a_registration_that_keeps_failing_becomes_an_error(caplog):
    controller = Controller(*[RequestError(104)] * 3)
    asyncio.run(run(controller, 3, registration_timeout_ms=1))
    assert "broker 2: not registered within 0.001 s: the controller is of another cluster" in caplog.messages
    assert caplog.records[-1].levelno == logging.ERROR


@pytest.mark.parametrize("answers", [GONE, (registered(7), *GONE)])
def test_it_ends_without_a_controller(answers):
    asyncio.run(run(Controller(*answers), 2))
