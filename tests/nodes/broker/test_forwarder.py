"""Forwarding to a controller that is slow, not ready, not active or gone: what is retried and what is not."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest
from attrs import evolve

from aclog.client.connection import Connection
from aclog.config.node_config import ClientSecurity, HostPort, TlsSettings
from aclog.protocol.api_keys import API_VERSIONS, CREATE_ACLS, ENVELOPE
from aclog.protocol.headers import OutcomeUnknownError, RequestError, decode_header, frame, response_header
from aclog.protocol.messages import build
from aclog.protocol.responses import (
    AUTHORIZER_NOT_READY,
    ApiVersion,
    EnvelopeResponse,
    Features,
    api_versions_response,
    decode_envelope_request,
    decode_principal,
    encode_envelope_response,
)
from aclog.protocol.session import SecurityProtocol
from aclog.security.tls import server_context
from aclog.server.broker.apis import CONNECTIONS, EnvelopeForwarder
from tests.support.nodes.certificates import Authority
from tests.support.nodes.node_requests import request
from tests.support.processes.waiting import SECONDS

CUT = object()
"""Instead of a response: close the connection after reading the request."""


class Controller:
    """A controller that responds to Envelopes from a list, and records them in `envelopes`."""

    def __init__(self, *answers, newest=1):
        self.answers, self.newest, self.envelopes, self.port = list(answers), newest, [], 0
        self._tasks, self.connected, self.held = set(), [], None
        self.silent, self.leaves = False, 0
        """Whether it reads requests and responds to none; how many connections end with the response to ApiVersions."""

    @asynccontextmanager
    async def listening(self, port=0, tls=None):
        server = await asyncio.start_server(self._serve, "127.0.0.1", port, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for writer in self.connected:
                writer.transport.abort()
            await asyncio.sleep(0.01)  # sockets are closed in a later turn of the loop

    async def _serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        self.connected.append(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                data = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                header, position = decode_header(data)
                body = self._answer(header, data, position)
                if header.api_key == ENVELOPE and self.held is not None:
                    await self.held.wait()
                if body is CUT:
                    break
                if self.silent:
                    continue
                head = response_header(header.api_key, header.api_version, header.correlation_id)
                writer.write(frame(head + body))
                if self.leaves:
                    self.leaves -= 1
                    break
        writer.close()

    def _answer(self, header, data, position):
        if header.api_key == API_VERSIONS:
            return api_versions_response(0, (ApiVersion(ENVELOPE, 0, self.newest),), Features())
        self.envelopes.append((header.api_version, decode_envelope_request(data, position)))
        return self.answers.pop(0) if self.answers else error(0)


def error(code, version=1):
    if code == 0:
        inner = response_header(CREATE_ACLS, 3, 7) + b"the answer"
        return encode_envelope_response(version, EnvelopeResponse(response_data=inner))
    return encode_envelope_response(version, EnvelopeResponse(error_code=code))


def asked():
    return request(CREATE_ACLS, 3, build(CREATE_ACLS, 3, "request", creations=()), "bob", "BROKER")


def forwarder(controller, seconds=5.0, security=None):
    def leader():
        return HostPort(host="127.0.0.1", port=controller.port) if controller.port else None

    return EnvelopeForwarder(leader=leader, security=security or ClientSecurity(), client_id="2", seconds=seconds)


async def until(condition):
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.002)


async def with_idle_connections(made, controller, count):
    """Have that many requests answered at the same time: each takes a connection, which is idle afterwards."""
    controller.held = asyncio.Event()
    requests = [asyncio.create_task(made.forward(asked())) for _ in range(count)]
    await until(lambda: len(controller.envelopes) == count)
    controller.held.set()
    assert await asyncio.gather(*requests) == [b"the answer"] * count
    return tuple(made._idle)


def are_closed(connections):
    return all(each.failure is not None and each._receiver.done() for each in connections)


def forwarded(controller, seconds=5.0):
    async def run():
        async with controller.listening():
            made = forwarder(controller, seconds)
            try:
                return await made.forward(asked())
            finally:
                await made.close()

    return asyncio.run(run())


def test_the_request_is_forwarded_verbatim_with_its_principal():
    controller = Controller()
    assert forwarded(controller) == b"the answer"
    [(version, envelope)] = controller.envelopes
    assert version == 1
    assert envelope.request_data == asked().frame
    principal, token_authenticated = decode_principal(envelope.request_principal)
    assert (str(principal), token_authenticated) == ("User:bob", False)
    assert envelope.client_host_address == bytes((10, 0, 0, 9))


def test_a_kafkas_controller_gets_version_0():
    controller = Controller(error(0, version=0), newest=0)
    assert forwarded(controller) == b"the answer"
    assert [version for version, _ in controller.envelopes] == [0]


@pytest.mark.parametrize("code", [AUTHORIZER_NOT_READY, 41])
def test_requests_that_were_not_applied_are_retried(code):
    controller = Controller(error(code), error(code))
    assert forwarded(controller) == b"the answer"
    assert len(controller.envelopes) == 3


def test_until_the_timeout():
    controller = Controller(*[error(AUTHORIZER_NOT_READY)] * 100)
    with pytest.raises(RequestError, match="error 10801") as refused:
        forwarded(controller, seconds=1.0)
    assert refused.value.code == 7


def test_a_request_with_a_lost_response_is_not_retried():
    controller = Controller(CUT)
    with pytest.raises(OutcomeUnknownError, match="response was lost"):
        forwarded(controller)
    assert len(controller.envelopes) == 1


def test_a_controller_that_is_not_up_yet_is_awaited():
    async def run():
        controller = Controller()
        made = forwarder(controller)
        waiting = asyncio.create_task(made.forward(asked()))
        await asyncio.sleep(0.1)
        async with controller.listening():
            assert await waiting == b"the answer"
            await made.close()

    asyncio.run(run())


def test_after_a_cut_the_next_request_goes_to_a_new_connection():
    async def run():
        controller = Controller(CUT)
        made = forwarder(controller)
        async with controller.listening():
            with pytest.raises(OutcomeUnknownError):
                await made.forward(asked())
            assert await made.forward(asked()) == b"the answer"
            await made.close()

    asyncio.run(run())


def test_after_a_cut_the_idle_connections_are_not_used_either():
    async def run():
        controller = Controller()
        controller.held = asyncio.Event()
        made = forwarder(controller)
        async with controller.listening():
            requests = [asyncio.create_task(made.forward(asked())) for _ in range(3)]
            while len(controller.envelopes) < len(requests):
                await asyncio.sleep(0.01)
            controller.held.set()
            assert await asyncio.gather(*requests) == [b"the answer"] * len(requests)
            assert len(controller.connected) == len(requests)
            controller.answers.append(CUT)
            with pytest.raises(OutcomeUnknownError):
                await made.forward(asked())
            assert await made.forward(asked()) == b"the answer"
            assert len(controller.connected) == len(requests) + 1
            await made.close()

    asyncio.run(run())


def test_a_connection_is_used_again_and_not_after_the_leader_has_moved():
    async def run():
        first, second = Controller(), Controller()
        async with first.listening(), second.listening():
            made = forwarder(first)
            for _ in range(3):
                await made.forward(asked())
            assert len(first.connected) == 1
            first.port = second.port
            await made.forward(asked())
            assert len(first.connected) == len(second.connected) == 1
            await made.close()

    asyncio.run(run())


def test_a_silent_connection_is_not_reused():
    async def run():
        controller = Controller()
        controller.held = asyncio.Event()
        async with controller.listening():
            sender = forwarder(controller, seconds=1.0)
            with pytest.raises(OutcomeUnknownError, match="no response within 1 s"):
                await sender.forward(asked())
            sender.seconds, silent, controller.held = 5.0, controller.held, None
            assert await sender.forward(asked()) == b"the answer"
            assert len(controller.connected) == 2
            silent.set()
            await sender.close()

    asyncio.run(run())


def test_a_silent_controller_is_abandoned_once_another_is_active(monkeypatch):
    monkeypatch.setattr("aclog.server.broker.apis._LEADER_CHECK_S", 0.01)

    async def run():
        silent, active = Controller(), Controller()
        async with silent.listening(), active.listening():
            made = forwarder(silent, seconds=60)
            silent.held = asyncio.Event()
            waiting = asyncio.create_task(made.forward(asked()))
            while not silent.envelopes:
                await asyncio.sleep(0.001)
            address, silent.port = silent.port, 0  # nobody is known to be active: it may answer yet
            await asyncio.sleep(0.05)
            assert not waiting.done()
            silent.port = active.port
            with pytest.raises(
                OutcomeUnknownError, match=f"{address}: no response, and .*:{active.port} is the active"
            ):
                await waiting
            assert await made.forward(asked()) == b"the answer"
            assert len(active.envelopes) == 1
            await made.close()

    asyncio.run(run())


def test_the_limit_of_a_response_begins_when_the_request_is_sent():
    """A request that is sent shortly before the end of the time to send it is answered, however late that is."""

    async def run():
        controller = Controller()
        controller.held = asyncio.Event()
        made = forwarder(controller, seconds=0.6)
        waiting = asyncio.create_task(made.forward(asked()))
        await asyncio.sleep(0.3)
        async with controller.listening():
            await until(lambda: controller.envelopes)
            await asyncio.sleep(0.4)
            assert not waiting.done()
            controller.held.set()
            assert await waiting == b"the answer"
            await made.close()

    asyncio.run(run())


def test_without_a_response_the_outcome_is_unknown_whenever_the_request_was_sent():
    async def run():
        controller, began = Controller(), asyncio.get_running_loop().time()
        controller.held = asyncio.Event()
        made = forwarder(controller, seconds=0.5)
        waiting = asyncio.create_task(made.forward(asked()))
        await asyncio.sleep(0.2)
        async with controller.listening():
            with pytest.raises(OutcomeUnknownError, match=r"no response within 0\.5 s"):
                await waiting
            assert len(controller.envelopes) == 1
            assert asyncio.get_running_loop().time() - began < 2 * 0.5 + 1
            await made.close()

    asyncio.run(run())


def test_what_waits_for_a_connection_was_not_sent():
    async def run():
        controller = Controller()
        controller.held = asyncio.Event()
        made = forwarder(controller)
        made._connection_slots = asyncio.Semaphore(1)
        async with controller.listening():
            sent = asyncio.create_task(made.forward(asked()))
            await until(lambda: controller.envelopes)
            made.seconds = 0.1
            with pytest.raises(RequestError, match=r"Not forwarded within 0\.1 s") as refused:
                await made.forward(asked())
            assert refused.value.code == 7
            controller.held.set()
            assert await sent == b"the answer"
            assert len(controller.envelopes) == 1
            await made.close()

    asyncio.run(run())


def test_what_waits_for_a_login_was_not_sent():
    controller = Controller()
    controller.silent = True
    with pytest.raises(RequestError, match=r"Not forwarded within 0\.2 s"):
        forwarded(controller, seconds=0.2)
    assert controller.connected
    assert not controller.envelopes


def test_a_late_refusal_is_the_last():
    """The time to send has ended when the controller responds that it did nothing."""

    async def run():
        controller = Controller(error(AUTHORIZER_NOT_READY))
        controller.held = asyncio.Event()
        made = forwarder(controller, seconds=0.4)
        waiting = asyncio.create_task(made.forward(asked()))
        await asyncio.sleep(0.2)
        async with controller.listening():
            await until(lambda: controller.envelopes)
            await asyncio.sleep(0.25)
            controller.held.set()
            with pytest.raises(RequestError, match=r"Not forwarded within 0\.4 s: .*error 10801") as refused:
                await waiting
            assert refused.value.code == 7
            assert len(controller.envelopes) == 1
            await made.close()

    asyncio.run(run())


def test_a_connection_that_ends_before_it_is_used_was_not_sent_on():
    controller = Controller()
    controller.leaves = 2
    assert forwarded(controller) == b"the answer"
    assert len(controller.connected) == 3


@pytest.mark.parametrize("moved", [False, True], ids=["lost", "moved"])
def test_no_request_waits_for_idle_connections_to_close(monkeypatch, moved):
    """After a lost response, and after the leader has moved; all of them are closed nevertheless."""

    async def slowly(connection):
        await asyncio.sleep(3600)

    monkeypatch.setattr(Connection, "close", slowly)

    async def run():
        former, active = Controller(), Controller()
        async with former.listening(), active.listening():
            made = forwarder(former)
            idle = await with_idle_connections(made, former, 8)
            assert len(idle) == 8
            async with asyncio.timeout(SECONDS):
                if moved:
                    former.port = active.port
                    assert await made.forward(asked()) == b"the answer"
                else:
                    former.answers.append(CUT)
                    with pytest.raises(OutcomeUnknownError):
                        await made.forward(asked())
                await until(lambda: are_closed(idle))
                await made.close()

    asyncio.run(run())


def test_a_controller_that_does_not_acknowledge_the_end_of_tls_delays_no_request(tmp_path):
    authority = Authority.make("authority")
    authority.write_pem(tmp_path / "trust.pem")
    authority.issue("server").write_pem(tmp_path / "server.pem")
    trust = TlsSettings(truststore=tmp_path / "trust.pem", truststore_type="PEM")
    context = server_context(evolve(trust, keystore=tmp_path / "server.pem", keystore_type="PEM"))
    security = ClientSecurity(security_protocol=SecurityProtocol.SSL, tls=trust)

    async def run():
        former, active = Controller(), Controller()
        async with former.listening(tls=context), active.listening(tls=context):
            made = forwarder(former, security=security)
            idle = await with_idle_connections(made, former, 4)
            for writer in former.connected:
                writer.transport._ssl_protocol._transport.pause_reading()
            former.port, loop = active.port, asyncio.get_running_loop()
            began = loop.time()
            assert await made.forward(asked()) == b"the answer"
            assert loop.time() - began < 1, "Connection.close waits a second for each"
            await until(lambda: are_closed(idle))
            await made.close()

    asyncio.run(run())


def test_a_slow_request_does_not_delay_others():
    async def run():
        controller = Controller()
        made = forwarder(controller)
        async with controller.listening():
            controller.held = asyncio.Event()
            slow = asyncio.create_task(made.forward(asked()))
            while not controller.envelopes:
                await asyncio.sleep(0.001)
            held, controller.held = controller.held, None
            assert await made.forward(asked()) == b"the answer"
            held.set()
            assert await slow == b"the answer"
            await made.close()

    asyncio.run(run())


@pytest.mark.parametrize(("code", "told"), [(31, -1), (97, 97), (35, 35)])
def test_errors_of_the_envelope_become_the_clients(code, told):
    with pytest.raises(RequestError) as refused:
        forwarded(Controller(error(code)))
    assert refused.value.code == told


def test_many_at_once_share_a_few_connections_and_each_gets_its_answer():
    async def run():
        controller = Controller()
        made = forwarder(controller)
        async with controller.listening():
            found = await asyncio.gather(*(made.forward(asked()) for _ in range(50)))
            await made.close()
        assert found == [b"the answer"] * 50
        assert len(controller.envelopes) == 50
        assert 1 < len(controller.connected) <= CONNECTIONS

    asyncio.run(run())
