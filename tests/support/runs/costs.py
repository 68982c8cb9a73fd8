"""What a test run costs, by fixture, by process started and by folder (a pytest plugin).

    pytest --costs=FILE

prints three tables at the end of the run and writes the same figures to FILE as JSON. Each worker sends its figures to
the controller. CPU seconds of a child process count when it is reaped, with those of its own children; a process that
outlives its worker (a JVM of Spark, a shared server) counts with what it had used when the run ended.
"""

import json
import os
import resource
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from attrs import define, field

from tests.support.runs.tiers import words_of

TABLES = ("fixtures", "processes", "folders", "files", "tests", "totals")
KEEPER = "tests.support.runs.keeper"
ROWS = 25
"""Rows of each table that are printed; the file has all."""
LONG = 0.1
"""CPU seconds of a test from which on the file has its own figures; above it, tests are listed in tests/costly.txt."""
SHARED = pytest.StashKey[dict[str, float]]()
"""CPU seconds of the shared servers by kind, left by the plugin that stops them."""
_OF_RUN = pytest.StashKey["Costs"]()


def cpu_seconds(who: int) -> float:
    """User and system time of this process or of its reaped children."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def own_and_children() -> float:
    """CPU seconds of this process and of all reaped children."""
    return cpu_seconds(resource.RUSAGE_SELF) + cpu_seconds(resource.RUSAGE_CHILDREN)


def tree_cpu_seconds(process: psutil.Process) -> float:
    """CPU seconds of a living process, its children and those it has reaped."""
    total = 0.0
    for each in [process, *process.children(recursive=True)]:
        try:
            times = each.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def kind_of(words: list[str]) -> str:
    """Name what a command line starts: a JVM by its main class, Python by its module, `aclog` by its command."""
    name = Path(words[0]).name
    if name == "java":
        classes = [word for word in words[1:] if not word.startswith("-") and "." in word and "/" not in word]
        return f"java {classes[0]}" if classes else "java"
    if name.startswith("python"):
        if "-m" in words[:-1]:
            module, *rest = words[words.index("-m") + 1 :]
            return kind_of([module, *rest]) if module == "aclog" else f"python -m {module}"
        return kind_of(words[1:]) if len(words) > 1 and Path(words[1]).name == "aclog" else "python"
    if name == "aclog":
        return " ".join(["aclog", *(word for word in words[1:2] if not word.startswith("-"))])
    return name


def _row() -> defaultdict[str, float]:
    return defaultdict(float)


@define(eq=False)
class Costs:
    """The figures of one process; owned by the plugin, which adds to them while tests run."""

    tables: dict[str, defaultdict[str, defaultdict[str, float]]] = field(
        factory=lambda: {table: defaultdict(_row) for table in TABLES}
    )
    charged: float = 0.0
    started: float = field(factory=time.monotonic)

    def add(self, table: str, row: str, **columns: float) -> None:
        """Add to a row's columns."""
        for column, value in columns.items():
            self.tables[table][row][column] += value

    def merge(self, figures: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
        """Add the figures of another process."""
        for table, rows in figures.items():
            for row, columns in rows.items():
                self.add(table, row, **columns)

    def reaped(self, process: "subprocess.Popen[Any]") -> None:
        """Charge what the children have used since the last one was reaped to this one's kind."""
        total = cpu_seconds(resource.RUSAGE_CHILDREN)
        self.add("processes", kind_of(words_of(process.args)), count=1, cpu=total - self.charged)
        self.charged = total

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[object]:
        """Time each fixture's set-up."""
        wall, cpu = time.monotonic(), own_and_children()
        try:
            return (yield)
        finally:
            self.add(
                "fixtures",
                f"{fixturedef.argname} ({fixturedef.scope})",
                count=1,
                wall=time.monotonic() - wall,
                cpu=own_and_children() - cpu,
            )

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[object]:
        """Time each test, its fixtures included."""
        wall, own, reaped = time.monotonic(), cpu_seconds(resource.RUSAGE_SELF), cpu_seconds(resource.RUSAGE_CHILDREN)
        try:
            return (yield)
        finally:
            figures = {
                "count": 1.0,
                "wall": time.monotonic() - wall,
                "own cpu": cpu_seconds(resource.RUSAGE_SELF) - own,
                "child cpu": cpu_seconds(resource.RUSAGE_CHILDREN) - reaped,
            }
            path = item.nodeid.partition("::")[0]
            self.add("folders", "/".join(path.split("/")[:2]), **figures)
            self.add("files", path, **figures)
            if figures["wall"] > 1 or figures["own cpu"] + figures["child cpu"] > LONG:
                self.add("tests", item.nodeid, **figures)

    def count_living(self) -> None:
        """Count the processes that are not reaped yet."""
        for child in psutil.Process().children():
            try:
                words = child.cmdline() or [child.name()]
                if KEEPER in words:  # the controller counts it, with its server
                    continue
                self.add("processes", f"{kind_of(words)} (outlives the worker)", count=1, cpu=tree_cpu_seconds(child))
            except psutil.NoSuchProcess:
                continue


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare --costs."""
    parser.addoption("--costs", metavar="FILE", help="print what the run costs, and write it to FILE as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Start counting."""
    costs = Costs()
    config.stash[_OF_RUN] = costs
    if config.getoption("costs") is None or _only_controls_workers(config):
        return
    config.pluginmanager.register(costs)
    handle = subprocess.Popen._handle_exitstatus

    def handled(process: "subprocess.Popen[Any]", status: int) -> None:
        handle(process, status)
        costs.reaped(process)

    subprocess.Popen._handle_exitstatus = handled
    config.add_cleanup(lambda: setattr(subprocess.Popen, "_handle_exitstatus", handle))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send a worker's figures to the controller."""
    config = session.config
    costs = config.stash[_OF_RUN]
    if config.getoption("costs") is None or _only_controls_workers(config):
        return
    costs.count_living()
    costs.add("totals", "workers", count=1, **{"own cpu": cpu_seconds(resource.RUSAGE_SELF)})
    if (output := getattr(config, "workeroutput", None)) is not None:
        output["costs"] = json.dumps(costs.tables)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the figures of a worker that has ended."""
    if text := getattr(node, "workeroutput", {}).get("costs"):
        costs = node.config.stash[_OF_RUN]
        costs.merge(json.loads(text))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the tables and write the file."""
    place, costs = config.getoption("costs"), config.stash[_OF_RUN]
    if place is None:
        return
    for kind, seconds in config.stash.get(SHARED, {}).items():
        costs.add("processes", f"shared {kind}", count=1, cpu=seconds)
    path = Path(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    wall = time.monotonic() - costs.started
    path.write_text(json.dumps({"wall": wall, "load": os.getloadavg(), **costs.tables}, indent=1), encoding="utf-8")
    own = sum(row["own cpu"] for row in costs.tables["totals"].values())
    children = sum(row["cpu"] for row in costs.tables["processes"].values())
    load = ", ".join(f"{number:.1f}" for number in os.getloadavg())
    terminalreporter.section(f"costs: {wall:.0f} s, CPU {own + children:.0f} s ({own:.0f} in workers), load {load}")
    for table, order in (("fixtures", "wall"), ("processes", "cpu"), ("folders", "wall")):
        for line in _table(table, costs.tables[table], order):
            terminalreporter.write_line(line)


def _only_controls_workers(config: pytest.Config) -> bool:
    return not hasattr(config, "workerinput") and bool(config.getoption("numprocesses", None))


def _table(title: str, rows: Mapping[str, Mapping[str, float]], order: str) -> Iterator[str]:
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    yield f"{title:<72}" + "".join(f"{column:>12}" for column in columns)
    for name, row in sorted(rows.items(), key=lambda pair: -pair[1][order])[:ROWS]:
        yield f"  {name[:68]:<70}" + "".join(
            f"{row[column]:>12.{0 if column == 'count' else 1}f}" for column in columns
        )
