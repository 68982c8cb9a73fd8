"""Which worker runs what, and in which order (a pytest plugin for `-n N --dist loadgroup`).

The tests of a module run in one worker, so that its fixtures are set up once. So do all tests of a Spark group: a
session takes a JVM of 2 GB and ten seconds to warm up. A `slow` test is a unit of its own. The longest units start
first; otherwise the order is the random one of pytest-randomly.
"""

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
_ALONE = "alone"


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
    for item in items:
        if group := group_of(item):
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=rank)


def group_of(item: pytest.Item) -> str | None:
    """Where a test runs, if not with its module."""
    fixtures = getattr(item, "fixturenames", ())
    if "spark" in fixtures:
        return next((name for place, name in SPARK_GROUPS.items() if item.nodeid.startswith(place)), "spark-2")
    for fixture, name in FIXTURE_GROUPS.items():
        if fixture in fixtures:
            return name
    return _ALONE if item.get_closest_marker("slow") else None


def rank(item: pytest.Item) -> tuple[int, float]:
    """Lower ones start first."""
    if "spark" in getattr(item, "fixturenames", ()):
        return 0, 0.0
    if slow := item.get_closest_marker("slow"):
        return 1, -float(slow.args[0])
    return (2, 0.0) if item.get_closest_marker("server") else (3, 0.0)
