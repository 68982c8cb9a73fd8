"""A real Kafka that another process has started and will stop, for tests that leave it running."""

from pathlib import Path
from typing import Self

from attrs import frozen

from aclog.config.node_config import HostPort
from tests.support.kafka.quorum_logs import keep
from tests.support.nodes.server_properties import Ports


@frozen
class SharedNode:
    """A broker and controller."""

    node_id: int
    ports: Ports


@frozen
class SharedKafka:
    """Named like KafkaQuorum; without what starts, stops or harms a node."""

    home: Path
    nodes: tuple[SharedNode, ...]

    @classmethod
    def of(cls, home: Path, broker: int, controller: int) -> Self:
        """One node, by its ports."""
        return cls(home, (SharedNode(1, Ports(broker=broker, controller=controller, http=0)),))

    @property
    def bootstrap(self) -> str:
        """All brokers, as bootstrap.servers."""
        return ",".join(f"localhost:{node.ports.broker}" for node in self.nodes)

    @property
    def controllers(self) -> tuple[HostPort, ...]:
        """All controllers."""
        return tuple(HostPort(host="localhost", port=node.ports.controller) for node in self.nodes)

    def keep_logs(self, name: str) -> Path:
        """Copy output, configuration and data of all nodes, as they are now; where to."""
        return keep(self.home, name)
