"""Real clusters rolled from Kafka 4.3.1 to 4.4.0, node by node: what aclog prints is what each node does.

One controller or three, and two brokers, each a process of its own, upgraded in three orders, twice with a way back.
Ranges are the hosts of three ACLs: an ALLOW that wakes up on the topics `alive-*`, a DENY that wakes up on `closed-*`,
and ALTER on the cluster, which the active controller decides. Each topic lives on one broker, which alone decides on a
write to it.
"""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

import pytest
from attrs import define
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from aclog.client import requests
from aclog.client.connection import connect
from aclog.config.node_config import HostPort
from aclog.sources.server_flags import client_security
from tests.support.builders.acls import acl
from tests.support.cli.command import Result, aclog
from tests.support.kafka import topics
from tests.support.kafka.jvm import KAFKA_44, KAFKA_VERSION
from tests.support.kafka.quorum_config import Voter, format_all
from tests.support.kafka.server import KafkaServer, free_port, with_properties
from tests.support.kafka.tools import client_properties
from tests.support.kafka.warm_jvms import ToolPipe
from tests.support.nodes.server_properties import CLUSTER_ID, Ports, server_properties
from tests.support.processes.waiting import SECONDS, wait_until

RANGE = "127.0.0.0/8"
BROKERS, CONTROLLERS = (1, 2), (3, 4, 5)
GIVEN = ("--super-users", "User:admin", "--no-allow-everyone-if-no-acl-found")
HEAP = "256m"
GENERATION = {KAFKA_VERSION: "4.3", KAFKA_44: "4.4"}
KNOWN = acl("plain", "User:zed")
"""An ACL that is there: creating it again changes nothing, and needs ALTER on the cluster all the same."""


@define(eq=False)
class Node:
    """A broker or a controller."""

    node_id: int
    port: int
    server: KafkaServer

    @property
    def generation(self) -> str:
        """That of the software it runs now."""
        return GENERATION[self.server.version]

    def roll(self, version: str) -> None:
        """Stop it, and start another Kafka on its directory."""
        self.server.stop()
        self.server.version = version
        self.server.launch()
        self.server.wait_until_started()


