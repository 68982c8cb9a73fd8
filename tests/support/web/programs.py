"""Browsers to test with: those of the machine, or Debian's packages unpacked under build/; nothing is installed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from attrs import field, frozen

from tests.support.processes.debian_packages import libraries, unpack

ROOT = Path(__file__).parents[3]
BUILD = ROOT / "build"


class NoBrowserError(Exception):
    """There is no browser of a kind that starts."""


@frozen(kw_only=True)
class Program:
    """A browser, and the environment that it needs."""

    path: str
    environment: dict[str, str] = field(factory=dict)

    @property
    def whole_environment(self) -> dict[str, str]:
        """The environment of this process, with that of the browser."""
        return {**os.environ, **self.environment}


@frozen(kw_only=True)
class Kind:
    """A browser, its names on a machine, and the packages of Debian with it."""

    title: str
    names: tuple[str, ...]
    packages: tuple[str, ...]
    home: Path
    """Where they are unpacked."""
    unpacked: Path
    """The program in it."""
    advice: str
    """What to do if apt-get cannot fetch it."""

    def of_packages(self, *more: Path, **environment: str) -> Program:
        """Return the program of the packages, with the libraries that are with it, and those in `more`."""
        paths = ":".join([*map(str, more), libraries(self.home)])
        return Program(path=str(self.unpacked), environment={"LD_LIBRARY_PATH": paths, **environment})

    def working(self, others: Iterable[Program]) -> Program:
        """Return the first one that starts, of the machine or of others. Raises NoBrowserError: none does."""
        on_path = (Program(path=path) for path in map(shutil.which, self.names) if path)
        for each in (*on_path, *others):
            if _starts(each.path, tuple(each.environment.items())):
                return each
        raise NoBrowserError(f"there is no {self.title} that starts: `make test` fetches one")

    def make_ready(self, check: Callable[[], object], *, prepare: Callable[[], None] = lambda: None) -> None:
        """Fetch the browser, unless `check` finds one. Exits with what to install if that cannot be done."""
        try:
            check()
        except NoBrowserError:
            if not unpack(self.home, "--download-only", "--reinstall", "install", *self.packages):
                sys.exit(self.advice)
            prepare()
            _starts.cache_clear()
            try:
                check()
            except NoBrowserError:
                sys.exit(self.advice)


@cache
def _starts(path: str, environment: tuple[tuple[str, str], ...]) -> bool:
    """Return whether a program is there, with all its libraries."""
    if not Path(path).exists():
        return False
    program = Program(path=path, environment=dict(environment))
    command = [path, "--version"]
    return subprocess.run(command, env=program.whole_environment, capture_output=True, check=False).returncode == 0
