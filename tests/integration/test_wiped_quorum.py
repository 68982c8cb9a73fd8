"""A quorum that is wiped and formatted again under the same cluster id, while a mirror or a broker follows it."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.test_sync import LOGIN, NODES
from tests.support.builders.acls import acl_row
from tests.support.cli.command import aclog
from tests.support.kafka.server import AdminClient
from tests.support.nodes.cluster import Cluster
from tests.support.nodes.server_properties import PLAIN, Ports, password
from tests.support.processes.waiting import SECONDS, wait_until

ROOT = Path(__file__).parents[2]
LOST = "has another batch than was committed"
OR = ("does not have the log that was committed", LOST)
"""What is said as long as the new log is shorter than the old one."""


def flags(home: Path, ports: Ports) -> list[str]:
    config = home / "admin.properties"
    config.write_text(LOGIN.format(PLAIN, f'username="admin" password="{password("admin")}"'), encoding="utf-8")
    return ["--bootstrap-controller", f"localhost:{ports.controller}", "--command-config", str(config)]


@contextmanager
def mirroring(place: list[str], directory: Path) -> Iterator[subprocess.Popen]:
    command = [sys.executable, "-m", "aclog", "mirror", *place, "--to", str(directory)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def listed(directory: Path) -> int:
    found = aclog("acls", "list", "--log", directory, "--format", "jsonl")
    return len(found.lines) if found.code == 0 else -1


@pytest.mark.slow(25)
@pytest.mark.parametrize("kind", NODES)
def test_a_live_mirror_ends(kind: str, tmp_path: Path) -> None:
    """The new log has a lower epoch, and grows beyond the end of the old one."""
    ports, directory = Ports.free(), tmp_path / "mirror"
    node = NODES[kind](tmp_path / "node", ports).format().start()
    try:
        node.stop()
        node.start()
        with AdminClient(ports.broker) as client, mirroring(flags(tmp_path, ports), directory) as process:
            for number in range(10):
                client("createAcls", acls=[acl_row(f"topic-{number}")])
            wait_until(lambda: listed(directory) == 10, lambda: listed(directory))
            node.kill()
            shutil.rmtree(tmp_path / "node" / "data")
            node.format().start()
            with AdminClient(ports.broker) as other:
                other("createAcls", acls=[acl_row(f"other-{number}") for number in range(100)])
            _, said = process.communicate(timeout=SECONDS)
        again = aclog("mirror", *flags(tmp_path, ports), "--to", directory)
    finally:
        node.kill()
    assert process.returncode == 2
    complaint = said.splitlines()[-1]
    assert f"localhost:{ports.controller}: the leader of epoch 1 {LOST}" in complaint.replace(*OR)
    assert "find out what was lost" in complaint
    assert (again.code, LOST in again.complaint.replace(*OR)) == (2, True), "nor does it begin"
    assert listed(directory) == 10


@pytest.mark.slow(10)
def test_a_broker_stops(tmp_path: Path) -> None:
    """It must not go on deciding by rules that its cluster no longer has."""
    with Cluster(tmp_path) as cluster:
        broker = cluster.add_broker()
        cluster.controller.format().start()
        broker.start()
        cluster.controller.kill()
        shutil.rmtree(cluster.controller.home / "data")
        cluster.controller.format().start()
        wait_until(lambda: not broker.running, lambda: broker.output)
        assert LOST in broker.output.replace(*OR)
