"""JVMs that a test process starts once and keeps: a start takes longer than most runs of a tool.

`ToolPipe` runs the command line tools of a release in one, `admin_port` is where another has all Admin clients. A JVM
ends with the process that started it. `tests.support.kafka.jvm.run_tool` runs a tool in a process of its own.
"""

import atexit
import json
import re
import subprocess
import threading
from collections.abc import Sequence

from attrs import define, field, frozen

from tests.support.kafka.jvm import KAFKA_VERSION, ROOT, java_command
from tests.support.processes.waiting import SECONDS

_jvms: dict[tuple[str, str], "WarmJvm"] = {}
_lock = threading.Lock()
_BELOW_MAIN = re.compile(
    r"(?:^\tat java\.base/(?:jdk\.internal|java\.lang)\.reflect\.[^\n]*\n)+"
    r"(?:^\tat aclog\.ToolPipe[^\n]*\n?)+(?:^\tat java\.base/java\.lang\.Thread\.[^\n]*\n?)*",
    re.MULTILINE,
)
"""The frames of a stack trace that a tool's process of its own has not."""


@frozen(kw_only=True)
class Printed:
    """What one run of a tool printed."""

    code: int
    out: str
    err: str


@define(eq=False)
class WarmJvm:
    """A main class of ours that reads lines on stdin until it ends, and writes one for each."""

    process: "subprocess.Popen[str]"
    lock: threading.Lock = field(factory=threading.Lock)
    """Held from a line that is written until its answer is read."""
    first_line: str = ""

    def close(self) -> None:
        """End it."""
        self.process.stdin.close()
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def _warm_jvm(main_class: str, version: str, *, greets: bool = False) -> WarmJvm:
    """Return the one that runs, or start one; `greets` if it prints a line before it is asked."""
    with _lock:
        jvm = _jvms.get((main_class, version))
        if jvm is None or jvm.process.poll() is not None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            command = java_command(main_class, version=version)
            process = subprocess.Popen(command, cwd=ROOT, encoding="utf-8", **pipes)
            jvm = _jvms[main_class, version] = WarmJvm(process)
            if greets:
                jvm.first_line = process.stdout.readline()
        return jvm


@atexit.register
def close_all() -> None:
    """End all JVMs of this process; one that is needed later is started anew."""
    with _lock:
        while _jvms:
            _jvms.popitem()[1].close()


@frozen
class ToolPipe:
    """The command line tools of a release, one run after the other in one JVM (ToolPipe.java)."""

    version: str = KAFKA_VERSION

    def run(self, main: str, arguments: Sequence[str]) -> Printed:
        """Run a main class to its end, with the root of the repository as working directory."""
        jvm = _warm_jvm("aclog.ToolPipe", self.version)
        with jvm.lock:
            jvm.process.stdin.write(json.dumps({"main": main, "args": list(arguments)}) + "\n")
            jvm.process.stdin.flush()
            answer = jvm.process.stdout.readline()
        assert answer, f"the JVM of the tools died at {arguments}"
        printed = json.loads(answer)
        return Printed(
            code=printed["code"], out=_BELOW_MAIN.sub("", printed["out"]), err=_BELOW_MAIN.sub("", printed["err"])
        )


def admin_port() -> int:
    """The port of 127.0.0.1 where each connection is an Admin client (AdminPipe.java)."""
    return int(_warm_jvm("aclog.AdminPipe", KAFKA_VERSION, greets=True).first_line)
