"""Changes per second of a controller whose log is a topic of a real Kafka, vs. that Kafka's own controller.

One Kafka 4.3.1, controller and broker combined, holds the topic. The same client sends CreateAcls of one ACL to our
controller and to Kafka's alternately, and each connection waits for its response. On a topic, each acknowledged ACL is
in a committed transaction of Kafka; ACLs that wait at the same time share one.
"""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from aclog.metalog.topiclog import TopicSettings
from aclog.metalog.topiclog.partition import written_end
from benchmarks.report import Row
from benchmarks.serve import CLIENTS, Rate, creations
from tests.support.kafka.real_node import RealNode
from tests.support.kafka.topics import client_properties
from tests.support.nodes.server_properties import Ports
from tests.support.nodes.topic_cluster import CONTROLLERS, TopicCluster

TOPIC = "__aclog_metadata"


def _end(kafka: Ports) -> int:
    """Return the end offset of the topic; it counts records, and one marker per transaction."""
    settings = TopicSettings(topic=TOPIC, properties=client_properties(f"localhost:{kafka.broker}"))
    return written_end(settings, threading.Event(), 60.0)


def _rates(ours: Ports, kafka: Ports, seconds: float) -> Iterator[tuple[int, Rate, Rate, float]]:
    """Yield, by number of clients: our rate, Kafka's, and the changes per transaction of ours."""
    for ports in (ours, kafka):
        asyncio.run(creations(ports.controller, 4, seconds, "warm"))
    for clients in CLIENTS:
        before = _end(kafka)
        mine = asyncio.run(creations(ours.controller, clients, seconds, f"t{clients}"))
        offsets = _end(kafka) - before
        theirs = asyncio.run(creations(kafka.controller, clients, seconds, f"t{clients}"))
        yield clients, mine, theirs, mine.count / max(offsets - mine.count, 1)


def run(scratch: Path, seconds: float) -> Iterator[Row]:
    """Yield rows of acknowledged creations per second by number of clients, and of changes per transaction."""
    directory, kafka = Path(tempfile.mkdtemp(dir=scratch)), Ports.free()
    try:
        with ExitStack() as stack:
            stack.enter_context(RealNode.in_production(directory / "kafka", kafka).format())
            servers = dict.fromkeys(CONTROLLERS, f"localhost:{kafka.broker}")
            cluster = stack.enter_context(TopicCluster(directory / "aclog", None, servers, brokers=0))
            active = cluster.controllers[CONTROLLERS[0]]
            active.spawn()
            cluster.wait_active([CONTROLLERS[0]])
            for clients, mine, theirs, batched in _rates(active.ports, kafka, seconds):
                what = f"CreateAcls acknowledged per second, log on a topic, {clients} clients"
                yield Row(what=what, ours=mine.per_second, theirs=theirs.per_second, unit="/s", more_is_better=True)
                yield Row(what=f"{what}: p99", ours=mine.p99_ms, theirs=theirs.p99_ms, unit="ms")
                yield Row(what=f"changes per transaction, {clients} clients", ours=batched, unit="changes")
    finally:
        shutil.rmtree(directory)
