"""Three controllers of aclog that share a log in a topic of a real Kafka, and brokers that follow the active one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from aclog.config.server_properties import load_config
from aclog.server.storage import FormatOptions, format_storage
from tests.support.nodes.cluster import BROKER_USER, HOST, ClusterNode
from tests.support.nodes.server_properties import (
    ADMIN_SCRAM,
    CLUSTER_ID,
    PLAIN,
    USERS,
    Ports,
    password,
    with_properties,
)
from tests.support.processes.node_zygote import NodeZygote
from tests.support.processes.waiting import SECONDS, wait_until

CONTROLLERS = (1, 2, 3)
COMBINED = 3
"""The controller that is a broker too."""
_ACTIVE = "aclog_active_controller"


class TopicCluster:
    """Homes under `root`, formatted; nothing is started by making it.

    `servers` are the Kafka's brokers as each controller reaches them, by its id; `changes` are keys of controllers.
    """

    def __init__(
        self,
        root: Path,
        zygote: NodeZygote | None,
        servers: Mapping[int, str],
        *,
        brokers: int = 1,
        replication_factor: int = 1,
        changes: Mapping[str, str] | None = None,
    ) -> None:
        ports = {node_id: Ports.free() for node_id in CONTROLLERS}
        self.voters = ",".join(f"{node_id}@{HOST}:{each.controller}" for node_id, each in ports.items())
        log = {
            "metadata.log.kind": "topic",
            "metadata.log.topic.replication.factor": str(replication_factor),
            **_client(),
            **(changes or {}),
        }
        self.controllers = {
            node_id: self._node(
                root / f"controller-{node_id}",
                each,
                {
                    "process.roles": "controller",
                    "listeners": f"CONTROLLER://{HOST}:{each.controller}",
                    **(_of_broker(each) if node_id == COMBINED else {}),
                    "node.id": str(node_id),
                    "metadata.log.bootstrap.servers": servers[node_id],
                    **log,
                },
                zygote,
            )
            for node_id, each in ports.items()
        }
        self.brokers = [self._broker(root, 11 + number, zygote) for number in range(brokers)]

    def _broker(self, root: Path, node_id: int, zygote: NodeZygote | None) -> ClusterNode:
        ports = Ports.free()
        about = _of_broker(ports)
        about |= {"process.roles": "broker", "listeners": about["listeners"].partition(",")[0]}
        return self._node(root / f"broker-{node_id}", ports, {**about, "node.id": str(node_id)}, zygote)

    def _node(self, home: Path, ports: Ports, about: Mapping[str, str], zygote: NodeZygote | None) -> ClusterNode:
        common = {
            "controller.quorum.voters": self.voters,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": _jaas(),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:admin;User:{BROKER_USER}",
            "log.dirs": str(home / "data"),
            "aclog.http.listener": f"{HOST}:{ports.http}",
        }
        node = ClusterNode(home, ports, with_properties("", **{**common, **about}), zygote)
        format_storage(load_config(home / "server.properties"), CLUSTER_ID, FormatOptions(add_scram=[ADMIN_SCRAM]))
        return node

    @property
    def nodes(self) -> list[ClusterNode]:
        """All of them, the controllers first."""
        return [*self.controllers.values(), *self.brokers]

    @property
    def bootstrap_controllers(self) -> str:
        """As --bootstrap-controller takes them."""
        return ",".join(f"{HOST}:{node.ports.controller}" for node in self.controllers.values())

    def active(self, among: Sequence[int] = CONTROLLERS) -> int | None:
        """Which of these controllers takes itself for the active one; None while none does."""
        for node_id in among:
            node = self.controllers[node_id]
            try:
                if node.running and node.metric(_ACTIVE) == 1:
                    return node_id
            except OSError:
                continue
        return None

    def wait_active(self, among: Sequence[int] = CONTROLLERS, seconds: float = SECONDS) -> int:
        """Which of these controllers is active, as soon as one is."""
        leader: int | None = None

        def one() -> bool:
            nonlocal leader
            leader = self.active(among)
            return leader is not None

        wait_until(one, f"no controller of {among} is active", seconds)
        assert leader is not None
        return leader

    def start(self) -> Self:
        """Start all, and wait until all are ready."""
        for node in self.nodes:
            node.spawn()
        for node in self.nodes:
            node.wait_until_ready()
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            if node.running:
                node.kill()


def _client() -> dict[str, str]:
    """How controllers log in to the Kafka."""
    login = f'{PLAIN} required username="admin" password="{password("admin")}";'
    return {
        "metadata.log.client.security.protocol": "SASL_PLAINTEXT",
        "metadata.log.client.sasl.mechanism": "PLAIN",
        "metadata.log.client.sasl.jaas.config": login,
    }


def _of_broker(ports: Ports) -> dict[str, str]:
    """What a controller that is a broker as well has beside."""
    return {
        "process.roles": "broker,controller",
        "listeners": f"CLIENT://{HOST}:{ports.broker},CONTROLLER://{HOST}:{ports.controller}",
        "inter.broker.listener.name": "CLIENT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": _jaas(),
    }


def _jaas() -> str:
    users = " ".join(f'user_{user}="{password(user)}"' for user in (*USERS, BROKER_USER))
    return f'{PLAIN} required username="{BROKER_USER}" password="{password(BROKER_USER)}" {users};'
