"""A node of a fake quorum on a socket: what an observer needs of a controller, and every way to let it down."""

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from uuid import UUID

from attrs import define, evolve, field
from kio.schema.errors import ErrorCode

from aclog.client.fetching import EpochEnd, FetchResponse, Position
from aclog.client.snapshots import SnapshotChunk
from aclog.config.node_config import HostPort
from aclog.protocol.headers import FrameBuffer, decode_header, frame, response_header
from aclog.protocol.messages import build, decode_request, encode_response, message_type
from aclog.protocol.responses import CONTROLLER_APIS, ApiVersion, Features, api_versions_response
from aclog.security.principals import AuthenticationError
from tests.support.fakes.connections import end_connections
from tests.support.fakes.quorum import NOT_LEADER, FakeQuorum

NO_TIME = timedelta(0)


@define
class Faults:
    """What goes wrong; set by a test at any time.

    `cut` answers are not given, and the connection ends; `garbage` is sent in the place of the next answers, `silent`
    ones never come. `tamper` may change every Fetch answer, `tamper_chunk` every chunk of a snapshot.
    """

    cut: int = 0
    silent: int = 0
    delay: float = 0.0
    garbage: list[bytes] = field(factory=list)
    tamper: Callable[[FetchResponse], FetchResponse] = field(default=lambda answer: answer)
    tamper_chunk: Callable[[SnapshotChunk], SnapshotChunk] = field(default=lambda chunk: chunk)


