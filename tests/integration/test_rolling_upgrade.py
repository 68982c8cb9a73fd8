"""A real cluster rolled from Kafka 4.3.1 to 4.4.0, node by node: what aclog prints is what each node does.

A controller and two brokers, each a process of its own. Ranges are the hosts of three ACLs: an ALLOW that wakes up on
the topics `alive-*`, a DENY that wakes up on `closed-*`, and ALTER on the cluster, which the controller decides. Each
topic lives on one broker, so that a client which begins there reaches no other one.
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
from tests.support.kafka.jvm import KAFKA_44, KAFKA_VERSION, run_tool
from tests.support.kafka.server import KafkaServer, free_port, with_properties
from tests.support.kafka.tools import client_properties
from tests.support.nodes.server_properties import ADMIN_SCRAM, CLUSTER_ID, Ports, server_properties
from tests.support.processes.waiting import SECONDS, wait_until

RANGE = "127.0.0.0/8"
BROKERS, CONTROLLER = (1, 2), 3
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

    def upgrade(self) -> None:
        """Stop it, and start Kafka 4.4.0 on its directory."""
        self.server.stop()
        self.server.version = KAFKA_44
        self.server.launch()
        self.server.wait_until_started()


class Cluster:
    """Three processes of Kafka 4.3.1 at first."""

    def __init__(self, home: Path) -> None:
        self.home = home
        at = {number: free_port() for number in (*BROKERS, CONTROLLER)}
        self.controller = self._node(CONTROLLER, at[CONTROLLER], at[CONTROLLER])
        self.brokers = tuple(self._node(number, at[number], at[CONTROLLER]) for number in BROKERS)

    def _node(self, number: int, port: int, controller: int) -> Node:
        home = self.home / f"node-{number}"
        home.mkdir()
        is_controller = port == controller
        text = server_properties(
            Ports(broker=port, controller=controller, http=0),
            process_roles="controller" if is_controller else "broker",
            node_id=str(number),
            listeners=f"{'CONTROLLER' if is_controller else 'SASL_PLAINTEXT'}://localhost:{port}",
            controlled_shutdown_enable="true",
        )
        if is_controller:
            kept = (line for line in text.splitlines() if not line.startswith(("inter.broker", "advertised")))
            text = "\n".join(kept) + "\n"
        else:
            text = with_properties(text, advertised_listeners=f"SASL_PLAINTEXT://localhost:{port}")
        return Node(number, port, KafkaServer(home, text, port=port, heap=HEAP))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The controller first."""
        return self.controller, *self.brokers

    def __enter__(self) -> "Cluster":
        try:
            self.controller.server.format(CLUSTER_ID, "--standalone", "--add-scram", ADMIN_SCRAM)
            for node in self.brokers:
                node.server.format(CLUSTER_ID)
            for node in self.nodes:
                node.server.launch()
            for node in self.nodes:
                node.server.wait_until_started()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node in reversed(self.nodes):
            if node.server.running:
                node.server.kill()

    def place(self, node: Node, user: str = "admin") -> tuple[str, ...]:
        """The flags that name a node."""
        flag = "--bootstrap-controller" if node is self.controller else "--bootstrap-server"
        return flag, f"localhost:{node.port}", "--command-config", str(client_properties(self.home, user))

    def generations(self) -> dict[str, list[dict[str, object]]]:
        """What `aclog status --json` is to say of the nodes."""
        return {
            "brokers": [{"nodeId": each.node_id, "version": each.generation} for each in self.brokers],
            "controllers": [{"nodeId": CONTROLLER, "version": self.controller.generation}],
        }


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


def creates_acls(cluster: Cluster, node: Node) -> bool:
    """Whether User:carol may create an ACL through a node."""

    async def ask() -> bool:
        security = client_security(client_properties(cluster.home, "carol"))
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
        self._process = process
        threading.Thread(target=self._read, name="follower", daemon=True).start()

    def _read(self) -> None:
        self._lines.extend(line.rstrip("\n") for line in self._process.stdout)

    def wait_for(self, headline: str) -> None:
        """Wait until a step is printed whose first line ends so."""
        wait_until(lambda: self._place(headline) is not None, lambda: (headline, self._lines))

    def rows(self, headline: str) -> list[str]:
        """What the step gives and takes."""
        place = self._place(headline)
        assert place is not None
        own = takewhile(lambda line: line.startswith("  "), self._lines[place + 1 :])
        return [line.strip() for line in own if not line.startswith("    ")]

    def _place(self, headline: str) -> int | None:
        return next((place for place, line in enumerate(self._lines) if line.endswith(headline)), None)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path) as found:
        yield found


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


