"""Which worker runs what, and in which order (a pytest plugin for `-n N --dist loadgroup`).

The tests of a module run in one worker, so that its fixtures are set up once. So do all tests of a Spark group: a
session takes a JVM of 2 GB and ten seconds to warm up. A very slow test is a unit of its own. The longest units start
first; otherwise the order is the random one of pytest-randomly.
"""

from collections import Counter

import pytest
from xdist.scheduler import LoadGroupScheduling

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
    units = {}
    for item in items:
        group = group_of(item)
        if group is not None:
            item.add_marker(pytest.mark.xdist_group(group))
        units[item] = item.nodeid if group == _ALONE else group or item.nodeid.partition("::")[0]
        seconds[units[item]] += seconds_of(item)
    items.sort(key=lambda item: -seconds[units[item]])


def seconds_of(item: pytest.Item) -> float:
    """About how long a test takes, as far as it matters for the order."""
    if slow := item.get_closest_marker("slow"):
        return float(slow.args[0])
    if "spark" in getattr(item, "fixturenames", ()):
        return 2.0
    return 1.0 if item.get_closest_marker("server") else 0.0


def group_of(item: pytest.Item) -> str | None:
    """Where a test runs, if not with its module."""
    fixtures = getattr(item, "fixturenames", ())
    if "spark" in fixtures:
        return next((name for place, name in SPARK_GROUPS.items() if item.nodeid.startswith(place)), "spark-2")
    for fixture, name in FIXTURE_GROUPS.items():
        if fixture in fixtures:
            return name
    return _ALONE if item.get_closest_marker("slow") and seconds_of(item) >= _ALONE_SECONDS else None
