"""Records the znodes of users and tokens that a real Kafka 3.9 writes: tests/data/zookeeper/kafka-3.9.1.json.

    python -m tests.zkstore.record_nodes

The descriptions by Kafka's Admin client are recorded too, so that decoding can be checked without a broker.
"""

import json
import tempfile
from pathlib import Path

from kazoo.client import KazooClient

from tests.support.kafka.jvm import ROOT, run_tool
from tests.support.kafka.server import AdminClient
from tests.support.kafka.tools import client_properties
from tests.support.zookeeper.kafka import SECRET, ZooKeeperKafka
from tests.support.zookeeper.server import KAFKA_39, ZooKeeperServer, zookeeper_client

RECORDED = ROOT / "tests" / "data" / "zookeeper" / "kafka-3.9.1.json"
USERS = (
    "sam", "a b", "a/b", "ünï", "p%q+r*s~t", "CN=x,OU=y", "🔑", 'qu"o\\te', "<default>", "a&b=c:d;e@f", "-_.!~*'()",
    "tab\tx",
)  # fmt: skip
OWNERS = (None, "User:ow ner", "Group:g/1")
RENEWERS = ["User:a b", "User:x:y", 'User:ü/ñ,z"']


def main() -> None:
    """Run a real Kafka, and record what it writes."""
    home = Path(tempfile.mkdtemp(prefix="aclog-zookeeper-"))
    with ZooKeeperServer(home / "zookeeper") as server, ZooKeeperKafka(home / "kafka", server.connect) as kafka:
        with AdminClient(kafka.port) as admin:
            write(admin)
            quotas(home, kafka.port)
            described = {"scram": admin.scram(), "tokens": admin.tokens()}
        with zookeeper_client(server.connect) as client:
            nodes = {
                path: data.decode() for top in ("/config", "/delegation_token") for path, data in tree(client, top)
            }
    RECORDED.parent.mkdir(parents=True, exist_ok=True)
    whole = {"secret": SECRET, "nodes": nodes, "described": described}
    RECORDED.write_text(json.dumps(whole, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def write(admin: AdminClient) -> None:
    """Create users, one with two mechanisms and one deleted again; and tokens, one renewed and one expired again."""
    for user in (*USERS, "gone"):
        admin("alterScram", users=[{"user": user, "mechanism": "SCRAM-SHA-256", "iterations": 4096, "password": "pw"}])
    admin("alterScram", users=[{"user": "sam", "mechanism": "SCRAM-SHA-512", "iterations": 8192, "password": "pw"}])
    admin("alterScram", users=[{"user": "gone", "mechanism": "SCRAM-SHA-256"}])
    made = [
        admin("createToken", renewers=RENEWERS, maxLife=3_600_000, **({"owner": owner} if owner else {}))
        for owner in (*OWNERS, None)
    ]
    admin("renewToken", hmac=made[0]["hmac"], period=60_000)
    admin("expireToken", hmac=made[-1]["hmac"], period=-1)


def quotas(home: Path, port: int) -> None:
    """Create quotas of a user, of the default entity, and of a user's client id."""
    config = client_properties(home, "admin")
    for entity in (("--entity-name", "sam"), ("--entity-default",), ("--entity-name", "sam", "--entity-type", "clients",
                   "--entity-name", "c 1")):  # fmt: skip
        done = run_tool(
            "kafka.admin.ConfigCommand", "--bootstrap-server", f"localhost:{port}", "--command-config", str(config),
            "--alter", "--add-config", "producer_byte_rate=1024", "--entity-type", "users", *entity, version=KAFKA_39,
        )  # fmt: skip
        assert done.exit_code == 0, done


def tree(client: KazooClient, path: str) -> list[tuple[str, bytes]]:
    """Return all znodes with data, in order of their paths."""
    data, _ = client.get(path)
    below = [found for name in sorted(client.get_children(path)) for found in tree(client, f"{path}/{name}")]
    return [(path, data), *below] if data else below


if __name__ == "__main__":
    main()
