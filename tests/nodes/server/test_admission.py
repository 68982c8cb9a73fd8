"""Limits on clients: connections, memory, requests, unread responses; offenders affect only themselves."""

import asyncio
import contextlib
import resource

import pytest

from aclog.config.node_config import Limits
from aclog.protocol.api_keys import CREATE_ACLS, DESCRIBE_ACLS, DESCRIBE_CLUSTER, FETCH
from aclog.protocol.headers import RequestError, RequestHeader, encode_header
from aclog.protocol.responses import CONTROLLER_APIS
from aclog.server.network import admission as files
from aclog.server.network.admission import OWN_FILES, Admission, MemoryPool, connections_within_files
from aclog.server.telemetry import Metrics
from tests.support.nodes.served_listener import SASL, run


def closed_for(served, reason, listener="CLIENT"):
    return served.sample("aclog_connections_closed_total", listener=listener, reason=reason)


def test_connections_in_all():
    async def scenario(served):
        first, second = await served.connect(), await served.connect()
        assert await first.who()
        assert await (await served.connect()).closed()
        assert served.sample("aclog_connections_refused_total", listener="CLIENT") == 1
        second.close()
        await served.settled(lambda: served.admission.connections == 1)
        assert await (await served.connect()).who()
        assert await first.who()

    run(scenario, connections=2)


def test_connections_of_one_address():
    admission = Admission(limits=Limits(connections=3, connections_per_ip=2), metrics=Metrics(process=False))
    slots = [(host, admission.admit(host, lambda _: None)) for host in ("a", "a", "a", "b", "b")]
    assert [slot is not None for _, slot in slots] == [True, True, False, True, False]
    admission.release("a", slots[0][1])
    last = admission.admit("b", lambda _: None)
    assert last is not None
    for host, slot in (slots[1], slots[3], ("b", last)):
        admission.release(host, slot)
    assert admission.connections == 0
    assert not admission._by_host


def test_idle_connections_of_one_address_give_way_to_those_of_others():
    async def scenario(served):
        crowd = [await served.connect() for _ in range(4)]
        assert [await client.who() for client in crowd]
        other = await served.connect(local_addr=("127.0.0.2", 0))
        assert await other.who()
        await served.settled(lambda: closed_for(served, "crowded") == 1)
        assert await other.who(), "it stays, and its network holds too few to give way"
        assert await (await served.connect(local_addr=("127.0.0.3", 0))).who()
        assert await (await served.connect()).closed(), "its own network holds most"
        assert await other.who()

    run(scenario, connections=4)


def test_who_has_authenticated_does_not_give_way():
    async def scenario(served):
        known = [await served.connect() for _ in range(3)]
        for client in known:
            await client.log_in()
        quiet = [await served.connect() for _ in range(2)]
        other = await served.connect(local_addr=("127.0.0.2", 0))
        await other.log_in()
        assert await quiet[0].closed()
        assert [await client.who() for client in (*known, other)] == ["User:alice"] * 4
        assert await (await served.connect(local_addr=("127.0.0.3", 0))).closed(), "nobody holds more than it would"

    run(scenario, SASL, connections=5)


def test_a_silent_client_is_disconnected():
    async def scenario(served):
        quiet, once = await served.connect(), await served.connect()
        await once.who()
        assert await quiet.closed()
        assert await once.closed()
        await served.settled(lambda: closed_for(served, "idle") == 2)

    run(scenario, idle_seconds=0.5)


def test_a_client_that_does_not_authenticate_is_disconnected():
    async def scenario(served):
        quiet, begun, steady = await served.connect(), await served.connect(), await served.connect()
        await steady.log_in()
        await begun.versions()
        assert await quiet.closed()
        assert await begun.closed()
        await served.settled(lambda: closed_for(served, "authentication", "SASL") == 2)
        assert await steady.who() == "User:alice"

    run(scenario, SASL, authentication_seconds=1.0)


def test_a_frame_that_does_not_end():
    async def scenario(served):
        client = await served.connect()
        client.send((1000).to_bytes(4, "big") + bytes(10))
        assert await client.closed()
        await served.settled(lambda: closed_for(served, "slow_writer") == 1)

    run(scenario, request_seconds=0.1)


async def large(request):
    return bytes(4 << 20)


