"""A controller and brokers as processes of their own, on ports of 127.0.0.1, with what a test may turn at each."""

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import psutil

from tests.support.nodes.aclog_node import AclogProcess
from tests.support.nodes.server_properties import PLAIN, SCRAM, USERS, Ports, password, with_properties
from tests.support.processes.node_zygote import NodeZygote
from tests.support.processes.waiting import SECONDS

HOST = "127.0.0.1"
BROKER_USER = "broker"
"""How brokers log in to the controller; a super user, as who may send an Envelope may act as anyone."""

SHORT_LOG = {
    "internal_metadata_log_segment_bytes": "20000",
    "metadata_log_max_record_bytes_between_snapshots": "30000",
    "metadata_max_retention_bytes": "40000",
}
"""A controller's log that keeps little, for Cluster's changes."""

_APPLIED = "aclog_last_applied_record_offset"


class ClusterNode(AclogProcess):
    """One node. It can be suspended and asked for its metrics; with a zygote it is there in a moment."""

    def __init__(self, home: Path, ports: Ports, properties: str, zygote: NodeZygote | None) -> None:
        super().__init__(home, ports, properties)
        self._zygote = zygote
        self._gate = ""

    def configure(self, changes: Mapping[str, str]) -> None:
        """Set keys of its server.properties anew."""
        path = self.home / "server.properties"
        text = path.read_text(encoding="utf-8")
        path.write_text(with_properties(text, **changes), encoding="utf-8")

    def spawn(self) -> None:
        """Start it and do not wait."""
        if self._zygote is None:
            super().spawn()
        else:
            self._process = self._zygote.spawn(self.home, ["serve", "server.properties", *self.flags], gate=self._gate)

    def hold_replay(self) -> None:
        """When it starts next, as a controller and by a zygote, its replay ends only after `go_on`."""
        self._gate = "go-on"

    def go_on(self) -> None:
        """Let the replay end."""
        (self.home / self._gate).touch()

    @property
    def running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def applied(self) -> int:
        """The offset of the last record that readers see; -1 before the first, and while nobody tells."""
        try:
            return int(self.metric(_APPLIED))
        except OSError:
            return -1

    def wait_applied(self, offset: int, seconds: float = SECONDS) -> None:
        """Until readers see the record of `offset`."""
        deadline = time.monotonic() + seconds
        while self.applied < offset:
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.home.name} stands at {self.applied}, expected {offset}: {self.output}")
            time.sleep(0.01)

    def suspend(self) -> None:
        """SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    @property
    def memory(self) -> int:
        """Its resident memory in bytes."""
        return psutil.Process(self.pid).memory_info().rss

    def end(self) -> None:
        """Stop it in good order if it runs; one that is suspended, or not ready yet, is killed."""
        if not self.running:
            return
        if psutil.Process(self.pid).status() == psutil.STATUS_STOPPED or not self.is_ready():
            self.kill()
        else:
            code = self.stop()
            assert code == 0, f"ended with {code}: {self.output}"


class Cluster:
    """Homes under `root`; nothing is started by making it. `controller_at` is where brokers find the controller."""

    def __init__(
        self, root: Path, zygote: NodeZygote | None = None, *, controller_at: int | None = None, **changes: str
    ) -> None:
        self.root, self.zygote = root, zygote
        ports = Ports.free()
        self.controller_at = controller_at or ports.controller
        home = root / "controller"
        self.controller = ClusterNode(home, ports, controller_properties(home, ports, controller_at, changes), zygote)
        self.brokers: list[ClusterNode] = []

    def add_broker(self, *, controller_at: int | None = None, **changes: str) -> ClusterNode:
        """Another broker, not started; its way to the controller may go through another port."""
        number, ports = 2 + len(self.brokers), Ports.free()
        home = self.root / f"broker-{number}"
        text = broker_properties(home, number, ports, controller_at or self.controller_at, changes)
        self.brokers.append(ClusterNode(home, ports, text, self.zygote))
        return self.brokers[-1]

    def spare_broker(self, number: int = 0) -> Path:
        """The home of a broker that nobody starts or stops but the caller; several have different numbers."""
        home, ports = self.root / f"spare-{number}", Ports.free()
        text = broker_properties(home, 100 + number, ports, self.controller_at, {})
        return ClusterNode(home, ports, text, None).home

    @property
    def nodes(self) -> list[ClusterNode]:
        """All of them, the controller first."""
        return [self.controller, *self.brokers]

    def start(self) -> Self:
        """Start all and wait until all are ready."""
        for node in self.nodes:
            node.spawn()
        for node in self.nodes:
            node.wait_until_ready()
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for node in reversed(self.nodes):
            node.end()


def controller_properties(home: Path, ports: Ports, advertised: int | None, changes: dict[str, str]) -> str:
    """A controller's server.properties; brokers are told to come to the port `advertised`."""
    text = f"""\
process.roles=controller
node.id=1
controller.quorum.bootstrap.servers={HOST}:{ports.controller}
listeners=CONTROLLER://{HOST}:{ports.controller}
advertised.listeners=CONTROLLER://{HOST}:{advertised or ports.controller}
listener.security.protocol.map=CONTROLLER:SASL_PLAINTEXT
{_common(home, ports)}"""
    return with_properties(text, **changes)


def broker_properties(home: Path, number: int, ports: Ports, controller_at: int, changes: dict[str, str]) -> str:
    """A broker's server.properties: PLAIN and SCRAM on its one listener."""
    text = f"""\
process.roles=broker
node.id={number}
controller.quorum.bootstrap.servers={HOST}:{controller_at}
listeners=CLIENT://{HOST}:{ports.broker}
listener.security.protocol.map=CLIENT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT
inter.broker.listener.name=CLIENT
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.client.plain.sasl.jaas.config={_jaas()}
listener.name.client.scram-sha-256.sasl.jaas.config={SCRAM} required username="admin" password="admin-secret";
{_common(home, ports)}"""
    return with_properties(text, **changes)


def _common(home: Path, ports: Ports) -> str:
    return f"""\
controller.listener.names=CONTROLLER
listener.name.controller.sasl.enabled.mechanisms=PLAIN
sasl.mechanism.controller.protocol=PLAIN
listener.name.controller.plain.sasl.jaas.config={_jaas()}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:{BROKER_USER}
log.dirs={home / "data"}
aclog.http.listener={HOST}:{ports.http}
"""


def _jaas() -> str:
    users = " ".join(f'user_{user}="{password(user)}"' for user in (*USERS, BROKER_USER))
    return f'{PLAIN} required username="{BROKER_USER}" password="{password(BROKER_USER)}" {users};'
