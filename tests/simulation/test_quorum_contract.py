"""The modelled quorum of the simulated cluster responds to observers as a real one does, script by script."""

import asyncio
import json
import os
import subprocess
import sys
import time

import pytest

from aclog.client.connection import connect
from tests.simulation.quorum_contract import SCRIPTS, Voters
from tests.support.builders.acls import acl_row
from tests.support.kafka.quorum import KafkaQuorum
from tests.support.kafka.server import AdminClient
from tests.support.nodes.acl_client import login
from tests.support.nodes.server_properties import CLUSTER_ID

QUIET_AND_SHORT = {
    "metadata.max.idle.interval.ms": "0",
    "controller.quorum.fetch.timeout.ms": "60000",
    "metadata.log.max.record.bytes.between.snapshots": "10000",
    "internal.metadata.log.segment.bytes": "20000",
    "internal.metadata.max.batch.size.in.bytes": "8192",
    "metadata.max.retention.bytes": "20000",
}
"""Nothing is written but what a script writes, the leader stays, and its log is trimmed soon."""
_MANY = 20


def of_model():
    """What each script has observed on the model, in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.simulation.quorum_contract"]
    run = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


class Rules:
    """Creates rules that were not there before."""

    def __init__(self, admin: AdminClient) -> None:
        self._admin, self._made = admin, 0

    def __call__(self, count: int) -> None:
        numbers = range(self._made, self._made + count)
        self._made += count
        self._admin("createAcls", acls=[acl_row(f"contract-{number}-" + "x" * 150) for number in numbers])


async def of_kafka(kafka: KafkaQuorum, rules: Rules):
    epoch, leader = kafka.leader().quorum_state()

    async def write(count: int) -> None:
        await asyncio.to_thread(rules, count)

    async def trim() -> None:
        while (await voters.end())[1] == 0:
            await write(_MANY)

    voters = Voters(
        cluster_id=CLUSTER_ID,
        leader=leader,
        epoch=epoch,
        follower=next(node.node_id for node in kafka.nodes if node.node_id != leader),
        connect=lambda node: connect(kafka.node(node).controller, login("admin"), client_id="contract"),
        write=write,
        trim=trim,
        now=time.monotonic,
    )
    try:
        return {name: await script(voters) for name, script in SCRIPTS.items()}
    finally:
        await voters.close()


@pytest.mark.server
@pytest.mark.slow(25)
def test_a_real_quorum_does_the_same(tmp_path):
    with (
        KafkaQuorum(tmp_path / "kafka", changes=QUIET_AND_SHORT) as kafka,
        AdminClient(kafka.bootstrap) as admin,
    ):
        before = kafka.leader().quorum_state()
        seen = json.loads(json.dumps(asyncio.run(of_kafka(kafka, Rules(admin)))))
        assert kafka.leader().quorum_state() == before
    expected = of_model()
    assert list(seen) == list(expected)
    assert {name: each for name, each in seen.items() if each != expected[name]} == {}
