import pytest

from aclog.authorizer.settings import Generation
from aclog.metalog.errors import ConfigError
from aclog.server.feature_levels import METADATA_VERSIONS, feature_levels


def levels(release: str | None = None, *settings: str, dynamic: bool = True) -> dict[str, int]:
    found = feature_levels(release, settings, dynamic_quorum=dynamic)
    return {record.name: record.feature_level for record in found.records}


def test_the_newest_release_by_default() -> None:
    assert list(levels().items()) == [
        ("metadata.version", 30),
        ("eligible.leader.replicas.version", 1),
        ("group.version", 1),
        ("share.version", 1),
        ("streams.version", 1),
        ("transaction.version", 2),
    ]


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("4.3", 30),
        ("4.3.1", 30),
        ("4.3-IV0", 30),
        ("4.0", 25),
        ("4.0-IV1", 23),
        ("3.9.1", 21),
        ("3.3", 7),
        (" 4.1 ", 27),
        ("4.4", 33),
        ("4.4.0", 33),
        ("4.4-IV0", 31),
    ],
)
def test_releases(text: str, level: int) -> None:
    found = feature_levels(text, (), dynamic_quorum=True)
    assert found.metadata_version == level == METADATA_VERSIONS[found.release]


def test_kafka_4_4_begins_with_its_own_levels() -> None:
    found = feature_levels(None, (), dynamic_quorum=True, generation=Generation.V4_4)
    levels_of = {record.name: record.feature_level for record in found.records}
    assert (found.release, levels_of["metadata.version"], levels_of["share.version"]) == ("4.4-IV2", 33, 2)
    older = feature_levels("4.3", ["share.version=2"], dynamic_quorum=True, generation=Generation.V4_4)
    assert ("share.version", 2) in {(record.name, record.feature_level) for record in older.records}
    assert levels("4.3")["share.version"] == 1


@pytest.mark.parametrize(("release", "generation"), [("4.3", Generation.V4_3), ("4.4-IV0", Generation.V4_4)])
def test_a_level_selects_the_generation_that_has_it(release: str, generation: Generation) -> None:
    assert feature_levels(release, (), dynamic_quorum=True).generation is generation


def test_settings() -> None:
    assert levels(None, "metadata.version=25") == {"metadata.version": 25, "group.version": 1, "transaction.version": 2}
    assert levels("3.9", "group.version=1") == {"metadata.version": 21, "group.version": 1}
    assert "transaction.version" not in levels(None, "transaction.version=0")
    assert levels(None, "kraft.version=1") == levels()
    assert levels(None, "kraft.version=0", dynamic=False) == levels()


@pytest.mark.parametrize(
    ("release", "settings", "what"),
    [
        ("3.0", [], "unknown: expected"),
        ("4.5", [], "unknown: expected"),
        ("4.5-IV0", [], "unknown: expected"),
        ("4", [], "unknown: expected"),
        ("4.3.", [], "unknown: expected"),
        ("", [], "unknown: expected"),
        ("4.0", ["metadata.version=25"], "contradict each other"),
        (None, ["metadata.version=6"], "from 7 to 33"),
        (None, ["metadata.version=34"], "from 7 to 33"),
        (None, ["share.version=2"], "from 0 to 1"),
        ("4.4", ["share.version=3"], "from 0 to 2"),
        (None, ["transaction.version"], "expected <name>=<level>"),
        (None, ["transaction.version=x"], "expected <name>=<level>"),
        (None, ["transaction.version=99999"], "expected <name>=<level>"),
        (None, ["transaction.version=3"], "from 0 to 2"),
        (None, ["foo.version=1"], "unknown: expected one of kraft.version"),
        ("3.9", ["eligible.leader.replicas.version=1"], "requires metadata.version 23"),
        (None, ["kraft.version=0"], "--standalone"),
        (None, ["kraft.version=2"], "expected 0 or 1"),
    ],
)
def test_what_is_wrong(release: str | None, settings: list[str], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        feature_levels(release, settings, dynamic_quorum=True)


def test_kraft_version_1_needs_voters_in_the_log() -> None:
    with pytest.raises(ConfigError, match=r"controller\.quorum\.voters: expected 0"):
        feature_levels(None, ["kraft.version=1"], dynamic_quorum=False)
