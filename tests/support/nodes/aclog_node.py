"""`aclog serve` as a process: formatted, started, waited for, stopped or killed by its process id.

A node is a fork of a process that has everything imported (NodeZygote): a start of its own costs two seconds of a core.
An AclogProcess is `python -m aclog`, as a user starts it.
"""

import http.client
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.support.nodes.server_properties import ADMIN_SCRAM, CLUSTER_ID, Ports, server_properties
from tests.support.processes.node_zygote import ForkedNode, shared_zygote
from tests.support.processes.waiting import SECONDS


class NodeError(Exception):
    """A node that did not start, or a command that failed; with the end of what it printed."""


class AclogNode:
    """`home` holds server.properties, the data directory and the output of the server."""

    kind = "aclog"
    scram = (ADMIN_SCRAM,)
    """The users with whom `format` begins the log, as --add-scram takes them."""

    def __init__(self, home: Path, ports: Ports, properties: str | None = None) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home, self.ports = home, ports
        self._output = home / "aclog.log"
        self._process: subprocess.Popen[bytes] | ForkedNode | None = None
        self.format_if_empty = True
        """Whether `spawn` lets it format an empty directory: only until it was ready once, so that no restart does."""
        self._audit: list[str] = []
        (home / "server.properties").write_text(properties or server_properties(ports), encoding="utf-8")

    @property
    def log_directory(self) -> Path:
        """Where the metadata log is."""
        return self.home / "data" / "__cluster_metadata-0"

    @property
    def output(self) -> str:
        """What the server has printed so far, both streams."""
        return self._output.read_text(encoding="utf-8", errors="replace") if self._output.exists() else ""

    @property
    def pid(self) -> int:
        """The process id of the running node."""
        return self._running().pid

    def format(self, *more: str) -> Self:
        """`aclog format` with the flags of kafka-storage format, and `more`."""
        users = [word for user in self.scram for word in ("--add-scram", user)]
        arguments = ["format", "server.properties", "-t", CLUSTER_ID, "--standalone", *users, *more]
        process, output = self._begin(arguments, "format.log"), self.home / "format.log"
        if code := process.wait(timeout=SECONDS):
            raise NodeError(f"aclog format ended with {code}: {output.read_text(encoding='utf-8')}")
        return self

    def start(self) -> Self:
        """Start it and wait until /readyz says 200."""
        self.spawn()
        try:
            self.wait_until_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def spawn(self) -> None:
        """Start it and do not wait."""
        self._process = self._begin(["serve", "server.properties", *self.flags], self._output.name)

    def _begin(self, arguments: Sequence[str], output: str) -> "subprocess.Popen[bytes] | ForkedNode":
        return shared_zygote().spawn(self.home, arguments, output)

    @property
    def flags(self) -> list[str]:
        """The flags with which `spawn` starts it."""
        return [*self._audit, *(["--format-if-empty"] if self.format_if_empty else [])]

    def log_every_decision(self) -> None:
        """Have its output hold every decision, from its next start on."""
        self._audit = ["--audit-level", "trace"]

    def wait_until_ready(self, seconds: float = SECONDS) -> None:
        """Until /readyz says 200; a NodeError if the node ends or takes too long."""
        deadline = time.monotonic() + seconds
        while not self.is_ready():
            if (code := self._running().poll()) is not None:
                raise NodeError(f"aclog serve ended with {code}: {self.output[-4000:]}")
            if time.monotonic() > deadline:
                raise NodeError(f"aclog serve was not ready within {seconds} s: {self.output[-4000:]}")
            time.sleep(0.05)
        self.format_if_empty = False

    def is_ready(self) -> bool:
        """What /readyz says now; False too when nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports.http, timeout=300)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def metric(self, name: str) -> float:
        """The value of a metric without labels. Raises OSError while nobody serves it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports.http, timeout=300)
        try:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()
        for line in text.splitlines():
            if line.startswith(f"{name} "):
                return float(line.rpartition(" ")[2])
        raise KeyError(name)

    def stop(self) -> int:
        """SIGTERM; the exit code. A node that does not end in time is killed, and that is an error."""
        process = self._running()
        process.terminate()
        try:
            return process.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise NodeError(f"aclog serve did not end within {SECONDS} s: {self.output[-4000:]}") from None

    def wait(self) -> int:
        """Wait until it ends by itself; the exit code."""
        return self._running().wait(timeout=SECONDS)

    def kill(self) -> None:
        """SIGKILL, and wait."""
        process = self._running()
        process.kill()
        process.wait()

    def _running(self) -> "subprocess.Popen[bytes] | ForkedNode":
        if self._process is None:
            raise NodeError("the node was not started")
        return self._process

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if self._running().poll() is not None:
            return
        if failure is None:
            self.stop()
        else:
            self.kill()  # what went wrong is to be told, not that a node in trouble does not stop


class AclogProcess(AclogNode):
    """A node that is `python -m aclog`: for a test of the process, and for what measures it."""

    def _begin(self, arguments: Sequence[str], output: str) -> "subprocess.Popen[bytes]":
        with (self.home / output).open("ab") as file:
            return subprocess.Popen(
                [sys.executable, "-m", "aclog", *arguments],
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