class FakeLeader:
    """Listens on a port of its own, in a thread of its own, from its making until `close`.

    It leads while the quorum's leader id is its own. `endpoints` is what it tells of others; `login(mechanism)` makes a
    SaslServer, and without a login nothing else is answered then. `requests` counts what was asked, by API key.
    """

    def __init__(
        self,
        quorum: FakeQuorum,
        *,
        node_id: int = 1,
        login: Callable | None = None,
        context: ssl.SSLContext | None = None,
        handlers: dict[int, Callable] | None = None,
        apis: tuple[ApiVersion, ...] = CONTROLLER_APIS,
        port: int = 0,
    ) -> None:
        self.quorum, self.node_id, self.login, self.context = quorum, node_id, login, context
        self.handlers, self.apis, self.port = handlers or {}, apis, port
        self.endpoints: dict[int, HostPort] = {}
        self.cluster_id = "fake-cluster"
        self.features = Features(finalized={"metadata.version": 30})
        self.faults = Faults()
        self.requests: dict[int, int] = {}
        self.fetches: list[tuple[Position, int]] = []
        """What was asked for: where, and how many bytes at most."""
        self.connections = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._open = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._open.wait(30)

    @property
    def address(self) -> HostPort:
        return HostPort(host="localhost" if self.context else "127.0.0.1", port=self.port)

    def __enter__(self) -> "FakeLeader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._task.cancel)
            self._thread.join(30)

    def cut_all(self) -> None:
        """Cut every connection."""
        done = threading.Event()

        def cut() -> None:
            self._abort()
            done.set()

        self._loop.call_soon_threadsafe(cut)
        assert done.wait(30)

    @contextmanager
    def down(self) -> Iterator[None]:
        """Nobody gets an answer meanwhile; from then on over new connections."""
        self.faults.cut = 1 << 30
        self.cut_all()
        yield
        self.faults.cut = 0

    def cut_all_soon(self) -> None:
        """As `cut_all`, from the leader's own thread."""
        for writer in list(self._writers):
            self._loop.call_soon(writer.transport.abort)

    async def _serve(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._changed = asyncio.Event()
        self.quorum.hooks.append(self._wake)
        server = await asyncio.start_server(self._connection, "127.0.0.1", self.port, ssl=self.context)
        self.port = server.sockets[0].getsockname()[1]
        self._open.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
        finally:
            self.quorum.hooks.remove(self._wake)
            await end_connections(server, self._abort)

    def _abort(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # it is closing
            self._loop.call_soon_threadsafe(self._changed.set)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        self.connections += 1
        try:
            await self._answer_all(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer_all(self, reader, writer) -> None:
        frames, state = FrameBuffer(max_bytes=1 << 20), {"in": self.login is None}
        while data := await reader.read(1 << 16):
            frames.feed(data)
            while (request := frames.next()) is not None:
                header, position = decode_header(request)
                self.requests[header.api_key] = self.requests.get(header.api_key, 0) + 1
                if not state["in"] and header.api_key not in (17, 18, 36):
                    return
                body = await self._answer(
                    header, decode_request(header.api_key, header.api_version, request, position), state
                )
                if body is None or not await self._send(writer, header, body):
                    return

    async def _send(self, writer, header, body: bytes) -> bool:
        faults = self.faults
        if faults.delay:
            await asyncio.sleep(faults.delay)
        if header.api_key in (17, 18, 36):
            pass
        elif faults.silent:
            faults.silent -= 1
            return True
        elif faults.cut:
            faults.cut -= 1
            return False
        elif faults.garbage:
            writer.write(faults.garbage.pop(0))
            await writer.drain()
            return True
        writer.write(frame(response_header(header.api_key, header.api_version, header.correlation_id) + body))
        await writer.drain()
        return True

    async def _answer(self, header, body, state) -> bytes | None:
        key, version = header.api_key, header.api_version
        if key == 18:
            return api_versions_response(version, self.apis, self.features)
        if key == 17:
            return self._handshake(version, body, state)
        if key == 36:
            return self._authenticate(version, body, state)
        if key == 1:
            return encode_fetch(version, self.faults.tamper(await self._fetch(version, body)))
        if key == 59:
            return encode_chunk(version, self._chunk(body))
        return encode_response(self.handlers.get(key, self._describe_cluster)(version, body))

    def _describe_cluster(self, version, body):
        none = ErrorCode.none
        return build(60, version, "response", error_code=none, cluster_id=self.cluster_id, controller_id=1, brokers=())

    def _handshake(self, version, body, state) -> bytes:
        state["login"] = self.login(body.mechanism) if self.login else None
        refusal = ErrorCode.unsupported_sasl_mechanism if self.login else ErrorCode.illegal_sasl_state
        code = ErrorCode.none if state["login"] else refusal
        return encode_response(message_type(17, version, "response")(error_code=code, mechanisms=("PLAIN",)))

    def _authenticate(self, version, body, state) -> bytes:
        response = message_type(36, version, "response")
        lifetime = {"session_lifetime": NO_TIME} if "session_lifetime" in response.__dataclass_fields__ else {}
        try:
            answer = state["login"].step(body.auth_bytes)
        except AuthenticationError as error:
            code = ErrorCode.sasl_authentication_failed
            return encode_response(response(error_code=code, error_message=str(error), auth_bytes=b"", **lifetime))
        state["in"] = state["login"].complete
        return encode_response(response(error_code=ErrorCode.none, error_message=None, auth_bytes=answer, **lifetime))

    async def _fetch(self, version, body) -> FetchResponse:
        if body.cluster_id not in (None, self.cluster_id):
            return FetchResponse(error=104)
        partition = body.topics[0].partitions[0]
        position = Position(
            offset=partition.fetch_offset,
            last_fetched_epoch=partition.last_fetched_epoch,
            leader_epoch=partition.current_leader_epoch,
            high_watermark=getattr(partition, "high_watermark", 1 << 62),
        )
        self.fetches.append((position, body.max_bytes))
        end = self._loop.time() + body.max_wait.total_seconds()
        while True:
            self._changed.clear()
            if self.quorum.leader_id != self.node_id:
                answer = self.quorum.answer(position, body.max_bytes)
                return FetchResponse(
                    error=answer.error or NOT_LEADER,
                    leader_id=self.quorum.leader_id,
                    leader_epoch=self.quorum.epoch,
                    endpoints=self.endpoints,
                )
            remaining = end - self._loop.time()
            if remaining <= 0 or not self.quorum.waits(position):
                return evolve(self.quorum.answer(position, body.max_bytes), endpoints=self.endpoints)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), remaining)

    def _chunk(self, body) -> SnapshotChunk:
        partition = body.topics[0].partitions[0]
        snapshot = EpochEnd(epoch=partition.snapshot_id.epoch, end_offset=partition.snapshot_id.end_offset)
        chunk = self.quorum.chunk(snapshot, partition.position, partition.current_leader_epoch, body.max_bytes)
        return evolve(self.faults.tamper_chunk(chunk))


def encode_fetch(version: int, answer: FetchResponse) -> bytes:
    def nested(kind, /, **fields):
        return message_type(1, version, "response", kind)(**fields)

    tagged = {
        "current_leader": nested("LeaderIdAndEpoch", leader_id=answer.leader_id, leader_epoch=answer.leader_epoch)
    }
    if answer.diverging is not None:
        tagged["diverging_epoch"] = nested(
            "EpochEndOffset", epoch=answer.diverging.epoch, end_offset=answer.diverging.end_offset
        )
    if answer.snapshot is not None:
        tagged["snapshot_id"] = nested("SnapshotId", epoch=answer.snapshot.epoch, end_offset=answer.snapshot.end_offset)
    partition = nested(
        "PartitionData",
        partition_index=0,
        error_code=ErrorCode(answer.error),
        high_watermark=answer.high_watermark,
        log_start_offset=answer.log_start_offset,
        aborted_transactions=None,
        records=answer.records,
        **tagged,
    )
    topic = nested("FetchableTopicResponse", topic_id=UUID(int=1), partitions=(partition,))
    endpoints = tuple(
        nested("NodeEndpoint", node_id=node, host=at.host, port=at.port) for node, at in answer.endpoints.items()
    )
    response = message_type(1, version, "response")
    none = ErrorCode.none
    return encode_response(
        response(throttle_time=NO_TIME, error_code=none, responses=(topic,), node_endpoints=endpoints)
    )


def encode_chunk(version: int, chunk: SnapshotChunk) -> bytes:
    def nested(kind, /, **fields):
        return message_type(59, version, "response", kind)(**fields)

    response = message_type(59, version, "response")
    if chunk.error:
        return encode_response(response(throttle_time=NO_TIME, error_code=ErrorCode(chunk.error), topics=()))
    partition = nested(
        "PartitionSnapshot",
        index=0,
        error_code=ErrorCode.none,
        snapshot_id=nested("SnapshotId", end_offset=0, epoch=0),
        current_leader=nested("LeaderIdAndEpoch", leader_id=1, leader_epoch=1),
        size=chunk.size,
        position=chunk.position,
        unaligned_records=chunk.data,
    )
    topic = nested("TopicSnapshot", name="__cluster_metadata", partitions=(partition,))
    return encode_response(response(throttle_time=NO_TIME, error_code=ErrorCode.none, topics=(topic,)))
