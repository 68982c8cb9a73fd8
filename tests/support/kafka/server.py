"""A real Kafka, started on a data directory and stopped again, and Kafka's own Admin client to ask it."""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock, lockf
from pathlib import Path
from typing import Self

from tests.support.kafka.jvm import KAFKA_VERSION, ROOT, java_command
from tests.support.kafka.warm_jvms import ToolPipe, admin_port
from tests.support.processes.waiting import SECONDS

LOG4J = ROOT / "tests" / "jvm" / "log4j2.properties"
_DIRECTORIES = ("log.dirs=", "metadata.log.dir=")
FIRST_PORT, EPHEMERAL_PORT = 10_240, 32_768
ADMIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="{user}" password="{user}-secret";',
    "default.api.timeout.ms": "60000",
}
"""How the fixtures' users log in."""


class KafkaError(Exception):
    """A server that did not start or an admin call that failed; with the end of the server's log."""


def free_port() -> int:
    """A TCP port that nobody listens on now, and that no other test of this machine is given while this process lives.

    Not one of those that the system gives to outgoing connections: it would hand it out before a server takes it. And
    a client that tries again and again while the server is down would one day connect to itself.
    """
    while True:
        port = FIRST_PORT + secrets.randbelow(EPHEMERAL_PORT - FIRST_PORT)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        lock = os.open(_lock_file(port), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            flock(lock, LOCK_EX | LOCK_NB)  # held until the process ends
        except OSError:
            os.close(lock)
        else:
            return port


@contextmanager
def port_lock(port: int) -> Iterator[None]:
    """Hold a port that is named by a log and so cannot be chosen: one test of this machine at a time."""
    with _lock_file(port).open("w") as lock:
        lockf(lock, LOCK_EX)
        yield


def _lock_file(port: int) -> Path:
    return Path(tempfile.gettempdir()) / f"aclog-test-port-{port}.lock"


def with_properties(text: str, **changes: str) -> str:
    """server.properties with some keys set anew; in a key without dots, underscores stand for them."""
    values = {key if "." in key else key.replace("_", "."): value for key, value in changes.items()}
    lines = [line for line in text.splitlines() if line.partition("=")[0] not in values]
    return "\n".join([*lines, *(f"{key}={value}" for key, value in values.items())]) + "\n"


class AdminClient:
    """Kafka's Admin client, as one of the fixtures' users; all that a test process has share a JVM."""

    def __init__(
        self,
        servers: int | str,
        user: str = "admin",
        *,
        controllers: bool = False,
        request_ms: int = 30_000,
        recovery: str = "rebootstrap",
    ) -> None:
        """`servers` is a broker's port, or a list of HOST:PORT; of `controllers`, where those are to be asked.

        `request_ms` is how long one server may take for an answer before another one is asked; `recovery` is the
        metadata.recovery.strategy.
        """
        places = f"localhost:{servers}" if isinstance(servers, int) else servers
        config = {"bootstrap.controllers" if controllers else "bootstrap.servers": places} | {
            key: value.replace("{user}", user) for key, value in ADMIN.items()
        }
        config |= {"request.timeout.ms": str(request_ms), "metadata.recovery.strategy": recovery}
        self._socket = socket.create_connection(("127.0.0.1", admin_port()))
        self._lines = self._socket.makefile("rw", encoding="utf-8")
        self._write(config)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        with suppress(OSError):
            self._lines.close()
        self._socket.close()

    def kill(self) -> None:
        """End it, whatever it is doing; a call that waits for its answer fails."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def __call__(self, op: str, **arguments: object) -> list | dict:
        """Run one operation (see AdminPipe.java); rules, users and tokens are JSON objects.

        Raises:
            KafkaError: the operation failed.

        """
        self._write({"op": op, **arguments})
        line = self._lines.readline()
        reply = json.loads(line) if line else {"error": "the admin client died"}
        if isinstance(reply, dict) and "error" in reply:
            raise KafkaError(f"{op}: {reply['error']}")
        return reply

    def _write(self, line: object) -> None:
        self._lines.write(json.dumps(line) + "\n")
        self._lines.flush()

    def acls(self) -> list[dict[str, str]]:
        """What DescribeAcls answers, sorted by all keys in their order."""
        return sorted(self("describeAcls"), key=lambda row: tuple(row.values()))

    def scram(self) -> list[dict]:
        """What DescribeUserScramCredentials answers, by user and mechanism."""
        users = sorted(self("describeScram"), key=lambda row: row["user"])
        for user in users:
            user["credentialInfos"].sort(key=lambda info: info["mechanism"])
        return users

    def tokens(self) -> list[dict]:
        """What DescribeDelegationToken answers, by token id."""
        return sorted(self("describeTokens"), key=lambda row: row["tokenId"])


class KafkaServer:
    """A combined broker and controller on a data directory of its own; always stopped by its process id.

    `home` holds server.properties and the output of the server; its data directory is `home/data`. `heap` is what -Xmx
    takes.
    """

    def __init__(
        self, home: Path, properties: str, *, port: int, version: str = KAFKA_VERSION, heap: str = "400m"
    ) -> None:
        self.home, self.port, self.version, self.heap = home, port, version, heap
        self.output = home / "server.log"
        self.audit_level = "off"
        """The lowest level of audit lines in its output, from its next start on."""
        self.options: tuple[str, ...] = ()
        """More that its JVM takes, from its next start on; `-server` runs it as in production."""
        self.log4j = LOG4J
        """How it logs, from its next start on."""
        self._process: subprocess.Popen[bytes] | None = None
        self._said_before = 0
        (home / "server.properties").write_text(properties, encoding="utf-8")

    @property
    def log_directory(self) -> Path:
        """Where its metadata log is."""
        return self.home / "data" / "__cluster_metadata-0"

    @property
    def pid(self) -> int:
        """The process id, once it has been started."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether there is a process, be it paused."""
        return self._process is not None and self._process.poll() is None

    def format(self, cluster_id: str, *arguments: str) -> None:
        """kafka-storage format, on a directory that is not there yet."""
        text = (self.home / "server.properties").read_text(encoding="utf-8")
        directories = dict(line.split("=", 1) for line in text.splitlines() if line.startswith(_DIRECTORIES))
        config = self.home / "format.properties"  # with absolute names: the JVM runs elsewhere
        config.write_text(with_properties(text, **{key: self._absolute(names) for key, names in directories.items()}))
        command = ["format", f"--cluster-id={cluster_id}", "-c", str(config), *arguments]  # it may begin with -
        done = ToolPipe(self.version).run("kafka.tools.StorageTool", command)
        if done.code:
            raise KafkaError(f"format: {done.out}{done.err}")

    def _absolute(self, names: str) -> str:
        return ",".join(str(self.home / name) for name in names.split(","))

    def __enter__(self) -> Self:
        self.launch()
        try:
            self.wait_until_started()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def launch(self) -> None:
        """Begin a start; what an earlier one printed stays in the file."""
        logging = f"-Dlog4j2.configurationFile={self.log4j}", f"-Daudit.level={self.audit_level}"
        options = (f"-Xmx{self.heap}", *self.options, *logging)
        with self.output.open("ab") as output:
            self._said_before = self.output.stat().st_size
            self._process = subprocess.Popen(
                java_command("kafka.Kafka", "server.properties", version=self.version, options=options),
                cwd=self.home,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )

    def wait_until_started(self) -> None:
        """Wait for the start that was begun; a KafkaError with the end of the output if it fails."""
        deadline = time.monotonic() + SECONDS
        while "Kafka Server started" not in self._output():
            if not self.running:
                raise KafkaError(f"Kafka ended with {self._process.returncode}: {self._output()[-4000:]}")
            if time.monotonic() > deadline:
                raise KafkaError(f"Kafka did not start within {SECONDS} s: {self._output()[-4000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        """SIGTERM and wait, also for a paused one; SIGKILL if it takes too long."""
        self._process.terminate()
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def kill(self) -> None:
        """SIGKILL and wait."""
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """SIGSTOP: it holds its connections, and does nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def _output(self) -> str:
        """What it has printed since the last start."""
        with self.output.open("rb") as output:
            output.seek(self._said_before)
            return output.read().decode(errors="replace")


def copy_of(fixture: Path, home: Path) -> Path:
    """A copy of a fixture's data directory as `home/data`, where it may be changed; the metadata log's directory."""
    data = home / "data"
    data.mkdir(parents=True)
    for name in ("meta.properties", "bootstrap.checkpoint"):
        if (fixture / name).exists():
            shutil.copy(fixture / name, data / name)
    shutil.copytree(fixture / "__cluster_metadata-0", data / "__cluster_metadata-0", copy_function=shutil.copyfile)
    return data / "__cluster_metadata-0"
