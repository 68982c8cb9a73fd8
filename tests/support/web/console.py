"""`aclog console` as a process, until the end of a `with`."""

import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Self
from urllib.error import HTTPError

from tests.support.kafka.server import free_port
from tests.support.processes.node_zygote import ForkedNode, NodeZygote
from tests.support.processes.waiting import SECONDS


class ConsoleError(Exception):
    """The console did not start, or did not end as it should; with what it said."""


class ConsoleProcess:
    """A console that listens on a port of its own.

    `home` is where it runs, which its flags are relative to. With a `zygote`, it is forked from one that has everything
    imported.
    """

    def __init__(
        self, *flags: object, ready: str = "/", home: Path | None = None, zygote: NodeZygote | None = None
    ) -> None:
        self.port, self._ready, self._home, self._zygote = free_port(), ready, home or Path(), zygote
        self.printed = ""
        """What it printed on stdout and stderr, once it has ended."""
        self._arguments = ["console", *map(str, flags), "--listen", f"127.0.0.1:{self.port}"]

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        with NamedTemporaryFile(prefix="console-", suffix=".log", delete=False) as output:
            self._output = Path(output.name)
            if self._zygote:
                self._process: subprocess.Popen[bytes] | ForkedNode = self._zygote.spawn(
                    self._home, self._arguments, output.name
                )
            else:
                command = [sys.executable, "-m", "aclog", *self._arguments]
                self._process = subprocess.Popen(command, cwd=self._home, stdout=output, stderr=output)
        deadline = time.monotonic() + SECONDS
        while self._get(self._ready)[0] != 200:
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._process.kill()
                raise ConsoleError(f"it did not start: {self._printed()}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.returncode is None:
            self.stop()
        self._output.unlink(missing_ok=True)

    def stop(self) -> None:
        """End it."""
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(SECONDS)
        self.printed = self._printed()
        if code not in {0, -signal.SIGTERM}:
            raise ConsoleError(f"it ended with {code}: {self.printed}")

    def _printed(self) -> str:
        return self._output.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, path: str, text: str) -> None:
        """Wait until a page has a text."""
        deadline = time.monotonic() + SECONDS
        while text not in (body := self._get(path)[1]):
            if time.monotonic() > deadline:
                raise ConsoleError(f"{path} has no {text!r}: {body}")
            time.sleep(0.1)

    def _get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"{self.url}{path}", timeout=SECONDS) as reply:
                return reply.status, reply.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)