class Cluster:
    """Processes of Kafka 4.3.1 at first: two brokers, and so many controllers."""

    def __init__(self, home: Path, controllers: int) -> None:
        self.home = home
        at = {number: free_port() for number in (*BROKERS, *CONTROLLERS[:controllers])}
        ports = {number: Ports(broker=port, controller=port, http=0) for number, port in at.items()}
        self.voters = [Voter.new(number, ports[number], at[number]) for number in CONTROLLERS[:controllers]]
        self.controllers = tuple(self._node(number, ports[number]) for number in CONTROLLERS[:controllers])
        self.brokers = tuple(self._node(number, ports[number]) for number in BROKERS)

    def _node(self, number: int, ports: Ports) -> Node:
        home = self.home / f"node-{number}"
        home.mkdir()
        is_controller, places = number in CONTROLLERS, (f"localhost:{each.controller_port}" for each in self.voters)
        text = server_properties(
            ports,
            process_roles="controller" if is_controller else "broker",
            node_id=str(number),
            listeners=f"{'CONTROLLER' if is_controller else 'SASL_PLAINTEXT'}://localhost:{ports.broker}",
            controlled_shutdown_enable="true",
            controller_quorum_bootstrap_servers=",".join(places),
            controller_quorum_fetch_timeout_ms="3000",
            initial_broker_registration_timeout_ms="600000",
        )
        if is_controller:
            kept = (line for line in text.splitlines() if not line.startswith(("inter.broker", "advertised")))
            text = "\n".join(kept) + "\n"
        else:
            text = with_properties(text, advertised_listeners=f"SASL_PLAINTEXT://localhost:{ports.broker}")
        return Node(number, ports.broker, KafkaServer(home, text, port=ports.broker, heap=HEAP))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The controllers first."""
        return *self.controllers, *self.brokers

    def __enter__(self) -> "Cluster":
        try:
            format_all([each.server for each in self.controllers], self.voters, static=False)
            for node in self.brokers:
                node.server.format(CLUSTER_ID)
            for role in (self.controllers, self.brokers):
                for node in role:
                    node.server.launch()
                for node in role:
                    node.server.wait_until_started()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node in reversed(self.nodes):
            if node.server.running:
                node.server.kill()

    def place(self, broker: Node | None, user: str = "admin") -> tuple[str, ...]:
        """The flags that name a broker, or the controllers."""
        flag = "--bootstrap-controller" if broker is None else "--bootstrap-server"
        ports = [each.port for each in (self.controllers if broker is None else (broker,))]
        places = ",".join(f"localhost:{port}" for port in ports)
        return flag, places, "--command-config", str(client_properties(self.home, user))

    @property
    def places(self) -> tuple[Node | None, ...]:
        """What `place` takes."""
        return None, *self.brokers

    def term(self) -> tuple[int, Node]:
        """The epoch of the controller that decides, and that controller."""
        stated = stated_now(self.place(None))
        return stated["leaderEpoch"], next(each for each in self.controllers if each.node_id == stated["leaderId"])

    def generations(self) -> dict[str, list[dict[str, object]]]:
        """What `aclog status --json` is to say of the nodes."""
        return {
            kind: [{"nodeId": each.node_id, "version": each.generation} for each in nodes]
            for kind, nodes in (("brokers", self.brokers), ("controllers", self.controllers))
        }

    def text(self) -> str:
        """What the nodes run, in words."""
        parts = []
        for generation in ("4.3", "4.4"):
            roles = [
                (role, [str(each.node_id) for each in nodes if each.generation == generation])
                for role, nodes in (("broker", self.brokers), ("controller", self.controllers))
            ]
            named = [f"{role}{'s' * (len(ids) > 1)} {', '.join(ids)}" for role, ids in roles if ids]
            verb = "runs" if sum(len(ids) for _, ids in roles) == 1 else "run"
            parts += [f"{' and '.join(named)} {verb} Kafka {generation}"] if named else []
        generations = {node.generation for node in self.nodes}
        return f"the nodes differ: {', '.join(parts)}" if len(parts) > 1 else f"all nodes run Kafka {generations.pop()}"


def topic(kind: str, broker: Node) -> str:
    return f"{kind}-{broker.node_id}"


def writes(broker: Node, name: str) -> bool:
    """Whether a client of Kafka's C library that knows no other broker may write, as User:alice."""
    errors: list[KafkaError | None] = []
    client = Producer(
        topics.client_properties(f"localhost:{broker.port}", "alice")
        | {"topic.metadata.propagation.max.ms": "300000", "message.timeout.ms": "300000", "log_level": "0"}
    )
    client.produce(name, b"x", on_delivery=lambda error, _: errors.append(error))
    assert client.flush(SECONDS) == 0, (broker.node_id, name)
    [error] = errors
    assert error is None or error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED, error
    return error is None


def await_writes(broker: Node, name: str, expected: bool) -> None:
    """Wait until a client may write, or may not, as expected.

    The client begins at the broker, but may ask another one for the leader of the topic: if that one denies it, the
    client does not write, whatever the leader would have decided.
    """
    wait_until(lambda: writes(broker, name) is expected, lambda: (broker.node_id, name, expected))


def creates_acls(cluster: Cluster, node: Node, user: str = "carol") -> bool:
    """Whether a user may create an ACL through a node."""

    async def ask() -> bool:
        security = client_security(client_properties(cluster.home, user))
        async with await connect(HostPort(host="localhost", port=node.port), security) as connection:
            [result] = await requests.create_acls(connection, [KNOWN], SECONDS)
            assert result.error is None or getattr(result.error, "code", None) == 31, result
            return result.error is None

    return asyncio.run(ask())


