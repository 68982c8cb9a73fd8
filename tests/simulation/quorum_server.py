"""A modelled voter as a process on the simulated network: the requests that observers send to a controller of Kafka."""

from collections.abc import Callable
from typing import Any

from attrs import evolve
from kio.schema.errors import ErrorCode

from aclog.client.fetching import FETCH, EpochEnd, FetchResponse, Position
from aclog.client.snapshots import FETCH_SNAPSHOT
from aclog.config.node_config import HostPort
from aclog.protocol import api_keys, error_codes
from aclog.protocol.messages import build, encode_response
from aclog.protocol.responses import CONTROLLER_APIS, Features, api_versions_response
from tests.simulation.network import Network
from tests.simulation.quorum_model import Voter
from tests.simulation.serving import ServerProtocol, listen
from tests.support.fakes.leader import encode_chunk, encode_fetch

_MOST_BYTES = 1 << 20
_ALWAYS = 1 << 62
"""A high-water mark that no leader has news for: requests of versions without one wait for records."""


class VoterServer:
    """What a voter's host serves now: its own log, or that of another quorum, `served` and `cluster_id`."""

    def __init__(self, voter: Voter, cluster_id: str, endpoints: Callable[[], dict[int, HostPort]]) -> None:
        self.served, self.cluster_id, self.endpoints = voter, cluster_id, endpoints
        self.most_bytes = _MOST_BYTES
        """Of a response."""

    async def run(self, process: Any, network: Network, port: int) -> None:
        """Listen until the process ends."""
        await listen(process, network, port, lambda: _Protocol(self))


class _Protocol(ServerProtocol):
    """A connection of an observer."""

    def __init__(self, server: VoterServer) -> None:
        super().__init__()
        self._server = server

    def respond(self, header: Any, body: Any) -> None:
        """See ServerProtocol."""
        key, version = header.api_key, header.api_version
        if key == api_keys.API_VERSIONS:
            features = Features(finalized={"metadata.version": 25})
            self.send(header, api_versions_response(version, CONTROLLER_APIS, features))
        elif key == FETCH:
            _Fetch(self, header, body, self._server).attempt()
        elif key == FETCH_SNAPSHOT:
            self.send(header, self._chunk(version, body))
        else:
            self.send(header, self._cluster(version))

    def _cluster(self, version: int) -> bytes:
        described = {"error_code": ErrorCode.none, "cluster_id": self._server.cluster_id, "controller_id": 1}
        return encode_response(build(api_keys.DESCRIBE_CLUSTER, version, "response", brokers=(), **described))

    def _chunk(self, version: int, body: Any) -> bytes:
        server, partition = self._server, body.topics[0].partitions[0]
        snapshot = EpochEnd(epoch=partition.snapshot_id.epoch, end_offset=partition.snapshot_id.end_offset)
        most = min(body.max_bytes, server.most_bytes)
        return encode_chunk(
            version, server.served.chunk(snapshot, partition.position, partition.current_leader_epoch, most)
        )


class _Fetch:
    """A Fetch that waits for news, at most as long as the request allows."""

    def __init__(self, protocol: _Protocol, header: Any, body: Any, server: VoterServer) -> None:
        self._protocol, self._header, self._body, self._server = protocol, header, body, server
        partition = body.topics[0].partitions[0]
        self._position = Position(
            offset=partition.fetch_offset,
            last_fetched_epoch=partition.last_fetched_epoch,
            leader_epoch=partition.current_leader_epoch,
            high_watermark=getattr(partition, "high_watermark", _ALWAYS),
        )
        self._deadline = protocol.loop.time() + body.max_wait.total_seconds()
        self._timer: Any = None
        self._is_done = False

    def attempt(self) -> None:
        """Respond, or wait."""
        server = self._server
        if self._is_done or self._protocol.transport is None:
            return
        if self._body.cluster_id not in (None, server.cluster_id):
            self._respond(FetchResponse(error=error_codes.INCONSISTENT_CLUSTER_ID))
            return
        response = server.served.answer(self._position, min(self._body.max_bytes, server.most_bytes))
        remaining = self._deadline - self._protocol.loop.time()
        if remaining > 0 and server.served.waits(self._position, response):
            server.served.waiting[self._changed] = None
            self._timer = self._timer or self._protocol.loop.call_later(remaining, self.attempt)
            return
        self._respond(response)

    def _changed(self) -> None:
        if not self._protocol.loop.is_closed():
            self._protocol.loop.call_soon_threadsafe(self.attempt)

    def _respond(self, response: FetchResponse) -> None:
        self._is_done = True
        if self._timer is not None:
            self._timer.cancel()
        self._server.served.waiting.pop(self._changed, None)
        response = evolve(response, endpoints=self._server.endpoints())
        self._protocol.send(self._header, encode_fetch(self._header.api_version, response))
