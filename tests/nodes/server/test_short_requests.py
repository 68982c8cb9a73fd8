"""Short requests, which a connection handles without its task: each response, error and end is that of the handler."""

import asyncio
from random import Random

import pytest

from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import AclCreateResult, AclRequestError
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.errors import LogError
from aclog.protocol.acls import create_acls_body
from aclog.protocol.api_keys import API_VERSIONS, CREATE_ACLS, DESCRIBE_CLUSTER
from aclog.protocol.headers import (
    MalformedRequestError,
    OutcomeUnknownError,
    RequestError,
    RequestHeader,
    encode_header,
    frame,
)
from aclog.protocol.messages import build, encode_request
from aclog.protocol.responses import CONTROLLER_APIS
from aclog.server.apis.acls import AuthHelper
from aclog.server.controller.apis import ControllerApis
from aclog.server.controller.quorum_controller import QuorumController
from aclog.server.loops import LoopFuture, committed
from aclog.server.network.listeners import FrameStream, scratch_buffer
from aclog.server.telemetry import CountingAuthorizer
from aclog.snapshots.publisher import Publisher
from tests.support.fakes.memory_log import MemoryLog
from tests.support.nodes.served_listener import SASL, run
from tests.support.runs.profiles import examples

ALICE_IS = {"super.users": "User:alice"}


def creation(version, name="t", **others):
    fields = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": name,
        "resource_pattern_type": PatternType.LITERAL,
        "principal": "User:bob",
        "host": "*",
        "operation": AclOperation.READ,
        "permission_type": AclPermissionType.ALLOW,
        **others,
    }
    return build(CREATE_ACLS, version, "request", "AclCreation", **fields)


def request(version, creations, correlation_id=7, client_id="c"):
    header = RequestHeader(api_key=CREATE_ACLS, api_version=version, correlation_id=correlation_id, client_id=client_id)
    body = encode_request(build(CREATE_ACLS, version, "request", creations=tuple(creations)))
    return frame(encode_header(header) + body)


def tiny():
    fields = {"client_software_name": "load", "client_software_version": "1"}
    header = RequestHeader(api_key=API_VERSIONS, api_version=3, correlation_id=9, client_id="c")
    return frame(encode_header(header) + encode_request(build(API_VERSIONS, 3, "request", **fields)))


# Beside the handlers of a controller, on the same requests


class Serving:
    """What ControllerApis reads of a controller that is active."""

    def __init__(self, controller):
        self.controller = controller

    def active(self):
        return self.controller


def serve_controller(served, *, short, properties, mutator=True):
    """Let a listener serve CreateAcls of a controller on a log in memory."""
    publisher, authorizer = Publisher(), StandardAuthorizer()
    publisher.subscribe(lambda image: authorizer.load(image.acls))
    authorizer.configure(properties)
    authorizer.complete_initial_load()
    log = MemoryLog()
    controller = QuorumController(log=log, publisher=publisher, loop=asyncio.get_running_loop(), metrics=served.metrics)
    if mutator:
        authorizer.set_acl_mutator(controller)
    counted = CountingAuthorizer(authorizer=authorizer, decisions=served.metrics.decisions)
    serving = Serving(controller)
    apis = ControllerApis(auth=AuthHelper(counted), node_id=1, serving=lambda: serving)
    served.dispatcher.handlers = {**served.dispatcher.handlers, CREATE_ACLS: apis.handlers()[CREATE_ACLS]}
    served.dispatcher.__attrs_post_init__()
    if short:
        served.dispatcher.short_handlers = apis.short_handlers()
    return publisher


ODD = (
    {}, {}, {}, {"principal": "nobody"}, {"resource_name": ""}, {"operation": 1}, {"resource_pattern_type": 99},
    {"host": "é" * 40}, {"resource_name": "n" * 300}, {"resource_type": 4},
)  # fmt: skip


def odd_request(random, number):
    """Return the bytes of a request, nearly always of a common one."""
    version, name = random.choice((3, 3, 3, 2, 1)), f"t{random.randrange(12)}"
    creations = [creation(version, **{"name": name, **random.choice(ODD)})]
    creations += [creation(version, f"{name}-{more}") for more in range(random.choice((0, 0, 0, 2, 60)))]
    return request(version, creations, correlation_id=number, client_id=random.choice(("c", None, "é")))