def by_generation(answer: Result) -> dict[str | None, bool]:
    """What an answer of `authorize --format json` says of each generation; under None, if it is one for all."""
    row = json.loads(answer.out)
    found = {row.get("generation"): row["decision"] == "ALLOWED"}
    return found | {each["generation"]: each["decision"] == "ALLOWED" for each in row.get("otherGenerations", ())}


@contextmanager
def following(command: Sequence[str]) -> Iterator["subprocess.Popen[str]"]:
    """A process that is ended with the block, whatever it is doing."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as process:
        try:
            yield process
        finally:
            process.kill()


class Follower:
    """`aclog diff --follow` of the quorum; a thread reads what it prints."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._lines: list[str] = []
        self._from = 0
        self._process = process
        threading.Thread(target=self._read, name="follower", daemon=True).start()

    def _read(self) -> None:
        self._lines.extend(line.rstrip("\n") for line in self._process.stdout)

    def next_rows(self, headline: str) -> list[str]:
        """Wait until a step is printed whose first line ends so, later than the last one, and return its rows."""
        wait_until(lambda: self._place(headline) is not None, lambda: (headline, self._lines))
        place = self._place(headline)
        assert place is not None
        wait_until(lambda: self._rows(place), lambda: self._lines)
        self._from = place + 1
        return self._rows(place)

    def _rows(self, place: int) -> list[str]:
        own = takewhile(lambda line: line.startswith("  "), self._lines[place + 1 :])
        return [line.strip() for line in own if not line.startswith("    ")]

    def begin(self) -> None:
        """Wait until it follows."""
        wait_until(lambda: self._place("; stop with Ctrl-C") is not None, lambda: self._lines)

    def _place(self, headline: str) -> int | None:
        lines = enumerate(self._lines[self._from :], self._from)
        return next((place for place, line in lines if line.endswith(headline)), None)


def prepare(cluster: Cluster) -> None:
    """Create the topics, each on one broker, and the ACLs, as long as a controller of 4.3 accepts any host."""
    admin = AdminClient(topics.client_properties(f"localhost:{cluster.brokers[0].port}"))
    wanted = [
        NewTopic(topic(kind, broker), num_partitions=1, replica_assignment=[[broker.node_id]])
        for kind in ("alive", "closed")
        for broker in cluster.brokers
    ]
    for made in admin.create_topics(wanted).values():
        made.result(SECONDS)
    place, prefixed = cluster.place(cluster.brokers[0]), ("--resource-pattern-type", "prefixed", "--operation", "WRITE")
    for rule in (
        ("--allow-principal", "User:alice", "--allow-host", RANGE, "--topic", "alive-", *prefixed),
        ("--allow-principal", "User:alice", "--topic", "closed-", *prefixed),
        ("--deny-principal", "User:alice", "--deny-host", RANGE, "--topic", "closed-", *prefixed),
        ("--allow-principal", "User:carol", "--allow-host", RANGE, "--cluster", "--operation", "ALTER"),
        ("--allow-principal", "User:zed", "--topic", "plain", "--operation", "READ"),
    ):
        aclog("acls", "add", *place, *rule).ok()


def check_step(cluster: Cluster, places: Sequence[Node | None]) -> None:
    """Compare what the nodes do, as clients see it, with what the commands say over some of the servers."""
    written = {
        (broker.node_id, kind): broker.generation == generation
        for broker in cluster.brokers
        for kind, generation in (("alive", "4.4"), ("closed", "4.3"))
    }
    for broker in cluster.brokers:  # the premise of this test, on real software
        for kind in ("alive", "closed"):
            await_writes(broker, topic(kind, broker), written[broker.node_id, kind])
    statuses = {broker: settled_status(cluster, broker) for broker in places}
    active = check_the_controller_decides(cluster)
    for broker, status in statuses.items():
        check_status(cluster, status)
        check_decisions(cluster, cluster.place(broker), written, active)
    check_doctor(cluster, places)


