"""Make a virtual environment from pinned requirements, and say what takes long: `python setup_venv.py VENV FILE WHAT`.

Run by the Makefile with the Python of the machine, so it uses the standard library alone. pip installs what FILE pins,
by hash, and then this project; a dot a second shows that it goes on, on a terminal and in a log alike.
"""

import subprocess
import sys
import threading
import time
from pathlib import Path

_PIP = ("install", "--quiet", "--disable-pip-version-check", "--no-deps")


def step(what: str, command: list[str]) -> None:
    """Run a command with a dot a second; end with its own output and status if it fails."""
    start, done = time.monotonic(), threading.Event()

    def _tick() -> None:
        while not done.wait(1):
            print(".", end="", flush=True)

    print(f"  {what} ", end="", flush=True)
    ticker = threading.Thread(target=_tick, daemon=True)
    ticker.start()
    ran = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    done.set()
    ticker.join()
    print(f" {time.monotonic() - start:.0f} s", flush=True)
    if ran.returncode:
        sys.exit(f"{ran.stdout}\n{' '.join(command)}: exit status {ran.returncode}")


def _has_pip(python: str) -> bool:
    ask = [python, "-m", "pip", "--version"]
    return Path(python).exists() and subprocess.run(ask, check=False, capture_output=True).returncode == 0


def main(venv: str, pinned: str, what: str) -> None:
    """Make or complete an environment."""
    if sys.version_info < (3, 11):
        sys.exit(f"aclog needs Python 3.11 or later, this is {sys.version.split()[0]}: make PYTHON=python3.12 ...")
    python = str(Path(venv, "bin", "python"))
    print(f"{venv}: {what}, as {pinned} pins it", flush=True)
    if not _has_pip(python):  # not there, or its making was interrupted: the interpreter comes first, pip last
        step("the environment", [sys.executable, "-m", "venv", venv])
    step("the packages", [python, "-m", "pip", *_PIP, "--no-compile", "--require-hashes", "--requirement", pinned])
    step("aclog itself", [python, "-m", "pip", *_PIP, "--no-build-isolation", "--editable", "."])


if __name__ == "__main__":
    main(*sys.argv[1:])
