"""Memory of large frames: each pool gets back what it gave, whatever frames arrive and however a connection ends."""

import asyncio

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.protocol.api_keys import DESCRIBE_CLUSTER, SASL_AUTHENTICATE, SASL_HANDSHAKE
from aclog.server.network.admission import UNCHARGED_BYTES
from tests.support.nodes.served_listener import SASL, run

WITH_AN_END = evolve(SASL, session_lifetimes_ms={"PLAIN": 3_600_000})
LARGE = UNCHARGED_BYTES + 10_000


def padded(text: bytes, size: int) -> bytes:
    """SaslAuthenticate version 2 with an unknown tagged field of some bytes, which servers skip."""
    return _varint(len(text) + 1) + text + b"\1\x64" + _varint(size) + bytes(size)


def _varint(number: int) -> bytes:
    head = b""
    while number > 0x7F:
        head, number = head + bytes((number & 0x7F | 0x80,)), number >> 7
    return head + bytes((number,))


async def log_in(client, size, password="alice-secret"):
    await client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")
    return await client.ask(SASL_AUTHENTICATE, 2, padded(f"\0alice\0{password}".encode(), size))


def test_a_large_login_is_returned_to_the_pool_of_unauthenticated_clients():
    async def scenario(served):
        admission = served.admission
        for _ in range(3):
            client = await served.connect()
            assert (await log_in(client, LARGE)).error_code == 0
            assert await client.who() == "User:alice"
            assert (admission.unauthenticated_memory.used, admission.memory.used) == (0, 0)

    run(scenario, SASL, in_flight_bytes=1_000_000)


def test_logins_with_large_frames_do_not_use_up_the_memory_of_others():
    async def scenario(served):
        for _ in range(5):  # more than there is room for, if they kept it
            assert (await log_in(await served.connect(), LARGE)).error_code == 0

    run(scenario, SASL, in_flight_bytes=8 * 2 * LARGE)


SIZES = st.sampled_from((0, 100, LARGE, 2 * LARGE, 5 * LARGE))
STEPS = st.one_of(
    st.tuples(st.just("log in"), SIZES),
    st.tuples(st.just("refused"), SIZES),
    st.tuples(st.just("request"), SIZES),
    st.tuples(st.just("pipelined"), SIZES),
    st.tuples(st.sampled_from(("begun", "malformed")), SIZES),
    st.tuples(st.sampled_from(("eof", "reset")), st.just(0)),
)


async def taken(client, step, size):
    """Take a step of a client; whether the connection still serves it is of no interest here."""
    match step:
        case "log in":
            await log_in(client, size)
        case "refused":
            await log_in(client, size, "wrong")
        case "request":
            client.request(DESCRIBE_CLUSTER, 1, b"\0\1\0" + bytes(size))
            await client.frame()
        case "pipelined":
            for _ in range(3):
                client.request(DESCRIBE_CLUSTER, 1, b"\0\1\0" + bytes(size))
            for _ in range(3):
                await client.frame()
        case "begun":
            client.send((size + 100).to_bytes(4, "big") + bytes.fromhex("003c0001 00000001 ffff 00") + bytes(size // 2))
        case "malformed":
            client.send((size + 100).to_bytes(4, "big") + b"\xff" * (size + 100))
        case "eof":
            client.writer.write_eof()
            await client.reader.read()
        case "reset":
            client.close()


@settings(max_examples=50, deadline=None)
@given(
    clients=st.lists(st.lists(STEPS, min_size=1, max_size=5), min_size=1, max_size=4),
    is_stopped=st.booleans(),
)
def test_both_pools_are_whole_at_the_end(clients, is_stopped):
    """`is_stopped`: the node ends the connections; otherwise each client does."""

    async def scenario(served):
        admission = served.admission
        pools = admission.memory, admission.unauthenticated_memory

        async def one(steps):
            client = await served.connect()
            try:
                async with asyncio.timeout(0.3):  # it may wait for memory that another client keeps
                    for step, size in steps:
                        await taken(client, step, size)
                        if step == "eof":
                            break
            except (OSError, asyncio.IncompleteReadError):  # TimeoutError is an OSError
                pass
            assert all(pool.used >= 0 for pool in pools)

        await asyncio.gather(*map(one, clients))
        if is_stopped:
            await served.server.stop(grace=0.01)
        else:
            for client in served.clients:
                client.close()
        await served.settled(lambda: admission.connections == 0)
        assert [pool.used for pool in pools] == [0, 0]

    run(scenario, WITH_AN_END, in_flight_bytes=8 * 2 * LARGE, failed_authentication_seconds=0.001)
