"""Drives benchmarks/java/Rival.java: the real StandardAuthorizer and Kafka's own log readers, in a process beside."""

import json
import subprocess
from types import TracebackType
from typing import Any, Self

from tests.support.kafka.jvm import java_command


class Rival:
    """The process; use it in a `with`. Commands are documented in Rival.java."""

    def __init__(self, *, heap: str = "6g") -> None:
        command = java_command("aclog.Rival", options=("-server", "-XX:+UseSerialGC", f"-Xmx{heap}"))
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def ask(self, do: str, **arguments: object) -> Any:
        """One command and its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the rival died on {do} {arguments}")
        return json.loads(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait()
