"""The Java baseline: the real StandardAuthorizer and Kafka's own log readers in a JVM (benchmarks/java/Rival.java)."""

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.kafka.jvm import java_command

AUDIT = Path(__file__).parent / "java" / "audit.properties"


class Rival:
    """The JVM process, for use in a `with`. Rival.java documents the commands."""

    def __init__(self, *, heap: str = "6g", audited: bool = False) -> None:
        """Start the JVM; with `audited` the audit log is at Kafka's default level, into an appender that drops it."""
        logging = (f"-Dlog4j2.configurationFile={AUDIT}",) if audited else ()
        command = java_command("aclog.Rival", options=("-server", "-XX:+UseSerialGC", f"-Xmx{heap}", *logging))
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def ask(self, do: str, **arguments: object) -> Any:
        """Send a command and return its response."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        response = self._process.stdout.readline()
        if not response:
            raise RuntimeError(f"the JVM died on {do} {arguments}")
        return json.loads(response)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait()
