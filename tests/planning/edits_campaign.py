"""`make campaign-edits`: a consumer on a real Kafka while the rules of its user are edited, and what it was denied.

    python -m tests.planning.edits_campaign --edits 60 --out benchmarks/results/edits.txt

The edits are made by `aclog plan` and `aclog apply`, and then as others make them: all rules of the user are deleted,
and those that are wanted are created, by Kafka's own Admin client. A Kafka 3.9 has its rules in a ZooKeeper, which are
edited there, too. The Kafka logs each decision, and is what counts.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path

from attrs import frozen

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from tests.support.builders.acls import acl
from tests.support.kafka.jvm import KAFKA_39, KAFKA_VERSION
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.running_consumer import RunningConsumer, add_user
from tests.support.kafka.server import ADMIN, AdminClient
from tests.support.nodes.server_properties import Ports
from tests.support.planning.edits import edits, reads
from tests.support.planning.estate import Estate
from tests.support.zookeeper.kafka import ZooKeeperKafka
from tests.support.zookeeper.server import ZooKeeperServer

USER, TOPIC = "ann", "ann-1"
OTHERS = 300
"""Rules of somebody else."""
ROUNDS = 20
"""Of the consumer after each edit."""


@frozen(kw_only=True)
class Counted:
    """What happened during the edits of one way."""

    seconds: float
    rounds: int
    refused: int
    """What the consumer was told."""
    allowed: int
    denied: int
    """What the broker logged of the user."""


@frozen(kw_only=True)
class Kafka:
    """A running Kafka with the user and the topic, whose rules are edited."""

    home: Path
    """Where sources of rules are, and how one logs in."""
    port: int
    output: Path
    """What the Kafka prints, every decision too."""
    admin: AdminClient
    store: str | None = None
    """Its ZooKeeper."""

    @property
    def bootstrap(self) -> str:
        """Its broker."""
        return f"localhost:{self.port}"

    @property
    def broker(self) -> tuple[object, ...]:
        """The flags that name it by its broker."""
        login = self.home / "admin.properties"
        login.write_text("".join(f"{key}={value}\n".replace("{user}", "admin") for key, value in ADMIN.items()))
        return "--bootstrap-server", self.bootstrap, "--command-config", login

    @property
    def zookeeper(self) -> tuple[object, ...]:
        """The flags that name its ZooKeeper."""
        return "--authorizer-properties", f"zookeeper.connect={self.store}"

    def prepare(self) -> None:
        """Make the topic, the user, and rules of others."""
        others = Estate(self.home / "others", self.broker)
        others.wants(*(acl(f"other-{number}", "User:other") for number in range(OTHERS)))
        others.bring()
        add_user(self.bootstrap, USER)
        self.admin("createTopic", topic=TOPIC)

    def count_all(self, number: int) -> dict[str, Counted]:
        """Make so many edits in each way."""
        ways = {"plan and apply": self.broker} | ({} if self.store is None else {"in ZooKeeper": self.zookeeper})
        found = {}
        for name, place in ways.items():
            source = Estate(self.home / name, place)

            def planned(wanted: Sequence[StandardAcl], source: Estate = source) -> None:
                source.wants(*wanted)
                source.bring("--no-allow-everyone-if-no-acl-found")

            planned(reads(USER, *range(1, 6)))
            found[name] = self.count(number, planned)
            source.wants()
            source.bring("--max-deletes", "100%", "--no-allow-everyone-if-no-acl-found")
        self.replaced(reads(USER, *range(1, 6)))
        return {**found, "delete, then create": self.count(number, self.replaced)}

    def replaced(self, wanted: Sequence[StandardAcl]) -> None:
        """Edit as others do."""
        there = [row for row in self.admin("describeAcls") if row["principal"] == f"User:{USER}"]
        if there:
            self.admin("deleteAcls", acls=there)
        self.admin("createAcls", acls=[StandardAclWithId(id=None, acl=each).to_dict() for each in wanted])

    def decided(self, how: str) -> int:
        """How often the broker has allowed or denied the user something."""
        return self.output.read_text(encoding="utf-8", errors="replace").count(f"Principal = User:{USER} is {how} ")

    def count(self, number: int, edit: Callable[[Sequence[StandardAcl]], None]) -> Counted:
        """Make edits under a consumer."""
        begin, allowed, denied = time.monotonic(), self.decided("Allowed"), self.decided("Denied")
        with RunningConsumer(self.bootstrap, USER, TOPIC, TOPIC) as consumer:
            consumer.wait_for_rounds(ROUNDS)
            for wanted in islice(cycle(edits(USER)), number):
                edit(wanted)
                consumer.wait_for_rounds(ROUNDS)
        return Counted(
            seconds=time.monotonic() - begin,
            rounds=consumer.rounds,
            refused=len(consumer.refusals),
            allowed=self.decided("Allowed") - allowed,
            denied=self.decided("Denied") - denied,
        )


def run(number: int, home: Path) -> dict[str, Counted]:
    """Make edits on a Kafka with a metadata log."""
    node = RealNode(home / "kafka", Ports.free()).format()
    node.log_every_decision()
    with node, AdminClient(node.ports.broker) as admin:
        kafka = Kafka(home=home, port=node.ports.broker, output=node.home / "server.log", admin=admin)
        kafka.prepare()
        return kafka.count_all(number)


def run_with_zookeeper(number: int, home: Path) -> dict[str, Counted]:
    """Make edits on a Kafka that keeps its rules in a ZooKeeper."""
    with ZooKeeperServer(home / "zookeeper") as store:
        broker = ZooKeeperKafka(home / "kafka", store.connect)
        broker.audit_level = "trace"
        with broker, AdminClient(broker.port) as admin:
            kafka = Kafka(home=home, port=broker.port, output=broker.output, admin=admin, store=store.connect)
            kafka.prepare()
            return kafka.count_all(number)


def report(version: str, number: int, counted: dict[str, Counted]) -> str:
    """Return the figures as text."""
    rows: dict[str, Callable[[Counted], int]] = {
        "rounds of read and commit": lambda each: each.rounds,
        "refusals that it was told": lambda each: each.refused,
        "decisions: allowed": lambda each: each.allowed,
        "decisions: denied": lambda each: each.denied,
        "seconds": lambda each: round(each.seconds),
    }
    lines = [
        f"A consumer on Kafka {version} through {number} edits of its user's rules, beside {OTHERS} others",
        f"{'':<27}" + "".join(f"{name:>21}" for name in counted),
        *(f"{what:<27}" + "".join(f"{of(each):>21,}" for each in counted.values()) for what, of in rows.items()),
    ]
    return "\n".join([*lines, ""])


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=int, default=60)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    texts, refused = [], 0
    for version, campaign in ((KAFKA_VERSION, run), (KAFKA_39, run_with_zookeeper)):
        with tempfile.TemporaryDirectory(prefix="aclog-edits-") as home:
            counted = campaign(options.edits, Path(home))
        texts.append(report(version, options.edits, counted))
        print(texts[-1], flush=True)
        *planned, _ = counted.values()
        refused += sum(each.denied + each.refused for each in planned)
    if options.out is not None:
        options.out.write_text("\n".join(texts), encoding="utf-8")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
