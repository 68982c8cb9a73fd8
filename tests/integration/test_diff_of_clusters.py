"""`aclog diff --map-names` of two running clusters: a real Kafka 4.3.1, and an aclog with the names of its mirror."""

import json
from pathlib import Path

from tests.support.cli.command import aclog
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.tools import client_properties
from tests.support.nodes.aclog_node import AclogNode
from tests.support.nodes.server_properties import Ports

ADD = ("--allow-principal", "User:app", "--operation", "DESCRIBE")


def test_a_mirror_is_equal_but_for_what_was_forgotten(tmp_path: Path) -> None:
    source, target = Ports.free(), Ports.free()
    config = client_properties(tmp_path, "admin")
    with RealNode(tmp_path / "kafka", source).format(), AclogNode(tmp_path / "aclog", target).format():
        first = ("--bootstrap-server", f"localhost:{source.broker}", "--command-config", config)
        second = ("--to-bootstrap-server", f"localhost:{target.broker}", "--to-command-config", config)

        def add(ports: Ports, *arguments: str) -> None:
            place = ("--bootstrap-server", f"localhost:{ports.broker}", "--command-config", config)
            aclog("acls", "add", *place, *ADD, *arguments).ok()

        def mapped(*flags: str) -> tuple[int, list[dict[str, object]]]:
            settings = ("--super-users", "User:admin")  # a Kafka hides the value
            result = aclog("diff", *first, *second, *settings, "--map-names", "=dc1.", "--format", "jsonl", *flags)
            return result.code, [json.loads(line) for line in result.lines]

        add(source, "--topic", "orders")
        add(source, "--topic", "pay.", "--resource-pattern-type", "prefixed")
        add(source, "--cluster")
        add(target, "--topic", "dc1.orders")
        add(target, "--cluster")
        code, (lost,) = mapped()
        assert code == 1
        assert (lost["change"], lost["resourceType"]) == ("LOST", "TOPIC")
        assert lost["names"] == [{"prefix": "dc1.pay.", "exceptPrefixes": [], "exceptLiterals": []}]
        add(target, "--topic", "dc1.pay.", "--resource-pattern-type", "prefixed")
        assert mapped() == (0, [])
        # Without the map every name differs.
        assert aclog("check", "equal", *first, *second).code == 1
