"""Several controllers on one shared log in memory, on one event loop."""

import asyncio
import shutil
from contextlib import asynccontextmanager
from pathlib import Path

from attrs import evolve

from aclog.authorizer.standard import StandardAuthorizer
from aclog.config.node_config import HostPort, NodeConfig
from aclog.server.controller.topic_controller import TopicController
from tests.support.fakes.shared_log import SharedTopic
from tests.support.nodes.controllers import BOOTSTRAP, DIRECTORY_ID, directory_config
from tests.support.processes.waiting import SECONDS

VOTERS = {node: HostPort(host=f"c{node}", port=9093) for node in (1, 2, 3)}


def candidate_config(directory: Path, node_id: int) -> NodeConfig:
    """One of three controllers, as `aclog format` leaves its directory."""
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(BOOTSTRAP, directory / "bootstrap.checkpoint")
    return evolve(directory_config(directory), node_id=node_id, voters=VOTERS)


def candidate(topic: SharedTopic, directory: Path, node_id: int, **options) -> TopicController:
    """Not started."""
    authorizer = StandardAuthorizer()
    authorizer.configure({"super.users": "User:admin"})
    return TopicController(
        config=candidate_config(directory, node_id),
        cluster_id="a-cluster",
        directory_id=DIRECTORY_ID,
        authorizer=authorizer,
        advertised={"CONTROLLER": VOTERS[node_id]},
        shared=topic.of(node_id),
        **options,
    )


async def until(condition, seconds=SECONDS):
    """Wait for what must come true."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.001)


@asynccontextmanager
async def three(root: Path, topic: SharedTopic, **options):
    """Three controllers by id, the first one active."""
    nodes = {node: candidate(topic, root / f"c{node}", node, **options) for node in VOTERS}
    starting = [asyncio.create_task(node.start()) for node in nodes.values()]
    try:
        await until(lambda: set(topic.candidates) == set(nodes) or any(map(_failed, starting)))
        if set(topic.candidates) == set(nodes):
            topic.elect(1)
        await asyncio.gather(*starting)
        await until(lambda: nodes[1].active)
        yield nodes
    finally:
        for node in nodes.values():
            await node.stop()


def _failed(task: "asyncio.Task[None]") -> bool:
    return task.done() and task.exception() is not None