def check_step(cluster: Cluster) -> None:
    """Compare what the nodes do, as clients see it, with what the commands say, over each kind of server."""
    written = {
        (broker.node_id, kind): writes(broker, topic(kind, broker))
        for broker in cluster.brokers
        for kind in ("alive", "closed")
    }
    for broker in cluster.brokers:  # the premise of this test, on real software
        assert written[broker.node_id, "alive"] is (broker.generation == "4.4")
        assert written[broker.node_id, "closed"] is (broker.generation == "4.3")
    for node in cluster.nodes:  # whichever node is asked, the controller decides
        assert creates_acls(cluster, node) is (cluster.controller.generation == "4.4")

    expected = cluster.generations()
    for node in cluster.nodes:
        place = cluster.place(node)
        status = wait_until(lambda place=place: stated(place, expected), lambda place=place: stated_now(place))
        check_status(cluster, status)
        check_decisions(cluster, place, written)
    check_doctor(cluster)


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
    if len(generations) == 1:
        assert (software["text"], differing) == (f"all nodes run Kafka {generations.pop()}", [])
        return
    [warning] = differing
    assert software["text"] in warning
    assert f"1 host of ACLs such as {RANGE} is a range, which Kafka 4.4 matches and Kafka 4.3 does not" in warning
    assert warning.endswith(": nodes decide the same request differently")


def check_decisions(cluster: Cluster, place: Sequence[str], written: Mapping[tuple[int, str], bool]) -> None:
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
    assert said.get(cluster.controller.generation, said.get(None)) is (cluster.controller.generation == "4.4")
    listed = aclog("acls", "list", *place).ok()
    assert ("have a CIDR range as host" in listed.err) is (generations != {"4.4"})
    assert ("which Kafka 4.3.1 never matches" in listed.err) is (generations == {"4.3"})


def check_doctor(cluster: Cluster) -> None:
    differs = len({node.generation for node in cluster.nodes}) > 1
    for node in (cluster.controller, cluster.brokers[0]):
        rows = map(json.loads, aclog("doctor", *cluster.place(node), "--format", "jsonl").ok().lines)
        [found] = [row for row in rows if row["check"] == "kafka"]
        assert found["level"] == ("warn" if differs else "ok")
        assert ("the nodes differ" in found["text"]) is differs


@pytest.mark.slow(120)
def test_what_is_printed_at_each_step_is_what_the_nodes_do(cluster: Cluster) -> None:
    prepare(cluster)
    command = [sys.executable, "-m", "aclog", "diff", "--follow", *cluster.place(cluster.controller), *GIVEN]
    with following(command) as process:
        follower = Follower(process)
        follower.wait_for("; stop with Ctrl-C")
        check_step(cluster)

        first, second = cluster.brokers
        steps = {
            cluster.controller: "the nodes differ: brokers 1, 2 run Kafka 4.3, controller 3 runs Kafka 4.4",
            first: "the nodes differ: broker 2 runs Kafka 4.3, broker 1 and controller 3 run Kafka 4.4",
            second: "all nodes run Kafka 4.4",
        }
        for node, headline in steps.items():
            node.upgrade()
            follower.wait_for(headline)
            check_step(cluster)
        by_carol = f"GAINED  User:carol: ALTER, DESCRIBE on CLUSTER, from {RANGE} (on Kafka 4.4 only)"
        assert follower.rows(steps[cluster.controller]) == [by_carol], "no broker runs it yet"
        assert set(follower.rows(steps[first])) == {
            by_carol,  # brokers decide some of it, too
            f"GAINED  User:alice: WRITE, DESCRIBE on TOPIC alive-*, from {RANGE} (on Kafka 4.4 only)",
            f"LOST  User:alice: WRITE on TOPIC closed-*, from {RANGE} (on Kafka 4.4 only)",
        }
        assert follower.rows(steps[second]) == ["no difference: every request is decided as before"]

        raised = run_tool(
            "org.apache.kafka.tools.FeatureCommand",
            *("--bootstrap-server", f"localhost:{first.port}"),
            *("--command-config", str(client_properties(cluster.home, "admin"))),
            *("upgrade", "--release-version", "4.4"),
            version=KAFKA_44,
        )
        assert raised.exit_code == 0, raised
        check_step(cluster)
        assert stated_now(cluster.place(first))["features"]["metadata.version"] == 33
        rule = ("--allow-principal", "User:zed", "--allow-host", "10.0.0.0/8", "--operation", "READ", "--topic", "new")
        assert aclog("acls", "add", *cluster.place(first), *rule).ok().err == ""
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0, process.stderr.read()
    for node in reversed(cluster.nodes):
        node.server.stop()
    verified = aclog("log", "verify", cluster.controller.server.log_directory).ok()
    assert (verified.lines[-1], [line for line in verified.err.splitlines() if "warning" in line]) == (
        "all is well",
        [],
    )