def test_a_slow_reader_is_disconnected_and_delays_nobody():
    async def scenario(served):
        slow, neighbour = await served.connect(limit=1024), await served.connect()
        slow.request(DESCRIBE_ACLS, 2)
        await served.settled(lambda: served.sample("aclog_unsent_bytes") > 4 << 20)
        for _ in range(20):
            await neighbour.who()
        await served.settled(lambda: closed_for(served, "slow_reader") == 1)
        assert served.sample("aclog_unsent_bytes") == 0
        assert await neighbour.who()

    run(scenario, handlers={DESCRIBE_ACLS: large}, request_seconds=1.0)


def test_a_moderately_slow_reader_gets_everything():
    async def scenario(served):
        slow = await served.connect(limit=1024)
        slow.request(DESCRIBE_ACLS, 2)
        await served.settled(lambda: served.sample("aclog_unsent_bytes") > 4 << 20)
        assert len(await slow.frame()) == 5 + (4 << 20)
        assert (await slow.who()) == "User:ANONYMOUS"

    run(scenario, handlers={DESCRIBE_ACLS: large})


def test_slow_readers_are_disconnected_oldest_first():
    async def scenario(served):
        slow = [await served.connect(limit=1024) for _ in range(5)]
        for number, client in enumerate(slow):
            client.request(DESCRIBE_ACLS, 2)
            await served.settled(
                lambda n=number: (
                    served.sample("aclog_unsent_bytes") + closed_for(served, "slow_reader") * 4 * (1 << 20)
                    > (n + 1) * (4 << 20)
                )
            )
        await served.settled(lambda: closed_for(served, "slow_reader") == 3)
        for client in slow[3:]:
            assert len(await client.frame()) == 5 + (4 << 20)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await slow[0].frame()

    run(scenario, handlers={DESCRIBE_ACLS: large}, in_flight_bytes=9 << 20)


class Gate:
    """A handler that waits until released."""

    def __init__(self):
        self.open, self.inside, self.cancelled = asyncio.Event(), 0, 0

    async def __call__(self, request):
        self.inside += 1
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.inside -= 1
        raise RequestError(7)


def test_requests_beyond_the_limit_wait():
    gate = Gate()

    async def scenario(served):
        clients = [await served.connect() for _ in range(5)]
        for client in clients:
            client.request(DESCRIBE_ACLS, 2)
        await served.settled(lambda: gate.inside == 2)
        await asyncio.sleep(0.02)
        assert gate.inside == 2
        assert served.sample("aclog_in_flight_requests") == 2
        gate.open.set()
        for client in clients:
            assert (await client.answer(DESCRIBE_ACLS, 2)).error_code == 7
        await served.settled(lambda: served.sample("aclog_in_flight_requests") == 0)

    run(scenario, handlers={DESCRIBE_ACLS: gate}, in_flight_requests=2)


def test_request_slots_are_handed_over_in_order_and_survive_cancellation():
    async def scenario():
        admission, order = Admission(limits=Limits(in_flight_requests=2), metrics=Metrics(process=False)), []

        async def request(number):
            await admission.enter()
            order.append(number)

        await request(0)
        await request(1)
        waiting = [asyncio.create_task(request(number)) for number in range(2, 7)]
        await asyncio.sleep(0)
        waiting[0].cancel()  # before it is its turn
        await asyncio.sleep(0)
        admission.leave()
        waiting[1].cancel()  # as it is its turn: the slot goes to the next
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert order == [0, 1, 4]
        for _ in range(2):
            admission.leave()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert order == [0, 1, 4, 5, 6]
        for _ in range(2):
            admission.leave()
        async with asyncio.timeout(30):
            await request(7)
            await request(8)

    asyncio.run(scenario())


def test_one_request_at_a_time_and_the_rest_waits_in_the_socket():
    gate = Gate()

    async def scenario(served):
        client = await served.connect()
        data = encode_header(
            RequestHeader(api_key=DESCRIBE_ACLS, api_version=2, correlation_id=1, client_id="x" * 1000)
        )
        body = data + bytes.fromhex("01 00 01 00 00 01 01 00".replace(" ", ""))
        flood = (len(body).to_bytes(4, "big") + body) * 20_000
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                client.send(flood)
                await client.writer.drain()
        (stream,) = served.server._connections.values()
        assert gate.inside == 1
        assert len(stream._data) < 200_000
        client.close()
        gate.open.set()
        await served.settled(lambda: served.admission.connections == 0)

    run(scenario, handlers={DESCRIBE_ACLS: gate})