def check_the_controller_decides(cluster: Cluster) -> Node:
    """Whichever node is asked, the active controller decides; return it. Asked again if another one became active.

    A broker forwards to the controller that it knew as active until that one answers NOT_CONTROLLER. A controller
    authorizes first: one that was active before, and denies the request, answers for the active one, until the broker
    forwards a request that it allows, as those of a super user (NodeToControllerRequestThread, ControllerApis).
    """
    while True:
        term, active = cluster.term()
        assert all(creates_acls(cluster, broker, "admin") for broker in cluster.brokers)
        decided = [creates_acls(cluster, node) for node in (active, *cluster.brokers)]
        if cluster.term()[0] == term:
            assert decided == [active.generation == "4.4"] * len(decided)
            return active


def settled_status(cluster: Cluster, broker: Node | None) -> dict[str, object]:
    """The status over a server, once every node has registered with the software that it runs."""
    place, expected = cluster.place(broker), cluster.generations()
    return wait_until(lambda: stated(place, expected), lambda: stated_now(place))


def stated_now(place: Sequence[str]) -> dict[str, object]:
    return json.loads(aclog("status", *place, "--json").ok().out)


def stated(place: Sequence[str], expected: Mapping[str, object]) -> dict[str, object] | None:
    """The status, once a node that has just started has registered."""
    found = stated_now(place)
    software = found["kafka"]
    return found if {key: software[key] for key in expected} == expected else None


def check_status(cluster: Cluster, status: Mapping[str, object]) -> None:
    generations = {node.generation for node in cluster.nodes}
    software, differing = status["kafka"], [each for each in status["warnings"] if "the nodes differ" in each]
    assert software["decideAlike"] is (len(generations) == 1)
    assert software["text"] == cluster.text()
    if len(generations) == 1:
        assert differing == []
        return
    [warning] = differing
    assert software["text"] in warning
    assert f"1 host of ACLs such as {RANGE} is a range, which Kafka 4.4 matches and Kafka 4.3 does not" in warning
    assert warning.endswith(": nodes decide the same request differently")


def check_decisions(
    cluster: Cluster, place: Sequence[str], written: Mapping[tuple[int, str], bool], active: Node
) -> None:
    """Each node does what the answer says of its generation; an answer for all is what all do."""
    of_brokers = {broker.generation for broker in cluster.brokers}
    for kind in ("alive", "closed"):
        for broker in cluster.brokers:
            request = ("--principal", "User:alice", "--operation", "WRITE", "--topic", topic(kind, broker))
            answer = aclog("authorize", *place, *request, "--host", "127.0.0.1", *GIVEN, "--format", "json")
            said = by_generation(answer)
            assert said.keys() == (of_brokers if len(of_brokers) > 1 else {None})
            assert said.get(broker.generation, said.get(None)) is written[broker.node_id, kind]
            assert ("the brokers differ" in answer.err) is (len(of_brokers) > 1)
    request = ("--principal", "User:carol", "--operation", "ALTER", "--cluster")
    answer = aclog("authorize", *place, *request, "--host", "127.0.0.1", *GIVEN, "--format", "json")
    said, generations = by_generation(answer), {node.generation for node in cluster.nodes}
    assert said.keys() == (generations if len(generations) > 1 else {None})
    assert said.get(active.generation, said.get(None)) is (active.generation == "4.4")
    listed = aclog("acls", "list", *place).ok()
    assert ("a CIDR range as host" in listed.err) is (generations != {"4.4"})
    assert ("which Kafka 4.3 does not match" in listed.err) is (generations == {"4.3"})


def check_doctor(cluster: Cluster, places: Sequence[Node | None]) -> None:
    differs = len({node.generation for node in cluster.nodes}) > 1
    for broker in places:
        rows = map(json.loads, aclog("doctor", *cluster.place(broker), "--format", "jsonl").ok().lines)
        [found] = [row for row in rows if row["check"] == "kafka"]
        assert found["level"] == ("warn" if differs else "ok")
        assert ("the nodes differ" in found["text"]) is differs


