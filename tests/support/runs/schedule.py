"""Which worker runs what, and in which order (a pytest plugin for `-n N --dist loadgroup`).

The tests of a module run in one worker, so that its fixtures are set up once. So do all that use Spark: a session
takes a JVM of 2 GB and ten seconds to warm up. A very slow test is a unit of its own. The longest units start first, as
the mark `slow` and the table of tests/README.md say; otherwise the order is pytest-randomly's.

Workers write the unit of each test to a file that the controller reads: xdist sends names of tests only, and the groups
that it appends to them are lost since pytest 9.2.
"""

import json
from collections import Counter
from functools import cached_property

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.support.runs.shared_servers import of_run
from tests.support.runs.tiers import table

FIXTURE_GROUPS = {"spark": "spark", "stopped_kafka": "fixture-port", "wheel": "wheel"}
"""Users of these run one after the other, in one worker: one Spark, one port that a log names, one wheel."""
ALONE_SECONDS = 9
"""A test that takes at least so long is a unit of its own."""
_UNITS = "units.json"


class ByUnit(LoadScopeScheduling):
    """Work units in the order of the collection."""

    def __init__(self, config: pytest.Config, log: object = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # by number of tests: not what takes long

    @cached_property
    def _units(self) -> dict[str, str]:
        """The unit of each test; all workers have written the same ones."""
        return json.loads((of_run(self.config).directory / _UNITS).read_text(encoding="utf-8"))

    def _split_scope(self, nodeid: str) -> str:
        return self._units[nodeid]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByUnit | None:
    """Use ours."""
    return ByUnit(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put first what takes long, and write down the units."""
    seconds: Counter[str] = Counter()
    shares = {path: file.seconds for path, file in table().items()}
    counts = Counter(item.nodeid.partition("::")[0] for item in items)
    units = {}
    for item in items:
        path = item.nodeid.partition("::")[0]
        units[item.nodeid] = unit_of(item) or path
        seconds[units[item.nodeid]] += slow_seconds(item) or shares.get(path, 0) / counts[path]
    items.sort(key=lambda item: -seconds[units[item.nodeid]])
    if worker := getattr(config, "workerinput", None):
        directory = of_run(config).directory
        part = directory / f"{_UNITS}.{worker['workerid']}"
        part.write_text(json.dumps(units), encoding="utf-8")
        part.rename(directory / _UNITS)


def slow_seconds(item: pytest.Item) -> float:
    """What the mark `slow` says, or 0."""
    slow = item.get_closest_marker("slow")
    return float(slow.args[0]) if slow else 0


def unit_of(item: pytest.Item) -> str | None:
    """Where a test runs, if not with its module."""
    for fixture in getattr(item, "fixturenames", ()):
        if fixture in FIXTURE_GROUPS:
            return FIXTURE_GROUPS[fixture]
    if group := item.get_closest_marker("xdist_group"):
        return str(group.args[0])
    return item.nodeid if slow_seconds(item) >= ALONE_SECONDS else None
