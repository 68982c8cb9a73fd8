"""A listener served in the test's own event loop, with handlers that tests choose, and a client of few words."""

import asyncio
import socket
from contextlib import asynccontextmanager

from attrs import evolve

from aclog.config.node_config import HostPort, Limits, Listener
from aclog.config.properties import SslPrincipalMapper
from aclog.protocol.api_keys import API_VERSIONS, DESCRIBE_CLUSTER, SASL_HANDSHAKE
from aclog.protocol.headers import RequestHeader, decode_response_header, encode_header, frame
from aclog.protocol.messages import build, build_response, decode_response, encode_request
from aclog.protocol.responses import BROKER_APIS, CONTROLLER_APIS
from aclog.protocol.session import SecurityProtocol
from aclog.security.principals import Credentials, peer_principal
from aclog.server.network.admission import Admission
from aclog.server.network.dispatch import Dispatcher
from aclog.server.network.listeners import ListenerServer
from aclog.server.telemetry import Metrics
from tests.support.processes.waiting import SECONDS

_SEND_BUFFER = 256 << 10

PLAINTEXT = Listener(
    name="CLIENT",
    bind=HostPort(host="127.0.0.1", port=0),
    advertised=HostPort(host="127.0.0.1", port=0),
    security_protocol=SecurityProtocol.PLAINTEXT,
)
SASL = evolve(
    PLAINTEXT,
    name="SASL",
    security_protocol=SecurityProtocol.SASL_PLAINTEXT,
    sasl_mechanisms=("PLAIN", "SCRAM-SHA-256"),
    plain_users={"alice": "alice-secret", "a": "b"},
)


class FixedCredentials(Credentials):
    """SCRAM credentials in a dictionary by user."""

    def __init__(self, users=None, *, ready=True):
        self.users, self.ready = users or {}, ready

    ready = True
    decoy_key = b"of a cluster"

    def scram(self, user, mechanism):
        return self.users.get((user, mechanism))


async def who(request):
    """DescribeCluster answers with the principal as the cluster's id, and its host as an endpoint's."""
    version, session = request.header.api_version, request.session
    broker = build(
        DESCRIBE_CLUSTER, version, "response", "DescribeClusterBroker", broker_id=1, host=session.host, port=1
    )
    return build_response(
        DESCRIBE_CLUSTER, version, cluster_id=str(session.principal), controller_id=1, brokers=(broker,)
    )


class Client:
    """One connection, in bytes and in kio's messages."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.correlation_id = reader, writer, 0

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def request(self, api_key, version, body=None, client_id="test", /, **fields) -> None:
        self.correlation_id += 1
        header = RequestHeader(
            api_key=api_key, api_version=version, correlation_id=self.correlation_id, client_id=client_id
        )
        payload = encode_request(build(api_key, version, "request", **fields)) if body is None else body
        self.send(frame(encode_header(header) + payload))

    async def frame(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size)

    async def answer(self, api_key, version):
        payload = await self.frame()
        correlation_id, position = decode_response_header(api_key, version, payload)
        assert correlation_id == self.correlation_id
        return decode_response(api_key, version, payload, position)

    async def ask(self, api_key, version, body=None, /, **fields):
        self.request(api_key, version, body, **fields)
        return await self.answer(api_key, version)

    async def versions(self, version=3, name="tests"):
        return await self.ask(API_VERSIONS, version, client_software_name=name, client_software_version="1.0")

    async def log_in(self, user="alice", password="alice-secret", version=2):
        shaken = await self.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        assert shaken.error_code == 0, shaken
        return await self.ask(36, version, auth_bytes=f"\0{user}\0{password}".encode())

    async def who(self) -> str:
        return (await self.ask(DESCRIBE_CLUSTER, 1)).cluster_id

    async def closed(self) -> bool:
        """Whether the server closes the connection without another byte; a reset is as good."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self.writer.transport.abort()


class Served:
    """A listener that is served; its parts, and clients for it."""

    def __init__(
        self, listener=PLAINTEXT, *, handlers=None, credentials=None, apis=BROKER_APIS, tls=None, process=False,
        beside=None, rules="DEFAULT", **limits,
    ):  # fmt: skip
        self.metrics = beside.metrics if beside else Metrics(process=process)
        self.admission = beside.admission if beside else Admission(limits=Limits(**limits), metrics=self.metrics)
        self.dispatcher = Dispatcher(
            handlers={DESCRIBE_CLUSTER: who} | (handlers or {}), apis=apis, metrics=self.metrics
        )
        self.server = ListenerServer(
            listener=listener,
            dispatcher=self.dispatcher,
            admission=self.admission,
            credentials=credentials or FixedCredentials(),
            tls=tls,
            certificate_principal=lambda connection: peer_principal(connection, SslPrincipalMapper.parse(rules)),
        )
        self.clients = []

    async def connect(self, **settings) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.server.port, **settings))
        self.clients.append(client)
        return client

    def sample(self, name, **labels):
        """A metric's value, 0 where it was never touched."""
        return self.metrics.registry.get_sample_value(name, labels) or 0

    async def settled(self, condition) -> None:
        """Wait until something that must come true is."""
        while not condition():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def serving(listener=PLAINTEXT, **settings):
    served = Served(listener, **settings)
    await served.server.start()
    # A kernel that has seen much traffic on loopback takes whole answers at once; slow readers must be felt anyway.
    served.server._acceptor.listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
    try:
        yield served
    finally:
        for client in served.clients:
            client.close()
        await served.server.stop(grace=0.2)
        assert served.admission.connections == 0
        assert served.admission.memory.used == served.admission.unauthenticated_memory.used == 0


def run(scenario, listener=PLAINTEXT, **settings):
    """Run a scenario against a listener of its own, and see that nothing of it is left."""

    async def whole():
        before = len(asyncio.all_tasks())
        async with asyncio.timeout(SECONDS):
            async with serving(listener, **settings) as served:
                await scenario(served)
            assert len(asyncio.all_tasks()) == before

    asyncio.run(whole())


__all__ = ["CONTROLLER_APIS", "PLAINTEXT", "SASL", "Client", "FixedCredentials", "Served", "run", "serving", "who"]