def test_a_long_poll_takes_no_slot_and_ends_with_its_client():
    gate = Gate()

    async def scenario(served):
        observers = [await served.connect() for _ in range(10)]
        for observer in observers:
            observer.request(FETCH, 17)
        await served.settled(lambda: gate.inside == 10)
        assert await (await served.connect()).who()
        for observer in observers[:9]:
            observer.close()
        await served.settled(lambda: gate.cancelled == 9)
        gate.open.set()
        assert (await observers[9].answer(FETCH, 17)).error_code == 7

    run(scenario, handlers={FETCH: gate}, apis=CONTROLLER_APIS, in_flight_requests=1)


def test_a_disconnect_does_not_cancel_the_request():
    gate = Gate()

    async def scenario(served):
        client = await served.connect()
        client.request(CREATE_ACLS, 3)
        await served.settled(lambda: gate.inside == 1)
        client.close()
        await asyncio.sleep(0.02)
        assert (gate.inside, gate.cancelled) == (1, 0)
        gate.open.set()
        await served.settled(lambda: served.admission.connections == 0)

    run(scenario, handlers={CREATE_ACLS: gate})


def test_large_frames_share_their_memory():
    async def scenario(served):
        clients = [await served.connect() for _ in range(4)]
        for client in clients:
            client.send(
                (300_000).to_bytes(4, "big") + bytes.fromhex("003c0001 00000001 ffff 00 00 01 00") + bytes(1000)
            )
        await served.settled(lambda: served.sample("aclog_in_flight_bytes") == 900_000)
        small = await served.connect()
        assert await small.who(), "small ones are not charged"
        rest = bytes(300_000 - 1014)
        for client in clients[:3]:
            client.send(rest)
            assert (await client.frame())[:4] == (1).to_bytes(4, "big")
        clients[3].send(rest)
        assert await clients[3].frame()
        await served.settled(lambda: served.sample("aclog_in_flight_bytes") in (0, 300_000))

    run(scenario, in_flight_bytes=1_000_000)


def test_unauthenticated_clients_have_their_own_memory():
    async def scenario(served):
        strangers = [await served.connect() for _ in range(10)]
        for stranger in strangers:
            stranger.send((100_000).to_bytes(4, "big") + bytes(100))
        await served.settled(lambda: served.admission.unauthenticated_memory.used == 100_000)
        client = await served.connect()
        await client.log_in()
        client.request(DESCRIBE_CLUSTER, 1, b"\0\1\0" + bytes(500_000))
        assert (await client.answer(DESCRIBE_CLUSTER, 1)).error_code == 0

    run(scenario, SASL, in_flight_bytes=1_000_000)


def test_a_pool_grants_in_order_and_survives_cancellation():
    async def scenario():
        pool, got = MemoryPool(10), []

        async def taker(name, amount):
            await pool.take(amount)
            got.append(name)

        await taker("a", 8)
        tasks = {name: asyncio.create_task(taker(name, amount)) for name, amount in (("b", 5), ("c", 2), ("d", 50))}
        await asyncio.sleep(0)
        assert got == ["a"], "small ones do not overtake"
        tasks["b"].cancel()
        await asyncio.sleep(0)
        pool.give(0)
        await asyncio.sleep(0)
        assert got == ["a", "c"]
        pool.give(8)
        pool.give(2)
        await asyncio.sleep(0)
        assert got == ["a", "c", "d"], "one larger than all has it alone"
        late = asyncio.create_task(taker("e", 1))
        await asyncio.sleep(0)
        assert "e" not in got
        pool.give(50)
        late.cancel()
        await asyncio.sleep(0)
        assert pool.used == 0, "what was given to one who is gone is given back"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "served", "raised"),
    [
        (1 << 20, 1 << 20, 10_000, 10_000, None),
        (1024, 1 << 20, 10_000, 10_000, 10_000 + OWN_FILES),
        (1024, 4096, 10_000, 4096 - OWN_FILES, 4096),
        (1024, 1024, 100, 100, None),
        (100, 100, 10, 1, 100),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, 10_000, 10_000, None),
        (1024, resource.RLIM_INFINITY, 10_000, 10_000, 10_000 + OWN_FILES),
    ],
)
def test_connections_stay_within_files(monkeypatch, caplog, soft, hard, wanted, served, raised):
    asked = []
    monkeypatch.setattr(files.resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(files.resource, "setrlimit", lambda _, limits: asked.append(limits))
    assert connections_within_files(wanted) == served
    assert asked == ([] if raised is None else [(raised, hard)])
    assert ("ulimit -n" in caplog.text) is (served < wanted)
