"""A real ZooKeeper, started on a data directory and stopped again; it may be started anew on what it holds."""

import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from kazoo.client import KazooClient

from tests.support.kafka.jvm import KAFKA_39, java_command
from tests.support.kafka.server import free_port
from tests.support.processes.waiting import SECONDS

_TICK_MS = 500
"""Sessions last between 2 and 20 ticks, so that a test may have one expire within seconds."""

_LOG4J = "status = OFF\nrootLogger.level = OFF\n"


class ZooKeeperServer:
    """One standalone server on a directory of its own, always stopped by its process id.

    `home` holds zoo.cfg, what the server printed, and its data, which outlives a stop or a kill.
    """

    def __init__(self, home: Path, *, heap: str = "200m") -> None:
        """`heap` is what -Xmx takes."""
        self.home, self.port, self._heap = home, free_port(), heap
        self._process: subprocess.Popen[bytes] | None = None
        home.mkdir(parents=True, exist_ok=True)
        settings = {
            "tickTime": _TICK_MS,
            "dataDir": home / "data",
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "maxClientCnxns": 0,
            "4lw.commands.whitelist": "*",
            "forceSync": "no",
        }
        (home / "zoo.cfg").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        (home / "log4j2.properties").write_text(_LOG4J)

    @property
    def connect(self) -> str:
        """What `zookeeper.connect` takes."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, also again after `stop` or `kill`, and wait until it serves."""
        options = (f"-Xmx{self._heap}", f"-Dlog4j2.configurationFile={self.home / 'log4j2.properties'}")
        main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        with (self.home / "server.log").open("ab") as output:
            self._process = subprocess.Popen(
                java_command(main_class, str(self.home / "zoo.cfg"), version=KAFKA_39, options=options),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            self._wait_until_serving()
        except BaseException:
            self.kill()
            raise

    def _wait_until_serving(self) -> None:
        deadline = time.monotonic() + SECONDS
        while not self.ask("srvr").startswith("Zookeeper version"):
            if self._process.poll() is not None or time.monotonic() > deadline:
                log = (self.home / "server.log").read_text(errors="replace")
                raise AssertionError(f"ZooKeeper did not start on port {self.port}: {log[-4000:]}")
            time.sleep(0.05)

    def ask(self, command: str) -> str:
        """What a four-letter command answers; nothing where nobody listens."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5) as client:
            client.sendall(command.encode())
            answer = b""
            while piece := client.recv(65536):
                answer += piece
            return answer.decode()
        return ""

    def sessions(self) -> set[int]:
        """The ids of the sessions that the server holds open."""
        return {int(id_, 16) for id_ in re.findall(r"0x[0-9a-f]+", self.ask("dump").partition("Sessions with Eph")[0])}

    def stop(self) -> None:
        """SIGTERM and wait, also for a paused one; SIGKILL if it takes too long."""
        if self._process is None:
            return
        self._process.terminate()
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """SIGKILL and wait."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """SIGSTOP: it holds its connections, and does nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)


@contextmanager
def zookeeper_client(connect: str) -> Iterator[KazooClient]:
    """A plain client, for looking at the store and for damaging it."""
    client = KazooClient(hosts=connect, timeout=10)
    client.start(timeout=SECONDS)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def expire(connect: str, session: tuple[int, bytes]) -> None:
    """Have the server end a session (`client_id` of its client) as if it had timed out.

    Another client takes the session over and closes it; its owner is told on its next connection.
    """
    thief = KazooClient(hosts=connect, client_id=session, timeout=10)
    thief.start(timeout=SECONDS)
    thief.stop()
    thief.close()
