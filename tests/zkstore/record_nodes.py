"""Records the nodes that a real Kafka 3.9 writes for users and tokens: tests/data/zookeeper/kafka-3.9.1.json.

    python -m tests.zkstore.record_nodes

Beside each node stands what Kafka's own Admin described, so that reading them is checked without a broker.
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
    """Have a real Kafka write, and keep what it wrote."""
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
    """Users, one with two mechanisms, one that came and went; tokens, one renewed, one that came and went."""
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
    """Quotas of a user, of everybody, and of a user's client."""
    config = client_properties(home, "admin")
    for entity in (("--entity-name", "sam"), ("--entity-default",), ("--entity-name", "sam", "--entity-type", "clients",
                   "--entity-name", "c 1")):  # fmt: skip
        done = run_tool(
            "kafka.admin.ConfigCommand", "--bootstrap-server", f"localhost:{port}", "--command-config", str(config),
            "--alter", "--add-config", "producer_byte_rate=1024", "--entity-type", "users", *entity, version=KAFKA_39,
        )  # fmt: skip
        assert done.exit_code == 0, done


def tree(client: KazooClient, path: str) -> list[tuple[str, bytes]]:
    """All nodes with data, in order of their paths."""
    data, _ = client.get(path)
    below = [found for name in sorted(client.get_children(path)) for found in tree(client, f"{path}/{name}")]
    return [(path, data), *below] if data else below


if __name__ == "__main__":
    main()
