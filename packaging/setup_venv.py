"""Make a virtual environment from pinned requirements, and say what takes long: `python setup_venv.py VENV FILE WHAT`.

Run by the Makefile with the Python of the machine, so it uses the standard library alone. pip installs uv, and uv what
FILE pins, by hash, in half the time that pip takes; pip does where there is no uv for the machine. This project comes
last. A dot a second shows that it goes on, on a terminal and in a log alike.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

_PIP = ("install", "--quiet", "--disable-pip-version-check", "--no-deps")
_UV_PINNED = re.compile(r"^uv==.*(?:\n +--hash=.*)+", re.MULTILINE)


def step(what: str, command: list[str], *, may_fail: bool = False, **environment: str) -> bool:
    """Run a command with a dot a second; return whether it succeeded, or end with its own output and status."""
    start, done = time.monotonic(), threading.Event()

    def _tick() -> None:
        while not done.wait(1):
            print(".", end="", flush=True)

    print(f"  {what} ", end="", flush=True)
    ticker = threading.Thread(target=_tick, daemon=True)
    ticker.start()
    try:
        ran = subprocess.run(
            command,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **environment},
        )
        code, output = ran.returncode, ran.stdout
    except OSError as error:
        code, output = 1, str(error)
    done.set()
    ticker.join()
    print(f" {time.monotonic() - start:.0f} s{' failed' if code else ''}", flush=True)
    if code and not may_fail:
        sys.exit(f"{output}\n{' '.join(command)}: exit status {code}")
    return not code


def _has_pip(python: str) -> bool:
    ask = [python, "-m", "pip", "--version"]
    return Path(python).exists() and subprocess.run(ask, check=False, capture_output=True).returncode == 0


def _install(python: str, pinned: str) -> None:
    """Install what a file pins: by uv, where it can, else by pip."""
    pip = [python, "-m", "pip", *_PIP, "--no-compile", "--require-hashes", "--requirement"]
    if not Path(pinned).exists():
        sys.exit(f"{pinned}: no such file of pinned requirements")
    with tempfile.TemporaryDirectory() as scratch:
        own = Path(scratch, "uv.txt")
        own.write_text("".join(_UV_PINNED.findall(Path(pinned).read_text(encoding="utf-8"))), encoding="utf-8")
        has_uv = step("uv", [*pip, str(own)], may_fail=True)
    uv = [str(Path(python).parent / "uv"), "pip", "install", "--quiet", "--python", python, "--no-deps"]
    exact = ["--require-hashes", "--requirement", pinned]
    # uv does not read pip's configuration: an index that is set there is passed on
    if not (has_uv and step("the packages", [*uv, *exact], may_fail=True, **_pip_index(python))):
        step("the packages, by pip", [*pip, pinned])


def _pip_index(python: str) -> dict[str, str]:
    """What tells uv where pip would look for packages, if that is set."""
    listed = subprocess.run(
        [python, "-m", "pip", "config", "list"], check=False, capture_output=True, text=True
    ).stdout.splitlines()
    settings = dict(line.split("=", 1) for line in listed if "=" in line)
    index = next((settings[key].strip("'") for key in (":env:.index-url", "global.index-url") if key in settings), None)
    certificate = next((settings[key].strip("'") for key in (":env:.cert", "global.cert") if key in settings), None)
    named = {"UV_DEFAULT_INDEX": index, "SSL_CERT_FILE": certificate}
    return {name: value for name, value in named.items() if value and name not in os.environ}


def main(venv: str, pinned: str, what: str) -> None:
    """Make or complete an environment."""
    if sys.version_info < (3, 11):
        sys.exit(f"aclog needs Python 3.11 or later, this is {sys.version.split()[0]}: make PYTHON=python3.12 ...")
    python = str(Path(venv, "bin", "python"))
    print(f"{venv}: {what}, as {pinned} pins it", flush=True)
    if not _has_pip(python):  # not there, or its making was interrupted: the interpreter comes first, pip last
        step("the environment", [sys.executable, "-m", "venv", venv])
    _install(python, pinned)
    step("aclog itself", [python, "-m", "pip", *_PIP, "--no-build-isolation", "--editable", "."])


if __name__ == "__main__":
    main(*sys.argv[1:])
