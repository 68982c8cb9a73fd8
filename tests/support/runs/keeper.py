"""A process that keeps one server for all workers of a test run.

    python -m tests.support.runs.keeper KIND DIRECTORY PID

It starts the server under DIRECTORY/KIND and writes DIRECTORY/KIND.json once the server is ready. It stops it on
SIGTERM, or once process PID, the run's controller, has ended: a run that was killed leaves no server behind.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import psutil

from tests.support.kafka.quorum import KafkaQuorum
from tests.support.zookeeper.server import ZooKeeperServer

LOOK_SECONDS = 0.5


@contextmanager
def kafka(home: Path) -> Iterator[dict[str, object]]:
    """One node, a broker and a controller."""
    with KafkaQuorum(home, nodes=1) as quorum:
        yield {"broker": quorum.nodes[0].ports.broker, "controller": quorum.nodes[0].ports.controller}


@contextmanager
def zookeeper(home: Path) -> Iterator[dict[str, object]]:
    """One standalone server."""
    with ZooKeeperServer(home) as server:
        yield {"connect": server.connect}


KINDS: dict[str, Callable[[Path], AbstractContextManager[dict[str, object]]]] = {
    "kafka": kafka,
    "zookeeper": zookeeper,
}


def lives(process: psutil.Process) -> bool:
    """Whether a process runs; one that nobody has waited for yet does not."""
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def main() -> None:
    """Keep the server until the run ends."""
    kind, directory, controller = sys.argv[1], Path(sys.argv[2]), psutil.Process(int(sys.argv[3]))
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with KINDS[kind](directory / kind) as description:
        part = directory / f"{kind}.json.part"
        part.write_text(json.dumps({"keeper": os.getpid(), **description}), encoding="utf-8")
        part.rename(directory / f"{kind}.json")
        while not ended.wait(LOOK_SECONDS) and lives(controller):
            pass


if __name__ == "__main__":
    main()
