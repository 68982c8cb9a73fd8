"""The tier of each test (a pytest plugin): `make check` runs `check`, `make test` adds `test`, `make test-all` `all`.

    pytest --tier check|test|all [--above check|test] [--part K/N]

runs one tier with those below it, or only what it adds to the one named by --above: `all` also tries more examples and
walks whole walks; --part, the tests of every Nth file. A test is of tier `check` unless a mark says otherwise:

- `server`: its tier is its file's, in the table of tests/README.md, which must have every such file;
- `slow(seconds)`: `all`; `process`: `test`;
- of a parametrized test, CASES cases or what `sample(size)` says, always the same ones; the others are `all`;
- `tier(name)`: the one named, whatever else it is marked with;
- a line in tests/costly.txt: `all`, because of its CPU time.

Whole directories and the users of certain fixtures are marked `server` here; other tests carry the mark themselves. A
mark cannot be forgotten: in every run, a test without `server` fails when it starts a server, and one of the tier
`check` without `process` when it starts another process of Python.
"""

import os
import random
import re
import subprocess
import zlib
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
from attrs import frozen

from tests.support.kafka.jvm import ROOT

MARKS = (
    "server: starts a server or a JVM in a process of its own: Kafka, ZooKeeper, Spark, a Kafka tool, `aclog serve`",
    "process: starts `aclog` or another Python in a process of its own",
    "slow(seconds): takes more than a few seconds, about so many on an idle machine; the longest ones start first",
    "sample(size): how many cases of a parametrized test run below the tier `all`",
    "tier(name): the tier of the test, check, test or all, if its other marks would say another",
)
DIRECTORIES = ("tests/browser", "tests/integration", "tests/oracle")
"""All tests here are `server`."""
FIXTURES = {"spark", "topic_kafka", "own_kafka", "zookeeper", "own_zookeeper", "java"}
"""All tests that have one of these are `server`."""
TABLE = ROOT / "tests" / "README.md"
COSTLY = ROOT / "tests" / "costly.txt"
CASES = 5
"""Cases of a parametrized test that run below the tier `all`, unless it is marked otherwise."""
SEED = 801
"""Of the samples that the tiers below `all` take of long walks."""

_JAVA = {"java", "javac", "mvn", "spark-submit", "spark-class"}
_OURS = {"tests.support.processes.node_zygote", "tests.support.runs.keeper"}
_ROW = re.compile(
    r"^\| `(?P<path>tests/[^`]+)` \| (?P<guards>.+) \| (?P<seconds>[0-9.]+) \| (?P<tier>test|some|all) \|$"
)
_TEST_MARK = re.compile(r"mark\.process|mark\.tier\(\"test\"\)")
_SERVER_FILE = re.compile(r"^pytestmark = .*mark\.server", re.MULTILINE)

T = TypeVar("T")


_MISPLACED = pytest.StashKey["MisplacedTestError"]()
_TIER = pytest.StashKey["Tier"]()
COLLECTED = pytest.StashKey["dict[pytest.Item, Tier]"]()
"""In the configuration: the tier of each test that this run has collected, of those that it leaves out, too."""


class Tier(IntEnum):
    """Each runs what those before it run."""

    CHECK = 1
    TEST = 2
    ALL = 3


class UnmarkedProcessError(Exception):
    """A test starts a process without the mark that says so."""


class MisplacedTestError(Exception):
    """A test that starts a server, and the table of tests/README.md, do not agree."""


@frozen(kw_only=True)
class ServerFile:
    """A row of the table in tests/README.md: a test file that starts servers.

    The tier of its tests is `test` or `all`; in `some`, it is `all` but for those that are marked.
    """

    path: str
    guards: str
    seconds: float
    tier: str


def server_files(text: str) -> dict[str, ServerFile]:
    """Read the rows of the table, by path."""
    rows = (_ROW.match(line) for line in text.splitlines())
    return {
        row["path"]: ServerFile(path=row["path"], guards=row["guards"], seconds=float(row["seconds"]), tier=row["tier"])
        for row in rows
        if row
    }


@cache
def table() -> Mapping[str, ServerFile]:
    """The rows of tests/README.md, by path."""
    return server_files(TABLE.read_text(encoding="utf-8"))


