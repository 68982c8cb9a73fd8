"""A real Kafka 4.3.1 of one node or of three, each a broker and a controller, whose nodes can be killed and paused.

    with KafkaQuorum(tmp_path) as kafka, AdminClient(kafka.nodes[0].ports.broker) as admin:
        admin("createAcls", acls=[...])
        kafka.leader().kill()          # of the metadata quorum; SIGKILL
        kafka.wait_leader()            # until another one leads
        ...
        kafka.node(1).start()          # the same data, the same ports

Clients log in by PLAIN as `admin` with `admin-secret` (tests.support.nodes.server_properties.USERS): `bootstrap`
names all
brokers, `controllers` all controllers. Ports stay a node's own while the quorum is open. Every process is ended by its
id when it closes. Where the block ends with an error, the nodes' output and data are copied to build/kafka-logs, and
the error's note tells where; where a test fails that has one as a fixture, its report does (support.runs.kafka_logs).
"""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from aclog.config.node_config import HostPort
from tests.support.kafka.quorum_config import Voter, format_all, properties_of
from tests.support.kafka.quorum_logs import keep
from tests.support.kafka.server import KafkaError, KafkaServer, free_port
from tests.support.nodes.server_properties import Ports
from tests.support.nodes.tcp_proxy import TcpProxy
from tests.support.processes.waiting import SECONDS

HEAP = "300m"
_LOOK_SECONDS = 0.02


class QuorumNode:
    """One node: a process that may run, be paused, or be dead, and a directory that stays."""

    def __init__(self, home: Path, voter: Voter, properties: str) -> None:
        home.mkdir(parents=True)
        self.voter = voter
        self.server = KafkaServer(home, properties, port=voter.ports.broker, heap=HEAP)
        self.paused = False

    @property
    def node_id(self) -> int:
        """The broker's and the controller's."""
        return self.voter.node_id

    @property
    def ports(self) -> Ports:
        """Where it listens; its controller as well, be there a proxy in front of it or not."""
        return self.voter.ports

    @property
    def controller(self) -> HostPort:
        """Its controller's listener, past any proxy."""
        return HostPort(host="localhost", port=self.ports.controller)

    @property
    def log_directory(self) -> Path:
        """Where its metadata log is."""
        return self.server.log_directory

    @property
    def running(self) -> bool:
        """Whether it is there and not paused."""
        return self.server.running and not self.paused

    def start(self) -> None:
        """Start it, and wait until it serves."""
        self.server.launch()
        self.server.wait_until_started()

    def stop(self) -> None:
        """SIGTERM, and wait for the end; nothing if it has ended."""
        if self.server.running:
            self.server.stop()
        self.paused = False

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.server.kill()
        self.paused = False

    def pause(self) -> None:
        """SIGSTOP: it holds its connections and does nothing, until `resume`."""
        self.server.pause()
        self.paused = True

    def resume(self) -> None:
        """SIGCONT: it goes on as if no time had passed."""
        self.server.resume()
        self.paused = False

    def quorum_state(self) -> tuple[int, int]:
        """The newest leader epoch that it has written down, and who leads in it, -1 while it knows none."""
        try:
            state = json.loads((self.log_directory / "quorum-state").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):  # not there yet, or just being written
            return -1, -1
        return state["leaderEpoch"], state["leaderId"]


class KafkaQuorum:
    """Formatted and started as a context manager; see the module for its use.

    `home` must not have nodes yet; each gets a directory of its own there. The quorum is one that can change its voters
    (kraft.version 1), unless `static`: then voters are named by configuration (kraft.version 0). With `proxied`, the
    nodes reach each other's controllers, their own included, through `proxies`, by node id, which can cut a node off,
    while `QuorumNode.controller` still reaches it. `changes` are Kafka's keys for all nodes.
    """

    def __init__(
        self,
        home: Path,
        *,
        nodes: int = 3,
        static: bool = False,
        proxied: bool = False,
        changes: Mapping[str, str] | None = None,
    ) -> None:
        self.home, self._count, self._static, self._proxied = home, nodes, static, proxied
        self._changes = changes or {}
        self.nodes: tuple[QuorumNode, ...] = ()
        self.proxies: dict[int, TcpProxy] = {}
        self._stack = ExitStack()

    @property
    def bootstrap(self) -> str:
        """All brokers, as bootstrap.servers."""
        return ",".join(f"localhost:{node.ports.broker}" for node in self.nodes)

    @property
    def controllers(self) -> tuple[HostPort, ...]:
        """All controllers, past any proxy."""
        return tuple(node.controller for node in self.nodes)

    def node(self, node_id: int) -> QuorumNode:
        """The node of an id, from 1 on."""
        return self.nodes[node_id - 1]

    def leader(self) -> QuorumNode:
        """Who leads the metadata quorum, waited for."""
        return self.wait_leader()

    def followers(self) -> tuple[QuorumNode, ...]:
        """The running nodes that do not lead."""
        leader = self.leader()
        return tuple(node for node in self.nodes if node.running and node is not leader)

    def wait_leader(self, seconds: float = SECONDS) -> QuorumNode:
        """Wait until a running node leads, as the newest epoch among the running ones says; that node.

        Told by the files that Kafka writes before it acts on an election: nobody needs to be asked.
        """
        deadline = time.monotonic() + seconds
        while True:
            states = {node.node_id: node.quorum_state() for node in self.nodes if node.running}
            epoch, leader_id = max(states.values(), default=(-1, -1))
            if leader_id in states and states[leader_id] == (epoch, leader_id):
                return self.node(leader_id)
            if time.monotonic() > deadline:
                raise KafkaError(f"no leader within {seconds:g} s; epoch and leader by node: {states}")
            time.sleep(_LOOK_SECONDS)

    def keep_logs(self, name: str) -> Path:
        """Copy output, configuration and data of all nodes, as they are now; where to."""
        return keep(self.home, name)

    def __enter__(self) -> Self:
        try:
            self._make_nodes()
            format_all([node.server for node in self.nodes], [node.voter for node in self.nodes], static=self._static)
            self.start(self.nodes)
        except BaseException as error:
            self._close(error)
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._close(error)

    @staticmethod
    def start(nodes: Sequence[QuorumNode]) -> None:
        """Start nodes at the same time, and wait until all of them serve: one alone waits for a majority."""
        for node in nodes:
            node.server.launch()
        for node in nodes:
            node.server.wait_until_started()

    def _make_nodes(self) -> None:
        voters = [self._voter(node_id) for node_id in range(1, self._count + 1)]
        self.nodes = tuple(
            QuorumNode(
                self.home / f"node-{voter.node_id}",
                voter,
                properties_of(voter, voters, static=self._static, changes=self._changes),
            )
            for voter in voters
        )

    def _voter(self, node_id: int) -> Voter:
        ports = Ports(broker=free_port(), controller=free_port(), http=0)
        reached = ports.controller
        if self._proxied:
            proxy = self.proxies[node_id] = self._stack.enter_context(TcpProxy(ports.controller))
            reached = proxy.port
        return Voter.new(node_id, ports, reached)

    def _close(self, error: BaseException | None) -> None:
        if error is not None and self.nodes:
            error.add_note(f"Kafka's logs and data are kept in {self.keep_logs('failed')}")
        with self._stack:
            for node in self.nodes:
                if node.server.running:
                    node.server.kill()
