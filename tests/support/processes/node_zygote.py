"""A process that has everything imported and forks nodes and consoles on command: there in a moment, and killed often.

Commands on stdin, one a line, each a JSON list: `spawn HOME OUTPUT GATE ARGUMENT...` forks `aclog ARGUMENT...` in that
directory, what it prints appended to the file OUTPUT there, and says its process id; unless GATE is empty, a controller
that has replayed its log stays as it is until there is a file of that name. `poll PID` says the exit code as Popen has
it, or `running`. Being single-threaded, it may fork. At the end of its stdin it kills what it has started.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Self

from tests.support.processes.waiting import SECONDS


class NodeZygote:
    """The test's end of it."""

    def __init__(self) -> None:
        self._asking = threading.Lock()
        root = Path(__file__).parents[3]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.processes.node_zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            cwd=root,
        )

    def spawn(self, home: Path, arguments: Sequence[str], output: str = "aclog.log", gate: str = "") -> "ForkedNode":
        """`aclog` with these arguments, running in `home`; its replay waits until there is the file `gate`."""
        return ForkedNode(self, int(self.ask("spawn", str(home.absolute()), output, gate, *arguments)))

    def ask(self, *command: str) -> str:
        """The answer to a command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._asking:
            self._process.stdin.write(json.dumps(command) + "\n")
            answer = self._process.stdout.readline().strip()
        assert answer, "the zygote has died"
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(SECONDS)
        self._process.stdout.close()


@cache
def shared_zygote() -> NodeZygote:
    """The one of this process, started at its first use; it ends with this process."""
    zygote = NodeZygote()
    atexit.register(zygote.__exit__)
    return zygote


class ForkedNode:
    """What AclogNode uses of a subprocess.Popen, for a child of the zygote."""

    def __init__(self, zygote: NodeZygote, pid: int) -> None:
        self._zygote, self.pid = zygote, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        if self.returncode is None:
            answer = self._zygote.ask("poll", str(self.pid))
            self.returncode = None if answer == "running" else int(answer)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code; raises TimeoutExpired."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            time.sleep(0.005)
        return code

    def send_signal(self, number: int) -> None:
        """Nothing where it has ended: its id may be another's by now."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _hold_replay(until: Path) -> None:
    """In the child: let a replay end only once there is a file."""
    from aclog.server.controller import controller_server

    replay = controller_server.replay

    def waiting(*arguments: Any) -> tuple[str, ...]:
        notes = replay(*arguments)
        while not until.exists():
            time.sleep(0.01)
        return notes

    controller_server.replay = waiting


def _run(home: str, output_name: str, gate: str, arguments: list[str]) -> None:
    """In the child: become the command."""
    from aclog.__main__ import main

    os.setsid()
    os.chdir(home)
    if gate:
        _hold_replay(Path(gate))
    output = os.open(output_name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, source in enumerate((nothing, output, output)):
        os.dup2(source, number)
    code = 1
    try:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - the old one has been read from
        sys.argv = ["aclog", *arguments]
        main()
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else 1
    except BaseException:  # noqa: BLE001 - this is a process of its own, and whoever made it must read what happened
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """Until the end of stdin."""
    import aclog.cli.app
    import aclog.cli.format
    import aclog.cli.serve
    import aclog.cli.serve_run
    from aclog.protocol.messages import warm_up
    from aclog.protocol.responses import BROKER_APIS, CONTROLLER_APIS

    every = (*BROKER_APIS, *CONTROLLER_APIS)
    warm_up((api.api_key, version) for api in every for version in range(api.min_version, api.max_version + 1))
    children: dict[int, int | None] = {}
    while line := sys.stdin.readline():
        command, argument, *more = json.loads(line)
        if command == "spawn":
            if more[2] == "console":
                import aclog.cli.console_run  # noqa: F401 - once, for all consoles; nodes need none of it
            child = os.fork()
            if not child:
                _run(argument, more[0], more[1], more[2:])
            children[child] = None
            answer = str(child)
        else:
            child = int(argument)
            if children[child] is None:
                pid, status = os.waitpid(child, os.WNOHANG)
                children[child] = os.waitstatus_to_exitcode(status) if pid else None
            answer = "running" if children[child] is None else str(children[child])
        os.write(1, f"{answer}\n".encode())
    for child, code in children.items():
        if code is None:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
