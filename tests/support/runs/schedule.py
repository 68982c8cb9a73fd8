"""Which worker runs what, and in which order (a pytest plugin for `-n N --dist loadgroup`).

The tests of a module run in one worker, so that its fixtures are set up once. So do all tests of a Spark group: a
session takes a JVM of 2 GB and ten seconds to warm up. A very slow test is a unit of its own. The longest units start
first, as the mark `slow` and the table of tests/README.md say; otherwise the order is pytest-randomly's.
"""

from collections import Counter

import pytest
from xdist.scheduler import LoadGroupScheduling

from tests.support.runs.tiers import TABLE, server_files

SPARK_GROUPS = {
    "tests/pipeline/accesses": "spark-1",
    "tests/pipeline/source": "spark-1",
    "tests/pipeline/test_cluster": "spark-1",
}
"""Where users of the fixture `spark` run, by the beginning of their path; all others are in `spark-2`."""
FIXTURE_GROUPS = {"stopped_kafka": "fixture-port"}
"""Users of these run one after the other: in several workers they would wait for the one port that the log names."""
_ALONE, _ALONE_SECONDS = "alone", 9


class ByModule(LoadGroupScheduling):
    """Work units are groups, or else modules, in the order of the collection."""

    def __init__(self, config: pytest.Config, log: object = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # by number of tests: not what takes long

    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        if group == _ALONE:
            return nodeid
        return group if group != nodeid else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByModule | None:
    """Use ours."""
    return ByModule(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Name the groups, and put first what takes long."""
    seconds: Counter[str] = Counter()
    files = server_files(TABLE.read_text(encoding="utf-8"))
    shares = {path: file.seconds for path, file in files.items()}
    counts = Counter(item.nodeid.partition("::")[0] for item in items)
    units = {}
    for item in items:
        path = item.nodeid.partition("::")[0]
        group = group_of(item)
        if group is not None:
            item.add_marker(pytest.mark.xdist_group(group))
        units[item] = item.nodeid if group == _ALONE else group or path
        seconds[units[item]] += slow_seconds(item) or shares.get(path, 0) / counts[path]
    items.sort(key=lambda item: -seconds[units[item]])


def slow_seconds(item: pytest.Item) -> float:
    """What the mark `slow` says, or 0."""
    slow = item.get_closest_marker("slow")
    return float(slow.args[0]) if slow else 0


def group_of(item: pytest.Item) -> str | None:
    """Where a test runs, if not with its module."""
    fixtures = getattr(item, "fixturenames", ())
    if "spark" in fixtures:
        return next((name for place, name in SPARK_GROUPS.items() if item.nodeid.startswith(place)), "spark-2")
    for fixture, name in FIXTURE_GROUPS.items():
        if fixture in fixtures:
            return name
    return _ALONE if slow_seconds(item) >= _ALONE_SECONDS else None
