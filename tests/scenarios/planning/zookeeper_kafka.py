"""A real Kafka 3.9 with ZooKeeper under the names of KafkaQuorum; it has no log that says what was changed."""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tests.support.kafka.server import with_properties
from tests.support.nodes.server_properties import Ports
from tests.support.processes.waiting import SECONDS
from tests.support.zookeeper.kafka import ZooKeeperKafka
from tests.support.zookeeper.server import ZooKeeperServer, zookeeper_client

_REGISTERED = "/brokers/ids/0"


class ZooKeeperNode(ZooKeeperKafka):
    """Its one broker, which can be killed and started again."""

    def __init__(self, home: Path, connect: str, **changes: str) -> None:
        super().__init__(home, connect)
        self.ports = Ports(broker=self.port, controller=0, http=0)
        self._connect = connect
        properties = home / "server.properties"
        properties.write_text(with_properties(properties.read_text(), **changes))

    def start(self) -> None:
        """Start it, once ZooKeeper has forgotten that it runs."""
        with zookeeper_client(self._connect) as client:
            deadline = time.monotonic() + SECONDS
            while client.exists(_REGISTERED):
                assert time.monotonic() < deadline
                time.sleep(0.1)
            self.launch()
            self.wait_until_started()
            while not client.exists(_REGISTERED):
                assert time.monotonic() < deadline
                time.sleep(0.1)


class ZooKeeperCluster:
    """Started and stopped as a context manager."""

    controllers = ()
    log_directory = None

    def __init__(self, home: Path, **changes: str) -> None:
        self._home, self._changes, self._stack = home, changes, ExitStack()

    def __enter__(self) -> Self:
        store = self._stack.enter_context(ZooKeeperServer(self._home / "zookeeper"))
        node = ZooKeeperNode(self._home / "broker", store.connect, **self._changes)
        self._stack.enter_context(node)
        self.nodes = (node,)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def bootstrap(self) -> str:
        """The broker."""
        return f"localhost:{self.nodes[0].port}"
