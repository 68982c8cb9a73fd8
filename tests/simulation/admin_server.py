"""A modelled broker as a process on the simulated network: the requests of `aclog sync` and `aclog apply`."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from attrs import fields

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.index.queries import filter_matches
from aclog.config.node_config import HostPort
from aclog.protocol import api_keys, error_codes
from aclog.protocol.messages import build, encode_response
from aclog.protocol.responses import BROKER_APIS, Features, api_versions_response
from tests.simulation.admin_model import Broker, Controller
from tests.simulation.network import Network
from tests.simulation.serving import ServerProtocol, listen
from tests.support.fakes.broker import CREATION, filter_of, resources_of

T = TypeVar("T")
_RETRY_SECONDS = 60.0
"""How long a broker retries a request at the controllers."""
_QUORUM_SECONDS = 5.0
"""The same for DescribeQuorum, which no client waits for as long."""


class BrokerServer:
    """What a broker's host serves: its own cluster, or for a while that of another one, in `served`."""

    def __init__(self, broker: Broker, cluster_id: str, port: int) -> None:
        self.served, self.cluster_id, self.port = broker, cluster_id, port
        """New connections lead to this broker of this cluster; existing ones to the broker that accepted them."""
        self.brokers: Callable[[], list[tuple[Broker, HostPort]]] = list
        """All brokers of that cluster, with their addresses."""
        self.name_of: Callable[[str], str] = str
        """Returns the name of the host with an address."""
        self.lost_answers = 0
        """How many of the next changes get no answer, with or without being executed: their connections break."""
        self.configs: dict[str, str | None] = {}
        """What DescribeConfigs returns; None for a hidden value."""

    async def run(self, process: Any, network: Network) -> None:
        """Listen until the process ends."""
        await listen(process, network, self.port, lambda: _Protocol(self))