def malformed_request(random, number):
    """Return the bytes of a request after which the node closes the connection."""
    whole = request(3, [creation(3)], correlation_id=number)
    return random.choice(
        (
            request(3, [creation(3, permission_type=0)]),
            frame(whole[4:-1]),
            frame(whole[4:] + b"\0"),
            frame(whole[4:6] + b"\0\x09" + whole[8:]),  # a version that is not served
        )
    )


async def transcript(served, random):
    """Send the same to a listener each time; return every byte that comes back, and what was counted."""
    lines = []
    for user, password in (("alice", "alice-secret"), ("a", "b")):
        client = await served.connect()
        await client.log_in(user, password)
        for number in range(25):
            if random.randrange(10) == 0:
                client.send(malformed_request(random, number))
                lines.append(await client.closed())
                client = await served.connect()
                await client.log_in(user, password)
            requests = [odd_request(random, number) for _ in range(random.choice((1, 1, 1, 2, 4)))]
            data = b"".join(requests)
            cut = random.choice((len(data), len(data), 3, len(data) // 2, len(data) - 1))
            client.send(data[:cut])
            if cut < len(data):
                await asyncio.sleep(0.002)
                client.send(data[cut:])
            lines += [await client.frame() for _ in requests]
    text = served.metrics.text().decode()
    counted = ("_count{", "_errors_total{", "_decisions_total{", "closed_total{", "commit_duration_seconds_count")
    lines += [line for line in text.splitlines() if any(each in line for each in counted)]
    return lines


@pytest.mark.parametrize("seed", range(examples(30)))
def test_every_response_is_the_handlers(seed):
    def found(*, short):
        lines = []

        async def scenario(served):
            publisher = serve_controller(served, short=short, properties=ALICE_IS, mutator=seed % 5 != 1)
            lines.extend(await transcript(served, Random(seed)))
            lines.append(sorted(str(rule.acl) for rule in publisher.current.acls))

        run(scenario, SASL, apis=CONTROLLER_APIS, failed_authentication_seconds=0.0)
        return lines

    assert found(short=True) == found(short=False)


# One at a time, with a future that the test completes


class Held:
    """A handler, and its short form, of requests that wait until the test lets them go."""

    def __init__(self, served, *, short=True):
        self.futures, self.loop, self.in_tasks = [], asyncio.get_running_loop(), 0
        served.dispatcher.handlers = {**served.dispatcher.handlers, CREATE_ACLS: self.handle}
        served.dispatcher.__attrs_post_init__()
        if short:
            served.dispatcher.short_handlers = {CREATE_ACLS: self.begin}

    def begin(self, _request):
        self.futures.append(LoopFuture(self.loop))
        return self.futures[-1], create_acls_body

    async def handle(self, request):
        self.in_tasks += 1
        future, encode = self.begin(request)
        return encode(request.header.api_version, await committed(future))

    async def came(self, count):
        while len(self.futures) < count:
            await asyncio.sleep(0.001)

    def let_go(self, number):
        self.futures[number].set_result([AclCreateResult()])


def body_after(payload):
    return payload[5:]


CREATED = create_acls_body(3, [AclCreateResult()])


def test_the_next_request_waits_for_the_response():
    async def scenario(served):
        held, client = Held(served), await served.connect()
        client.send(request(3, [creation(3)], correlation_id=1))
        await held.came(1)
        client.send(request(3, [creation(3)], correlation_id=2))
        client.send(tiny())
        await asyncio.sleep(0.02)
        assert (len(held.futures), held.in_tasks) == (1, 0)
        held.let_go(0)
        assert (await client.frame())[:4] == b"\0\0\0\1"
        await held.came(2)
        assert held.in_tasks == 1, "it had come before the connection could take another one"
        held.let_go(1)
        assert [(await client.frame())[:4] for _ in range(2)] == [b"\0\0\0\2", b"\0\0\0\x09"]

    run(scenario, apis=CONTROLLER_APIS)


def test_slots_are_handed_over_in_order_among_both_kinds_of_requests():
    async def scenario(served):
        held = Held(served)
        clients = [await served.connect() for _ in range(4)]
        for number, client in enumerate(clients):
            if number == 2:
                client.request(DESCRIBE_CLUSTER, 1)
            else:
                client.send(request(3, [creation(3)]))
            await asyncio.sleep(0.01)
        assert len(held.futures) == 1
        assert served.sample("aclog_in_flight_requests") == 1
        held.let_go(0)
        assert body_after(await clients[0].frame()) == CREATED
        await held.came(2)
        assert len(held.futures) == 2, "the request of the third client came before that of the fourth"
        held.let_go(1)
        assert body_after(await clients[1].frame()) == CREATED
        await clients[2].answer(DESCRIBE_CLUSTER, 1)
        await held.came(3)
        held.let_go(2)
        assert body_after(await clients[3].frame()) == CREATED
        assert served.sample("aclog_in_flight_requests") == 0

    run(scenario, apis=CONTROLLER_APIS, in_flight_requests=1)


@pytest.mark.parametrize("closes", [True, False])
def test_a_client_that_disconnects_gives_its_slot_back(closes):
    async def scenario(served):
        held = Held(served)
        gone, other = await served.connect(), await served.connect()
        gone.send(request(3, [creation(3)]))
        await held.came(1)
        if closes:
            gone.close()
        else:
            gone.writer.write_eof()
        await asyncio.sleep(0.02)
        assert served.admission.connections == 2, "it ends after its request"
        other.send(request(3, [creation(3)]))
        await asyncio.sleep(0.01)
        assert len(held.futures) == 1
        held.let_go(0)
        await held.came(2)
        held.let_go(1)
        assert body_after(await other.frame()) == CREATED
        if not closes:
            assert body_after(await gone.frame()) == CREATED
        await served.settled(lambda: served.admission.connections == 1)
        assert served.sample("aclog_connections_closed_total", listener="CLIENT", reason="client") == 1

    run(scenario, apis=CONTROLLER_APIS, in_flight_requests=1)


def test_a_node_that_stops_answers_first():
    async def scenario(served):
        held, client = Held(served), await served.connect()
        client.send(request(3, [creation(3)]))
        await held.came(1)
        stopping = asyncio.ensure_future(served.server.stop(grace=30))
        await asyncio.sleep(0.01)
        assert not stopping.done()
        held.let_go(0)
        assert body_after(await client.frame()) == CREATED
        await stopping
        assert await client.closed()

    run(scenario, apis=CONTROLLER_APIS)


class Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self):
        super().__init__()
        self.written = b""

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def get_write_buffer_size(self):
        return 0

    def is_closing(self):
        return False

    def write(self, data):
        self.written += data


def test_a_frame_that_comes_after_the_task_was_woken_is_the_tasks():
    async def scenario(served):
        scratch, taken = scratch_buffer(), []
        stream = FrameStream(served.admission, scratch)
        stream.connection_made(Transport())
        stream.take = lambda payload: taken.append(payload) or True
        waiting = asyncio.ensure_future(stream.next())
        await asyncio.sleep(0)
        stream.finish()
        whole = request(3, [creation(3)])
        scratch[: len(whole)] = whole
        stream.buffer_updated(len(whole))
        assert await waiting == whole[4:]
        assert not taken

    run(scenario, apis=CONTROLLER_APIS)


ERRORS = (
    RequestError(41, "elsewhere"),
    AclRequestError(31, "no"),
    MalformedRequestError("odd"),
    OutcomeUnknownError("who knows"),
    LogError("the disk is full"),
    ValueError("a bug"),
)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_after_the_beginning_is_the_handlers(error, caplog):
    def found(*, short):
        lines = []

        async def scenario(served):
            held, client = Held(served, short=short), await served.connect()
            client.send(request(3, [creation(3)]))
            await held.came(1)
            held.futures[0].set_exception(error)
            try:
                lines.append(await client.frame())
            except asyncio.IncompleteReadError:
                lines.append("closed")
            else:
                client.send(tiny())
                lines.append(await client.frame())
            await asyncio.sleep(0.01)
            text = served.metrics.text().decode().splitlines()
            lines.extend(line for line in text if "_errors_total{" in line or "closed_total{" in line)

        caplog.clear()
        run(scenario, apis=CONTROLLER_APIS)
        return lines, [(each.levelname, each.getMessage(), bool(each.exc_info)) for each in caplog.records]

    assert found(short=True) == found(short=False)
