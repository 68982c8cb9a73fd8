"""A Kafka of three nodes, which each controller of aclog reaches by proxies of its own: one alone can be cut off."""

import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from tests.support.kafka.quorum import KafkaQuorum, QuorumNode
from tests.support.kafka.server import free_port, with_properties
from tests.support.kafka.topics import client_properties
from tests.support.nodes.server_properties import PLAIN, USERS, password
from tests.support.nodes.tcp_proxy import TcpProxy


class CutKafka(KafkaQuorum):
    """`proxies_of` are the ways of a controller to the brokers, `servers_of` what it is told of them."""

    def __init__(self, home: Path, controllers: Sequence[int]) -> None:
        super().__init__(home, nodes=3)
        self._controllers = controllers
        self.proxies_of: dict[int, list[TcpProxy]] = {node_id: [] for node_id in controllers}

    def servers_of(self, controller: int) -> str:
        """As metadata.log.bootstrap.servers."""
        return ",".join(f"localhost:{proxy.port}" for proxy in self.proxies_of[controller])

    def wait_in_sync(self, seconds: float) -> None:
        """Wait until all nodes are in sync: whoever dies next is not the last one that has everything."""
        admin = AdminClient(client_properties(self.bootstrap))
        topics = [name for name in admin.list_topics(timeout=seconds).topics if name.startswith("__")]
        deadline = time.monotonic() + seconds
        while not self._in_sync(admin, topics):
            assert time.monotonic() < deadline, f"Kafka's nodes are not in sync within {seconds:g} s"
            time.sleep(0.2)

    def _in_sync(self, admin: AdminClient, topics: list[str]) -> bool:
        try:
            found = [future.result() for future in admin.describe_topics(TopicCollection(topics)).values()]
        except KafkaException:
            return False
        return all(len(part.isr) == len(part.replicas) for each in found for part in each.partitions)

    def _make_nodes(self) -> None:
        super()._make_nodes()
        for node in self.nodes:
            self._add_listeners(node)

    def _add_listeners(self, node: QuorumNode) -> None:
        """A listener for each controller, which clients are told to reach by its proxy."""
        path = node.server.home / "server.properties"
        text = path.read_text(encoding="utf-8")
        found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        users = " ".join(f'user_{user}="{password(user)}"' for user in USERS)
        keys = ("listeners", "advertised.listeners", "listener.security.protocol.map")
        listeners, advertised, protocols = ([found[key]] for key in keys)
        more = {}
        for controller, proxies in self.proxies_of.items():
            port, name = free_port(), f"C{controller}"
            proxies.append(self._stack.enter_context(TcpProxy(port)))
            listeners.append(f"{name}://localhost:{port}")
            advertised.append(f"{name}://localhost:{proxies[-1].port}")
            protocols.append(f"{name}:SASL_PLAINTEXT")
            more[f"listener.name.{name.lower()}.sasl.enabled.mechanisms"] = "PLAIN"
            more[f"listener.name.{name.lower()}.plain.sasl.jaas.config"] = (
                f'{PLAIN} required username="admin" password="{password("admin")}" {users};'
            )
        joined = map(",".join, (listeners, advertised, protocols))
        path.write_text(with_properties(text, **dict(zip(keys, joined, strict=True)), **more), encoding="utf-8")
