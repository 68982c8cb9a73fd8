"""Which brokers a broker names, and with whom it may register."""

import asyncio
from types import SimpleNamespace
from uuid import UUID

import pytest

from aclog.config.node_config import ClientSecurity, HostPort
from aclog.metalog.errors import ConfigError
from aclog.metalog.records import BrokerEndpoint, RegisterBrokerRecord
from aclog.protocol.api_keys import BROKER_HEARTBEAT, BROKER_REGISTRATION, ENVELOPE
from aclog.protocol.responses import ApiVersion
from aclog.server.broker import apis as apis_module
from aclog.server.broker.apis import ClusterView, RemoteChannel
from aclog.snapshots.image import ClusterImage

OWN, OTHER = UUID(int=1000), UUID(int=1001)


def endpoint(name, host):
    return BrokerEndpoint(name=name, host=host, port=9092, security_protocol=0)


def broker(number, *, incarnation=OTHER, fenced=False, names=("IN", "OUT"), rack=None):
    points = tuple(endpoint(name, f"{name.lower()}{number}") for name in names)
    return RegisterBrokerRecord(
        broker_id=number, incarnation_id=incarnation, broker_epoch=1, end_points=points, features=(), fenced=fenced,
        rack=rack,
    )  # fmt: skip


def view(*brokers):
    image = ClusterImage.EMPTY.apply(enumerate(brokers))
    advertised = {name: HostPort(host="own", port=1) for name in ("IN", "OUT")}
    return ClusterView(
        cluster_id="c", node_id=2, advertised=advertised, rack="r", incarnation_id=OWN, registered=lambda: image
    )


def named(found):
    return [(each.node_id, each.address.host, each.rack, each.fenced) for each in found]


def test_all_that_live_by_the_listener_that_was_asked():
    cluster = view(
        broker(3, rack="r3"), broker(2, incarnation=OWN, rack="r"), broker(1, fenced=True), broker(4, names=("IN",))
    )
    assert named(cluster.brokers("OUT")) == [(2, "own", "r", False), (3, "out3", "r3", False)]
    assert [each.node_id for each in cluster.brokers("IN")] == [2, 3, 4]
    assert named(cluster.brokers("IN", include_fenced=True))[0] == (1, "in1", None, True)


def test_itself_though_it_is_fenced():
    cluster = view(broker(3), broker(2, incarnation=OWN, fenced=True))
    assert named(cluster.brokers("IN")) == [(2, "own", None, True), (3, "in3", None, False)]


@pytest.mark.parametrize("brokers", [(), (broker(3),), (broker(2), broker(3))], ids=["none", "others", "a twin"])
def test_itself_alone_unless_it_is_registered(brokers):
    """So in a real Kafka's log, whose brokers are not ours."""
    cluster = view(*brokers)
    assert named(cluster.brokers("IN", include_fenced=True)) == [(2, "own", "r", False)]


OURS = {ENVELOPE: ApiVersion(ENVELOPE, 0, 1), BROKER_REGISTRATION: ApiVersion(BROKER_REGISTRATION, 0, 4),
        BROKER_HEARTBEAT: ApiVersion(BROKER_HEARTBEAT, 0, 2)}  # fmt: skip
KAFKAS = {**OURS, ENVELOPE: ApiVersion(ENVELOPE, 0, 0)}
FORMER = {ENVELOPE: OURS[ENVELOPE]}


@pytest.mark.parametrize(
    ("apis", "what"), [(KAFKAS, "not a controller of aclog"), (FORMER, "does not register brokers yet"), ({}, "not a ")]
)
def test_nothing_is_sent_to_a_controller_that_must_not_know_of_it(monkeypatch, apis, what):
    sent = []

    class Silent:
        address, failure = HostPort(host="c", port=1), None

        def __init__(self):
            self.apis = apis

        def version(self, api_key, oldest, newest):
            return newest

        async def ask(self, message, timeout):
            sent.append(message)
            return SimpleNamespace(error_code=0)

        def abort(self):
            pass

    async def connect(*_, **__):
        return Silent()

    monkeypatch.setattr(apis_module, "connect", connect)
    channel = RemoteChannel(leader=lambda: Silent.address, security=ClientSecurity(), client_id="2", seconds=4.5)
    beat = {"broker_id": 2, "broker_epoch": 1, "current_metadata_offset": 1}

    async def twice():
        for _ in range(2):
            with pytest.raises(ConfigError, match=what):
                await channel.ask(BROKER_HEARTBEAT, **beat)

    asyncio.run(twice())
    assert sent == []
    asyncio.run(channel.close())
    monkeypatch.setattr(Silent, "__init__", lambda self: setattr(self, "apis", OURS))
    asyncio.run(channel.ask(BROKER_HEARTBEAT, **beat))
    assert len(sent) == 1


def test_a_channel_does_not_wait_for_the_former_controller_to_close(monkeypatch):
    leader, made = [HostPort(host="a", port=1)], []

    class Dead:
        failure, apis = None, OURS

        def __init__(self, address):
            self.address, self.aborted = address, False

        def version(self, api_key, oldest, newest):
            return newest

        async def ask(self, message, timeout):
            return SimpleNamespace(error_code=0)

        def abort(self):
            self.aborted = True

        async def close(self):
            await asyncio.sleep(3600)

    async def connect(address, *_, **__):
        made.append(Dead(address))
        return made[-1]

    monkeypatch.setattr(apis_module, "connect", connect)
    channel = RemoteChannel(leader=lambda: leader[0], security=ClientSecurity(), client_id="2", seconds=4.5)

    async def moved():
        for host in ("a", "b"):
            leader[0] = HostPort(host=host, port=1)
            async with asyncio.timeout(60):
                await channel.ask(BROKER_HEARTBEAT, broker_id=2, broker_epoch=1, current_metadata_offset=1)
        assert [(each.address.host, each.aborted) for each in made] == [("a", True), ("b", False)]
        await channel.close()
        assert made[1].aborted

    asyncio.run(moved())