def expected_rows(cluster: Cluster, node: Node, was: str) -> set[str]:
    """What one node that runs another Kafka now gives and takes."""
    is_up, is_broker = was == "4.3", node in cluster.brokers
    moved = f"{'upgraded' if is_up else 'downgraded'} from Kafka {was} to Kafka {node.generation}"
    where, more, less = f"from {RANGE} (on {'nodes' if is_broker else 'controllers'} {moved})", "GAINED", "LOST"
    if not is_up:
        more, less = less, more
    rows = {f"{more}  User:carol: ALTER, DESCRIBE on CLUSTER, {where}"}  # brokers decide some of it, too
    if is_broker:
        rows.add(f"{more}  User:alice: WRITE, DESCRIBE on TOPIC alive-*, {where}")
        rows.add(f"{less}  User:alice: WRITE on TOPIC closed-*, {where}")
    return rows


QUICKEST = "controllers first"
ROLLS = {
    QUICKEST: (1, (3, 1, 2)),
    "brokers first, one rolled back": (1, (1, -1, 1, 2, 3)),
    "three controllers, interleaved, one rolled back": (3, (4, 1, 3, -4, 5, 2, 4)),
}
"""How many controllers, and the nodes in the order in which they are upgraded; of a negative number, rolled back.

The first: ranges decide on the controller alone, then on some of the brokers, then everywhere. The second: on some of
the brokers, on none again, on all of them while the controller lacks them. The third: a minority of the controllers has
ranges, with none and with some of the brokers; then a majority, a minority again, and all but one.
"""


@pytest.mark.slow(240)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("controllers", "steps"),
    [
        pytest.param(*roll, id=name, marks=[pytest.mark.tier("test")] * (name == QUICKEST))
        for name, roll in ROLLS.items()
    ],
)
def test_what_is_printed_at_each_step_is_what_the_nodes_do(
    tmp_path: Path, controllers: int, steps: Sequence[int]
) -> None:
    with Cluster(tmp_path, controllers) as cluster:
        roll(cluster, steps)


def roll(cluster: Cluster, steps: Sequence[int]) -> None:
    """Roll a cluster, and compare at each step; at the end, raise its level."""
    prepare(cluster)
    command = [sys.executable, "-m", "aclog", "diff", "--follow", *cluster.place(None), *GIVEN]
    with following(command) as process:
        follower = Follower(process)
        follower.begin()
        check_step(cluster, cluster.places)
        for number, step in enumerate(steps):
            [node] = [each for each in cluster.nodes if each.node_id == abs(step)]
            was = node.generation
            node.roll(KAFKA_44 if step > 0 else KAFKA_VERSION)
            assert set(follower.next_rows(cluster.text())) == expected_rows(cluster, node, was), (number, step)
            check_step(cluster, [cluster.places[number % len(cluster.places)]])

        first = cluster.brokers[0]
        asked = ("--bootstrap-server", f"localhost:{first.port}", "--command-config")
        asked = (*asked, str(client_properties(cluster.home, "admin")), "upgrade", "--release-version", "4.4")
        raised = ToolPipe(KAFKA_44).run("org.apache.kafka.tools.FeatureCommand", asked)
        assert raised.code == 0, raised
        check_step(cluster, cluster.places)
        assert stated_now(cluster.place(first))["features"]["metadata.version"] == 33
        rule = ("--allow-principal", "User:zed", "--allow-host", "10.0.0.0/8", "--operation", "READ", "--topic", "new")
        assert aclog("acls", "add", *cluster.place(first), *rule).ok().err == ""
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0, process.stderr.read()
    for node in reversed(cluster.nodes):
        node.server.stop()
    verified = aclog("log", "verify", cluster.controllers[0].server.log_directory).ok()
    assert (verified.lines[-1], [line for line in verified.err.splitlines() if "warning" in line]) == (
        "all is well",
        [],
    )
