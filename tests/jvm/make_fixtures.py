"""Makes the metadata logs of other Kafkas under tests/data, once; what they hold is committed.

    python -m tests.jvm.make_fixtures 4.1.1 tests/data/kafka-4.1.1
    python -m tests.jvm.make_fixtures 3.9.1 tests/data/kafka-3.9.1

A real Kafka of that version in KRaft mode is formatted, started, given ACLs of every kind, SCRAM users, delegation
tokens, topics and configurations, restarted, given more, and stopped. Beside its data lie, under expected/, what its
own DescribeAcls, DescribeUserScramCredentials and DescribeDelegationToken answered at the end and what its own
DumpLogSegments prints of each file. Ids, salts and times differ from run to run.
"""

import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.support.kafka.jvm import run_tool
from tests.support.kafka.server import AdminClient, KafkaError, KafkaServer, free_port

CLUSTER_ID = "b3RoZXIta2Fma2FzLTAwMQ"
SECRET = "fixture-secret"
RECORD_BYTES = 3000
"""A checkpoint after this many bytes of records."""
OPERATIONS = {
    "TOPIC": ["READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "ALL"],
    "GROUP": ["READ", "DELETE", "DESCRIBE", "ALL"],
    "CLUSTER": ["CREATE", "ALTER", "CLUSTER_ACTION", "IDEMPOTENT_WRITE", "ALL"],
    "TRANSACTIONAL_ID": ["WRITE", "DESCRIBE", "ALL"],
    "DELEGATION_TOKEN": ["DESCRIBE"],
    "USER": ["CREATE_TOKENS", "DESCRIBE_TOKENS"],
}
NAMES = ["*", "orders", "orders.eu", "pay-", "päy.ments", "結", "😀-smile", "a", "team.one.", "x" * 249]
PRINCIPALS = ["User:alice", "User:bob", "User:*", "User:CN=carol,OU=x,O=y", "Group:dev", "User:a:b"]
HOSTS = ["*", "*", "127.0.0.1", "10.1.2.3", "2001:db8:0:0:0:0:0:1"]


def properties(version: str, port: int, controller_port: int) -> str:
    """server.properties as the 4.3.1 fixtures have it; 3.9 with a static quorum, which is kraft.version 0."""
    places = f"SASL_PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller_port}"
    users = " ".join(f'user_{user}="{user}-secret"' for user in ("admin", "alice", "bob"))
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
    login = 'required username="admin" password="admin-secret"'
    quorum = (
        f"controller.quorum.voters=1@localhost:{controller_port}"
        if version.startswith("3.")
        else f"controller.quorum.bootstrap.servers=localhost:{controller_port}"
    )
    return f"""\
process.roles=broker,controller
node.id=1
{quorum}
listeners={places}
advertised.listeners={places if not version.startswith("3.") else places.partition(",")[0]}
controller.listener.names=CONTROLLER
listener.security.protocol.map=SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT
inter.broker.listener.name=SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.controller.sasl.enabled.mechanisms=PLAIN
sasl.mechanism.controller.protocol=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={plain} {login} {users};
listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config={scram} {login} tokenauth="true";
listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config={scram} {login} tokenauth="true";
listener.name.controller.plain.sasl.jaas.config={plain} {login} user_admin="admin-secret";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin
{"delegation.token.master.key" if version.startswith("3.") else "delegation.token.secret.key"}={SECRET}
log.dirs=data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
internal.metadata.log.segment.bytes=16384
metadata.log.segment.min.bytes=16384
metadata.log.segment.bytes={16384 if version.startswith("3.") else 8388608}
metadata.log.max.record.bytes.between.snapshots={RECORD_BYTES}
metadata.max.idle.interval.ms=3000
"""


def rules(rng: random.Random, count: int) -> list[dict[str, str]]:
    """Rules of every resource type, literal and prefixed, allow and deny, no two alike."""
    found = {}
    while len(found) < count:
        kind = rng.choice([*OPERATIONS, "TOPIC", "TOPIC", "GROUP"])
        prefixed = kind != "CLUSTER" and rng.random() < 0.4
        row = {
            "resourceType": kind,
            "resourceName": "kafka-cluster" if kind == "CLUSTER" else rng.choice(NAMES),
            "patternType": "PREFIXED" if prefixed else "LITERAL",
            "principal": rng.choice(PRINCIPALS),
            "host": rng.choice(HOSTS),
            "operation": rng.choice(OPERATIONS[kind]),
            "permissionType": rng.choice(["ALLOW", "ALLOW", "DENY"]),
        }
        found.setdefault(tuple(row.values()), row)
    return list(found.values())


def first_half(admin: AdminClient, made: list[dict[str, str]]) -> None:
    """ACLs one by one and many at once, some deleted; SCRAM users; topics and a configuration."""
    admin("createAcls", acls=made[:1])
    admin("createAcls", acls=made[1:30])
    for row in made[30:35]:
        admin("createAcls", acls=[row])
    admin("deleteAcls", acls=made[3:9])
    sha256, sha512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
    admin("alterScram", users=[{"user": "alice", "mechanism": sha256, "iterations": 4096, "password": "a1"}])
    admin("alterScram", users=[{"user": "alice", "mechanism": sha512, "iterations": 8192, "password": "a2"}])
    admin("alterScram", users=[{"user": "bøb", "mechanism": sha512, "iterations": 4096, "password": "b1"}])
    admin("alterScram", users=[{"user": "gone", "mechanism": sha256, "iterations": 4096, "password": "g1"}])
    admin("createTopic", topic="orders")
    admin("createTopic", topic="gone")
    admin("alterTopic", topic="orders", name="retention.ms", value="60000")


def patiently(admin: AdminClient, op: str, **arguments: object) -> None:
    """Again until it works: a new token is known only when it has been published."""
    deadline = time.monotonic() + 20
    while True:
        try:
            admin(op, **arguments)
        except KafkaError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def tokens(port: int, admin: AdminClient) -> None:
    """Tokens of two requesters: one renewed, one expired at once, one for another owner."""
    kept = admin("createToken", renewers=["User:bob"], maxLife=7200000)
    gone = admin("createToken")
    admin("createToken", owner="User:bob", renewers=["User:alice", "User:bob"])
    patiently(admin, "renewToken", hmac=kept["hmac"], period=3600000)
    patiently(admin, "expireToken", hmac=gone["hmac"], period=-1)
    with AdminClient(port, "alice") as alice:
        alice("createToken", maxLife=3600000)


def second_half(admin: AdminClient, made: list[dict[str, str]]) -> None:
    """After the restart: more of everything, and deletions of what came before it."""
    admin("createAcls", acls=made[35:])
    admin("deleteAcls", acls=[made[0], *made[20:24], made[40]])
    admin("createAcls", acls=[made[0]])
    admin("alterScram", users=[{"user": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 5000, "password": "a3"}])
    admin("alterScram", users=[{"user": "gone", "mechanism": "SCRAM-SHA-256"}])
    admin("deleteTopic", topic="gone")


def wait_for_checkpoints(directory: Path, count: int) -> None:
    """Checkpoints are written beside the requests, not with them."""
    deadline = time.monotonic() + 30
    while len(list(directory.glob("*.checkpoint"))) < count and time.monotonic() < deadline:
        time.sleep(0.5)


def make(version: str, home: Path) -> dict[str, list]:
    """Run the Kafka; what it described at the end."""
    port, controller_port = free_port(), free_port()
    server = KafkaServer(home, properties(version, port, controller_port), port=port, version=version)
    dynamic = () if version.startswith("3.") else ("--standalone",)
    server.format(CLUSTER_ID, *dynamic, "--add-scram", "SCRAM-SHA-256=[name=admin,password=admin-secret]")
    made = rules(random.Random(411), 70)
    with server, AdminClient(port) as admin:
        first_half(admin, made)
        tokens(port, admin)
        wait_for_checkpoints(server.log_directory, 2)
    with server, AdminClient(port) as admin:
        second_half(admin, made)
        wait_for_checkpoints(server.log_directory, 3)
        return {"acls": admin.acls(), "scram": admin.scram(), "tokens": admin.tokens()}


def keep(version: str, home: Path, described: dict[str, list], out: Path) -> None:
    """Copy what is worth keeping, with the dump of each file."""
    data, expected = home / "data", out / "expected"
    shutil.rmtree(out, ignore_errors=True)
    expected.mkdir(parents=True)
    for name in ("meta.properties", "bootstrap.checkpoint"):
        if (data / name).exists():
            shutil.copyfile(data / name, out / name)
    shutil.copytree(data / "__cluster_metadata-0", out / "__cluster_metadata-0", copy_function=shutil.copyfile)
    shutil.copy(home / "server.properties", expected / "server.properties")
    for name, rows in described.items():
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        (expected / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    log = out / "__cluster_metadata-0"
    dumps = [dump(version, path) for path in sorted([*log.glob("*.log"), *log.glob("*.checkpoint")])]
    (expected / "dump-log.txt").write_text("\n".join(dumps), encoding="utf-8")


def dump(version: str, path: Path) -> str:
    """What that version's own DumpLogSegments prints of a file, without the directory's name."""
    tool = "kafka.tools.DumpLogSegments"  # org.apache.kafka.tools from 4.2 on
    done = run_tool(tool, "--cluster-metadata-decoder", "--files", str(path), version=version)
    return f"##### {path.name} rc={done.exit_code}\n{done.out}".replace(f"{path.parent}/", "")


def main() -> None:
    """Make one fixture."""
    version, out = sys.argv[1], Path(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="aclog-fixture-") as home:
        keep(version, Path(home), make(version, Path(home)), out)


if __name__ == "__main__":
    main()
