"""Servers that a test run starts once, when the first of its workers asks for one (a pytest plugin with fixtures).

A test that stops or kills a server starts its own. The others share these, each with names of its own: a topic that
nobody has used (`new_topic`), a chroot that nobody has used (`connect`).
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from attrs import frozen

from tests.support.kafka.jvm import ROOT
from tests.support.kafka.shared import SharedKafka
from tests.support.runs.costs import SHARED, tree_cpu_seconds
from tests.support.runs.keeper import KINDS
from tests.support.zookeeper.shared import SharedZooKeeper

START_SECONDS, STOP_SECONDS = 150, 60
_keepers: list["subprocess.Popen[bytes]"] = []
"""Those that this process has started. They outlive it, and Python warns about such a Popen when it is collected."""


class SharedServerError(Exception):
    """A shared server did not start; with the end of its keeper's output."""


@frozen
class SharedServers:
    """What the workers of one run share: a directory, and the process after whose end nothing must be left."""

    directory: Path
    controller_pid: int

    def find(self, kind: str) -> dict[str, Any]:
        """Return the description of a running server; start it first if no worker has."""
        place = self.directory / f"{kind}.json"
        with (self.directory / f"{kind}.lock").open("w") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            if not place.exists():
                self._start(kind, place)
        return json.loads(place.read_text(encoding="utf-8"))

    def _start(self, kind: str, place: Path) -> None:
        output = self.directory / f"{kind}.log"
        command = [sys.executable, "-m", "tests.support.runs.keeper", kind, str(self.directory)]
        with output.open("wb") as log:  # in a session of its own: an interrupt at the terminal is for the tests first
            keeper = subprocess.Popen(
                [*command, str(self.controller_pid)], cwd=ROOT, stdout=log, stderr=log, start_new_session=True
            )
        _keepers.append(keeper)
        deadline = time.monotonic() + START_SECONDS
        while not place.exists():
            if keeper.poll() is not None or time.monotonic() > deadline:
                keeper.terminate()
                raise SharedServerError(f"{kind} did not start: {output.read_text(errors='replace')[-4000:]}")
            time.sleep(0.05)

    def stop(self) -> dict[str, float]:
        """Stop all that were started, by their keepers' process ids; return the CPU seconds that each kind has used."""
        keepers, used = [], {}
        for kind in KINDS:
            with suppress(FileNotFoundError, psutil.NoSuchProcess):
                description = json.loads((self.directory / f"{kind}.json").read_text(encoding="utf-8"))
                keepers.append(psutil.Process(description["keeper"]))
                used[kind] = tree_cpu_seconds(keepers[-1])
        for keeper in keepers:
            with suppress(psutil.NoSuchProcess):
                keeper.send_signal(signal.SIGTERM)
        psutil.wait_procs(keepers, STOP_SECONDS)
        return used


def of_run(config: pytest.Config) -> SharedServers:
    """Return those of this run, in a worker or in the process that controls the workers."""
    base = config._tmp_path_factory.getbasetemp()  # a worker's lies in the controller's
    if (worker := getattr(config, "workerinput", None)) is not None:
        return SharedServers(base.parent, worker["controller_pid"])
    return SharedServers(base, os.getpid())


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell each worker who controls it."""
    node.workerinput["controller_pid"] = os.getpid()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop the servers when the controller ends, however the run has ended."""
    if not hasattr(session.config, "workerinput"):
        session.config.stash[SHARED] = of_run(session.config).stop()


@pytest.fixture(scope="session")
def shared_servers(request: pytest.FixtureRequest) -> SharedServers:
    """The servers that all workers of the run share."""
    return of_run(request.config)


@pytest.fixture(scope="session")
def topic_kafka(shared_servers: SharedServers) -> SharedKafka:
    """A real Kafka of one node, for tests that bring topics of their own and do not stop it."""
    ports = shared_servers.find("kafka")
    return SharedKafka.of(shared_servers.directory / "kafka", ports["broker"], ports["controller"])


@pytest.fixture(scope="session")
def zookeeper(shared_servers: SharedServers) -> SharedZooKeeper:
    """A real ZooKeeper, for tests that bring a chroot of their own and do not stop it."""
    return SharedZooKeeper(shared_servers.find("zookeeper")["connect"])
