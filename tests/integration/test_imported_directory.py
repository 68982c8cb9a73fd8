"""A directory that kafka-storage formatted and `aclog import` filled, and a real Kafka that starts on it."""

import json
from pathlib import Path

import pytest

from aclog.snapshots.publisher import recover
from tests.support.builders.acls import acl_row
from tests.support.cli.command import aclog
from tests.support.kafka.jvm import run_tool
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.server import AdminClient
from tests.support.nodes.server_properties import Ports

pytestmark = pytest.mark.server
MANY = 100_000
"""More than one batch of 8 MiB, so a transaction."""


@pytest.mark.slow(15)
def test_a_real_kafka_starts_on_an_imported_directory(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "kafka", Ports.free(), heap="800m").format()
    rows = [acl_row(f"{'n' * 60}-{number}") for number in range(MANY)]
    (tmp_path / "rows").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    log = node.log_directory
    assert "belongs to a Kafka node" in aclog("import", tmp_path / "rows", "--log", log).complaint
    aclog("import", tmp_path / "rows", "--log", log, "--force").ok()
    ids = {rule.acl: rule.id for rule in recover(log).image.acls}
    assert len(ids) == MANY
    segments = sorted(log.glob("*.log"))
    assert len(segments) > 1
    printed = run_tool(
        "org.apache.kafka.tools.DumpLogSegments",
        "--cluster-metadata-decoder",
        "--files",
        ",".join(map(str, segments)),
    )
    assert printed.out.count('"type":"ACCESS_CONTROL_ENTRY_RECORD"') == MANY
    with node, AdminClient(node.ports.broker) as admin:
        assert {row["resourceName"] for row in admin.acls()} == {row["resourceName"] for row in rows}
        assert [user["user"] for user in admin.scram()] == ["admin"]
        admin("createAcls", acls=[acl_row("later")])
    image = recover(log).image
    assert len(image.acls) == MANY + 1
    assert {rule.acl: rule.id for rule in image.acls}.items() >= ids.items()
