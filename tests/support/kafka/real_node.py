"""A real Kafka, 4.3.1 unless said otherwise, controller and broker in one process, with the interface of AclogNode."""

from pathlib import Path
from typing import Self

from tests.support.kafka.jvm import KAFKA_VERSION, PRODUCTION
from tests.support.kafka.server import KafkaServer
from tests.support.nodes.server_properties import ADMIN_SCRAM, CLUSTER_ID, Ports, server_properties


class RealNode:
    """`home` holds server.properties, the data directory and the output of the server."""

    kind = "kafka"

    def __init__(
        self,
        home: Path,
        ports: Ports,
        properties: str | None = None,
        *,
        heap: str = "400m",
        version: str = KAFKA_VERSION,
    ) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home, self.ports = home, ports
        text = properties or server_properties(ports)
        self._server = KafkaServer(home, text, port=ports.broker, heap=heap, version=version)

    @property
    def log_directory(self) -> Path:
        """Where the metadata log is."""
        return self._server.log_directory

    @property
    def output(self) -> str:
        """What the server has printed since its last start."""
        return self._server.output.read_text(encoding="utf-8", errors="replace")

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        return self._server.pid

    @classmethod
    def in_production(cls, home: Path, ports: Ports, properties: str | None = None) -> Self:
        """Return a node with the heap and the flags of kafka-server-start.sh, for benchmarks."""
        node = cls(home, ports, properties)
        node._server.options = PRODUCTION
        return node

    def log_every_decision(self) -> None:
        """Have its output hold every decision, from its next start on."""
        self._server.audit_level = "trace"

    def format(self, *more: str) -> Self:
        """kafka-storage format with `more` flags, on a directory that is not there yet."""
        self._server.format(CLUSTER_ID, "--standalone", "--add-scram", ADMIN_SCRAM, *more)
        return self

    def start(self) -> Self:
        """Start it and wait until it serves; a KafkaError with the end of its output if it does not."""
        output = self._server.output
        if output.exists():  # a start is told by what the server prints: an earlier one's lines are put aside
            output.rename(output.with_suffix(f".{len(list(self.home.glob('server.*.log')))}.log"))
        self._server.__enter__()
        return self

    def stop(self) -> None:
        """SIGTERM, and wait for the end."""
        self._server.stop()

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self._server.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