class _Protocol(ServerProtocol):
    """A connection of a client, whose requests are handled one after the other."""

    def __init__(self, server: BrokerServer) -> None:
        super().__init__()
        self._server, self._broker = server, server.served
        self._cluster_id, self._brokers = server.cluster_id, server.brokers
        self._requests: deque[tuple[Any, Any]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._client = ""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._client = self._server.name_of(transport.get_extra_info("peername")[0])

    def respond(self, header: Any, body: Any) -> None:
        """See ServerProtocol."""
        self._requests.append((header, body))
        if self._worker is None or self._worker.done():
            self._worker = self.loop.create_task(self._work())

    async def _work(self) -> None:
        while self._requests:
            header, body = self._requests.popleft()
            handle = _HANDLERS.get(header.api_key, _Protocol._cluster)
            is_change = header.api_key in (api_keys.CREATE_ACLS, api_keys.DELETE_ACLS)
            is_lost = is_change and self._server.lost_answers and self.transport is not None
            if is_lost:
                self._server.lost_answers -= 1
            if not is_lost or self._broker.controller.scheduler.random.random() < 0.6:  # else it was not executed
                response = await handle(self, header.api_version, body)
            if not is_lost:
                self.send(header, response)
            elif self.transport is not None:
                self.transport.abort()

    async def _forward(self, work: Callable[[Controller, float], T], seconds: float) -> T | None:
        """Return the answer of the controller, which may execute a request more than once; None without one."""
        broker = self._broker
        controller, random = broker.controller, broker.controller.scheduler.random
        received = self.loop.time()
        while True:
            await asyncio.sleep(0.005 * random.random())
            if broker.reaches() and controller.away_until <= self.loop.time():
                result = work(controller, received)
                await asyncio.sleep(0.005 * random.random())
                if broker.reaches():
                    return result
            if self.loop.time() > received + seconds:
                return None
            await asyncio.sleep(random.uniform(0.1, 1.0))

    async def _versions(self, version: int, _body: Any) -> bytes:
        broker = self._broker
        epoch = -1 if broker.is_empty else broker.applied - 1
        features = Features(finalized={"metadata.version": 25}, finalized_epoch=epoch)
        return api_versions_response(version, BROKER_APIS, features)

    async def _describe(self, version: int, body: Any) -> bytes:
        broker, acl_filter = self._broker, filter_of(body)
        rules = [broker.controller.rules[each] for each in sorted(broker.state)]
        rules = [rule for rule in rules if filter_matches(acl_filter, rule)]
        return encode_response(
            build(api_keys.DESCRIBE_ACLS, version, "response", resources=tuple(resources_of(version, rules)))
        )

    async def _create(self, version: int, body: Any) -> bytes:
        acls = [StandardAcl(**{name: getattr(each, key) for name, key in CREATION.items()}) for each in body.creations]
        codes = await self._forward(lambda controller, at: controller.create(self._client, at, acls), _RETRY_SECONDS)
        results = tuple(
            build(api_keys.CREATE_ACLS, version, "response", "AclCreationResult", error_code=code, error_message=None)
            for code in codes or [error_codes.REQUEST_TIMED_OUT] * len(acls)
        )
        return encode_response(build(api_keys.CREATE_ACLS, version, "response", results=results))

    async def _delete(self, version: int, body: Any) -> bytes:
        key, filters = api_keys.DELETE_ACLS, [filter_of(each) for each in body.filters]
        rules = self._broker.controller.rules
        removed = await self._forward(
            lambda controller, at: controller.delete(self._client, at, filters), _RETRY_SECONDS
        )
        results = []
        for code, numbers in removed or [(error_codes.REQUEST_TIMED_OUT, [])] * len(filters):
            matching = tuple(
                build(
                    key,
                    version,
                    "response",
                    "DeleteAclsMatchingAcl",
                    **{each.name: getattr(rules[number], each.name) for each in fields(StandardAcl)},
                )
                for number in numbers
            )
            values = {"error_code": code, "matching_acls": matching}
            results.append(build(key, version, "response", "DeleteAclsFilterResult", **values))
        return encode_response(build(key, version, "response", filter_results=tuple(results)))

    async def _quorum(self, version: int, _body: Any) -> bytes:
        key = api_keys.DESCRIBE_QUORUM
        mark = await self._forward(lambda controller, _: controller.end, _QUORUM_SECONDS)
        partition = build(
            key,
            version,
            "response",
            "PartitionData",
            partition_index=0,
            leader_id=9,
            leader_epoch=1,
            high_watermark=-1 if mark is None else mark,
        )
        topic = build(key, version, "response", "TopicData", topic_name="__cluster_metadata", partitions=(partition,))
        code = error_codes.REQUEST_TIMED_OUT if mark is None else 0
        return encode_response(build(key, version, "response", error_code=code, topics=(topic,)))

    async def _cluster(self, version: int, _body: Any) -> bytes:
        own, key = self._broker, api_keys.DESCRIBE_CLUSTER
        brokers = []
        for broker, address in self._brokers():
            fenced = broker is not own and own.reaches() and own.controller.is_fenced(broker)
            more = {"is_fenced": fenced} if version >= 2 else {}
            brokers.append(
                build(
                    key,
                    version,
                    "response",
                    "DescribeClusterBroker",
                    broker_id=broker.number,
                    host=address.host,
                    port=address.port,
                    **more,
                )
            )
        return encode_response(
            build(key, version, "response", cluster_id=self._cluster_id, controller_id=9, brokers=tuple(brokers))
        )

    async def _configs(self, version: int, body: Any) -> bytes:
        key, keys = api_keys.DESCRIBE_CONFIGS, body.resources[0].configuration_keys
        values = tuple(
            build(key, version, "response", "DescribeConfigsResourceResult", name=name, value=value)
            for name, value in self._server.configs.items()
            if keys is None or name in keys
        )
        result = build(key, version, "response", "DescribeConfigsResult", configs=values)
        return encode_response(build(key, version, "response", results=(result,)))


_HANDLERS: dict[int, Callable[[_Protocol, int, Any], Any]] = {
    api_keys.API_VERSIONS: _Protocol._versions,
    api_keys.DESCRIBE_ACLS: _Protocol._describe,
    api_keys.CREATE_ACLS: _Protocol._create,
    api_keys.DELETE_ACLS: _Protocol._delete,
    api_keys.DESCRIBE_QUORUM: _Protocol._quorum,
    api_keys.DESCRIBE_CONFIGS: _Protocol._configs,
}
