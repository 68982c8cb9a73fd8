"""The tier of each test (a pytest plugin): `server` for those that start a server or a JVM, `slow` for long ones.

`make check` runs the tests with neither mark, `make test` all. Whole directories and the users of certain fixtures are
marked here; other tests carry the mark themselves. A mark cannot be forgotten: in every run, a test without `server`
fails when it starts a server.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kafka.jvm import ROOT

MARKS = (
    "server: starts a server or a JVM in a process of its own: Kafka, ZooKeeper, Spark, a Kafka tool, `aclog serve`",
    "slow(seconds): takes more than a few seconds, about so many on an idle machine; the longest ones start first",
)
DIRECTORIES = ("tests/browser", "tests/integration", "tests/oracle")
"""All tests here are `server`."""
FIXTURES = {"spark", "topic_kafka", "own_kafka", "zookeeper", "own_zookeeper", "java"}
"""All tests that have one of these are `server`."""

_JAVA = {"java", "javac", "mvn", "spark-submit", "spark-class"}
_OURS = {"tests.support.processes.node_zygote", "tests.support.runs.keeper"}


class UnmarkedServerError(Exception):
    """A test without the mark `server` starts a server."""


class Guard:
    """Stands in front of subprocess.Popen, and refuses servers to tests that are not marked."""

    def __init__(self) -> None:
        self._nodeid: str | None = None
        self._start = subprocess.Popen.__init__

    def install(self) -> None:
        """Look at every process that is started from now on."""
        start, guard = self._start, self

        def checked(process: "subprocess.Popen[bytes]", args: object, *more: object, **named: object) -> None:
            guard.check(args)
            start(process, args, *more, **named)

        subprocess.Popen.__init__ = checked

    def uninstall(self) -> None:
        """Let everything pass."""
        subprocess.Popen.__init__ = self._start

    def check(self, args: object) -> None:
        """Raise an UnmarkedServerError if the running test must not start this."""
        words = [str(word) for word in args] if isinstance(args, (list, tuple)) else [str(args)]
        if self._nodeid is not None and starts_server(words):
            raise UnmarkedServerError(f"{self._nodeid} starts a server ({words[0]}): give it the mark `server`")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Know which test runs, its fixtures' setup and teardown included."""
        self._nodeid = None if item.get_closest_marker("server") else item.nodeid
        try:
            return (yield)
        finally:
            self._nodeid = None


def starts_server(words: list[str]) -> bool:
    """Whether a command line starts a server or a JVM."""
    name = Path(words[0]).name
    return name in _JAVA or not _OURS.isdisjoint(words) or ("aclog" in words[1:3] and "serve" in words)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marks and install the guard."""
    for line in MARKS:
        config.addinivalue_line("markers", line)
    guard = Guard()
    guard.install()
    config.pluginmanager.register(guard)
    config.add_cleanup(guard.uninstall)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what directories and fixtures say, before -m selects."""
    directories = tuple(f"{ROOT / directory}{os.sep}" for directory in DIRECTORIES)
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if not FIXTURES.isdisjoint(fixtures) or str(item.path).startswith(directories):
            item.add_marker("server")