def costly_tests(text: str) -> frozenset[str]:
    """Read the lines of tests/costly.txt: a file, a test of it, or one case of a test; `#` begins a comment."""
    return frozenset(line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#"))


@cache
def costly() -> frozenset[str]:
    """What tests/costly.txt leaves to the tier `all`."""
    return costly_tests(COSTLY.read_text(encoding="utf-8"))


def is_costly(nodeid: str, listed: Container[str]) -> bool:
    """Whether a test is listed: by itself, as a case of its test, or with its file."""
    return any(each in listed for each in (nodeid, nodeid.partition("[")[0], nodeid.partition("::")[0]))


def tier_of_run(config: pytest.Config) -> Tier:
    """The tier that decides how much each test of this run tries."""
    return Tier[config.getoption("tier").upper()]


def left_to_others(config: pytest.Config) -> Tier | int:
    """The highest tier that this run leaves out, 0 for none."""
    return Tier[above.upper()] if (above := config.getoption("above")) else 0


def tier_of(item: pytest.Item, files: Mapping[str, ServerFile], listed: Container[str] = ()) -> Tier:
    """The tier of a test. Raises MisplacedTestError: its mark and its file's row in the table do not agree."""
    named = item.get_closest_marker("tier")
    if item.get_closest_marker("server"):
        path = item.nodeid.partition("::")[0]
        if path not in files:
            raise MisplacedTestError(f"{path} starts a server, and {TABLE} has no row for it")
        row = files[path].tier
        if named and row != "some":
            raise MisplacedTestError(
                f"{item.nodeid} has a tier of its own: {path} must be `some` in {TABLE}, not `{row}`"
            )
        return Tier[named.args[0].upper()] if named else Tier.TEST if row == "test" else Tier.ALL
    if named:
        return Tier[named.args[0].upper()]
    if item.get_closest_marker("slow") or is_costly(item.nodeid, listed):
        return Tier.ALL
    return Tier.TEST if item.get_closest_marker("process") else Tier.CHECK


def check_is_collected(item: pytest.Item, tier: Tier, files: Mapping[str, ServerFile]) -> None:
    """Raise a MisplacedTestError if a run of this tier would not import the test's file: the test would be lost."""
    path = item.nodeid.partition("::")[0]
    if tier is not Tier.ALL and tier not in _tiers_in_file(path, files.get(path)):
        raise MisplacedTestError(f"{item.nodeid} is of the tier {tier.name.lower()}, which {path} does not show")


@cache
def _tiers_in_file(path: str, row: ServerFile | None) -> set[Tier]:
    return tiers_in(path, Path(ROOT, path).read_text(encoding="utf-8"), row, costly())


def tries_more(item: pytest.Item) -> bool:
    """Whether a test tries more in the tier `all` than in those below: more examples, or a whole walk."""
    is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return is_property or "sample" in getattr(item, "fixturenames", ())


def runs(tier: Tier, lowest: Tier | int, highest: Tier, *, more: bool) -> bool:
    """Whether a run above `lowest`, up to `highest`, runs a test of a tier; `more`: it tries more in the tier `all`."""
    return lowest < tier <= highest or (more and highest is Tier.ALL and bool(lowest))


def left_out(items: Iterable[pytest.Item]) -> set[str]:
    """The cases of sampled tests that only the tier `all` runs."""
    cases = defaultdict(list)
    sizes = {}
    for item in items:
        if hasattr(item, "callspec"):
            test = item.nodeid.partition("[")[0]
            cases[test].append(item.nodeid)
            mark = item.get_closest_marker("sample")
            sizes[test] = mark.args[0] if mark else CASES
    return {
        nodeid
        for test, nodeids in cases.items()
        for nodeid in set(nodeids).difference(sampled(sorted(nodeids), sizes[test]))
    }


def sampled(steps: Sequence[T], size: int) -> Sequence[T]:
    """So many of these, in their order, always the same ones."""
    if len(steps) <= size:
        return steps
    indexes = sorted(random.Random(SEED).sample(range(len(steps)), size))
    return [steps[index] for index in indexes]


@frozen
class Part:
    """The test files of one part of so many: each file is in one part, which depends on its path alone.

    Whole files, because their tests share servers.
    """

    number: int
    parts: int

    def has(self, path: str) -> bool:
        """Whether a file, as a path from the root of the repository, is in this part."""
        return zlib.crc32(path.encode()) % self.parts == self.number - 1


def part(text: str) -> Part:
    """Read `K/N`: the Kth of N parts, from 1. Raises ValueError."""
    number, parts = map(int, text.split("/"))
    if not 1 <= number <= parts:
        raise ValueError(f"{text}: not a part from 1/{parts} to {parts}/{parts}")
    return Part(number, parts)


class Guard:
    """Stands in front of subprocess.Popen, and refuses processes to tests that are not marked."""

    def __init__(self) -> None:
        self._item: pytest.Item | None = None
        self._unmarked: str | None = None
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
        """Raise an UnmarkedProcessError if the running test must not start this."""
        words = words_of(args)
        if self._item is None or self._item.get_closest_marker("server"):
            return
        if starts_server(words):
            raise UnmarkedProcessError(f"{self._item.nodeid} starts a server ({words[0]}): give it the mark `server`")
        is_quick = self._item.stash.get(_TIER, None) is Tier.CHECK and not self._item.get_closest_marker("process")
        if is_quick and starts_python(words):
            self._unmarked = " ".join(words[:3])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Know which test runs, its fixtures' setup and teardown included."""
        self._item = item
        try:
            return (yield)
        finally:
            self._item = self._unmarked = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """Fail a test that has started a Python: an error at the start could be taken for one of what is tested."""
        result = yield
        if self._unmarked is not None:
            raise UnmarkedProcessError(f"{item.nodeid} starts `{self._unmarked}`: give it the mark `process`")
        return result


def words_of(args: Any) -> list[str]:
    """The words of what subprocess.Popen is given; a text is one word."""
    return [os.fsdecode(word) for word in args] if isinstance(args, (list, tuple)) else [os.fsdecode(args)]


def starts_server(words: list[str]) -> bool:
    """Whether a command line starts a server or a JVM."""
    name = Path(words[0]).name
    return name in _JAVA or not _OURS.isdisjoint(words) or ("aclog" in words[1:3] and "serve" in words)


def starts_python(words: list[str]) -> bool:
    """Whether a command line starts another Python, as `aclog` does."""
    return Path(words[0]).name == "aclog" or any(Path(word).name.startswith("python") for word in words[:3])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare --tier, --above and --part."""
    tiers = [tier.name.lower() for tier in Tier]
    parser.addoption("--tier", choices=tiers, default="all", help="run the tests of this tier and those below it")
    parser.addoption("--above", choices=tiers[:-1], help="leave out what this tier runs as well")
    parser.addoption("--part", type=part, metavar="K/N", help="run the tests of the Kth part of N, by files")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marks and install the guard."""
    for line in MARKS:
        config.addinivalue_line("markers", line)
    guard = Guard()
    guard.install()
    config.pluginmanager.register(guard)
    config.add_cleanup(guard.uninstall)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no test file that has nothing of this run's tiers or part: importing all takes each worker seconds."""
    highest = tier_of_run(config)
    path = collection_path.relative_to(ROOT).as_posix() if collection_path.is_relative_to(ROOT) else ""
    if not (path.startswith("tests/") and path.endswith(".py")):
        return None
    if (chosen := config.getoption("part")) and collection_path.name.startswith("test_") and not chosen.has(path):
        return True
    if highest is Tier.ALL:
        return None
    has = tiers_in(path, collection_path.read_text(encoding="utf-8"), table().get(path), costly())
    return None if any(left_to_others(config) < tier <= highest for tier in has) else True


def tiers_in(path: str, text: str, row: ServerFile | None, listed: Container[str] = ()) -> set[Tier]:
    """The tiers that a test file may have tests of, going by its text and its row in the table."""
    has = {Tier.TEST} if _TEST_MARK.search(text) or (row and row.tier == "test") else set()
    is_server = path.startswith(DIRECTORIES) or _SERVER_FILE.search(text)
    return has if is_server or path in listed else {Tier.CHECK, *has}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what directories and fixtures say, and keep the tests of the tier."""
    directories = tuple(f"{ROOT / directory}{os.sep}" for directory in DIRECTORIES)
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if not FIXTURES.isdisjoint(fixtures) or str(item.path).startswith(directories):
            item.add_marker("server")
    files = table()
    only_all = left_out(items)
    highest = tier_of_run(config)
    lowest = left_to_others(config)
    selected, dropped = [], []
    for item in items:
        try:
            tier = Tier.ALL if item.nodeid in only_all else tier_of(item, files, costly())
            check_is_collected(item, tier, files)
        except MisplacedTestError as error:  # a worker cannot refuse the run: the test fails in all of them
            item.stash[_MISPLACED] = error
            tier = Tier(lowest + 1)
        item.stash[_TIER] = tier
        (selected if runs(tier, lowest, highest, more=tries_more(item)) else dropped).append(item)
    config.stash[COLLECTED] = {item: item.stash[_TIER] for item in items}
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = selected


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test whose tier is not known."""
    if _MISPLACED in item.stash:
        raise item.stash[_MISPLACED]


Sample = Callable[[Sequence[T], int], Sequence[T]]


@pytest.fixture
def sample(request: pytest.FixtureRequest) -> Sample[T]:
    """Take so many of the steps of a walk, always the same ones; all of them in the tier `all`."""
    whole = tier_of_run(request.config) is Tier.ALL
    return lambda steps, size: steps if whole else sampled(steps, size)
