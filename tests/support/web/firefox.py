"""Firefox to test with: that of the machine, or Debian's packages unpacked under build/, driven by Marionette.

Playwright drives a Firefox of its own making only. Marionette is the protocol of every Firefox: JSON over TCP
(https://firefox-source-docs.mozilla.org/testing/marionette/Protocol.html). `python -m tests.support.web.firefox`
fetches Firefox if there is none, once; nothing is installed.
"""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define, field

from tests.support.processes.waiting import SECONDS, wait_until
from tests.support.web.programs import BUILD, Kind, NoBrowserError, Program

_KIND = Kind(
    title="Firefox",
    names=("firefox-esr", "firefox"),
    packages=("firefox-esr",),
    home=BUILD / "firefox",
    unpacked=BUILD / "firefox" / "usr" / "lib" / "firefox-esr" / "firefox-esr",
    advice="tests of the console drive Firefox, and apt-get cannot fetch it: install firefox-esr or firefox",
)
_PREFERENCES = {
    "marionette.port": 0,  # a free one, which Firefox writes into its profile
    "app.update.enabled": False,
    "browser.aboutwelcome.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.enabled": False,
}
_KEYS = {
    "Control": "\ue009", "Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004", "Space": " ",
    "ArrowDown": "\ue015", "ArrowUp": "\ue013",
}  # fmt: skip


def _program() -> Program:
    """Return the first Firefox that starts. Raises NoBrowserError: none does."""
    return _KIND.working((_KIND.of_packages(_KIND.unpacked.parent),))


def make_ready() -> None:
    """Fetch Firefox, unless one is here. Exits with a word on what to install if that cannot be done."""
    _KIND.make_ready(_program)


@define(eq=False)
class Firefox:
    """One tab, used by its keyboard."""

    _socket: socket.socket
    _left: bytes = field(default=b"", init=False)
    _number: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._receive()  # its greeting
        self._ask("WebDriver:NewSession", {"capabilities": {"alwaysMatch": {}}})

    def open(self, address: str) -> None:
        """Go to an address, and wait until the page is loaded."""
        self._ask("WebDriver:Navigate", {"url": address})

    def press(self, keys: str) -> None:
        """Press a key, or several at once, such as `Control+k`."""
        codes = [_KEYS.get(each, each) for each in keys.split("+")]
        down = [{"type": "keyDown", "value": each} for each in codes]
        up = [{"type": "keyUp", "value": each} for each in reversed(codes)]
        self._act([*down, *up])

    def type(self, text: str) -> None:
        """Press the key of each character."""
        self._act([{"type": kind, "value": each} for each in text for kind in ("keyDown", "keyUp")])

    def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        return self._ask("WebDriver:ExecuteScript", {"script": f"return {expression}", "args": []})["value"]

    def sees(self, expression: str) -> None:
        """Wait until a JavaScript expression is true."""
        wait_until(lambda: bool(self.value(expression)), expression)

    def tab_to(self, expression: str) -> None:
        """Press Tab until the focused element, `each`, meets an expression."""
        for _ in range(600):
            if self.value(f"(each => {expression})(document.activeElement)"):
                return
            self.press("Tab")
        raise AssertionError(f"the keyboard does not reach {expression}")

    def _act(self, actions: list[dict[str, str]]) -> None:
        self._ask("WebDriver:PerformActions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def _ask(self, command: str, parameters: dict[str, Any]) -> Any:
        self._number += 1
        data = json.dumps([0, self._number, command, parameters]).encode()
        self._socket.sendall(b"%d:%s" % (len(data), data))
        _, number, error, result = self._receive()
        if error is not None or number != self._number:
            raise AssertionError(f"{command}: {error}")
        return result

    def _receive(self) -> Any:
        while b":" not in self._left:
            self._left += self._more()
        size, _, self._left = self._left.partition(b":")
        while len(self._left) < int(size):
            self._left += self._more()
        message, self._left = self._left[: int(size)], self._left[int(size) :]
        return json.loads(message)

    def _more(self) -> bytes:
        data = self._socket.recv(1 << 16)
        if not data:
            raise AssertionError("Firefox has ended")
        return data


@contextmanager
def firefox(profile: Path) -> Iterator[Firefox]:
    """Start Firefox, headless, with a new profile, until the end of the `with`. Raises NoBrowserError: none starts."""
    program = _program()
    lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in _PREFERENCES.items())
    profile.mkdir()
    (profile / "user.js").write_text("".join(lines), encoding="utf-8")
    command = [program.path, "--headless", "--marionette", "--no-remote", "--profile", str(profile)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env={**program.whole_environment, "HOME": str(profile)}, **quiet)
    try:
        port = _port(process, profile / "MarionetteActivePort")
        with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
            yield Firefox(connection)
    finally:
        process.terminate()
        process.wait(SECONDS)


def _port(process: "subprocess.Popen[bytes]", file: Path) -> int:
    deadline = time.monotonic() + SECONDS
    while not (file.exists() and file.read_text().strip()):
        if process.poll() is not None or time.monotonic() > deadline:
            raise NoBrowserError("Firefox did not start")
        time.sleep(0.05)
    return int(file.read_text())


if __name__ == "__main__":
    make_ready()
