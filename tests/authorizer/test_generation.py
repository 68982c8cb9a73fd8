"""Which generation of the authorizer a Kafka decides by."""

import pytest

from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.settings import (
    Generation,
    controllers_decide,
    generation_of_level,
    generation_of_version,
    named_generation,
)
from aclog.metalog.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.9.0.1", Generation.V4_3),
        ("2.8", Generation.V4_3),
        ("3.9.1", Generation.V4_3),
        ("4.3", Generation.V4_3),
        ("4.3.1", Generation.V4_3),
        ("4.4", Generation.V4_4),
        ("4.4.0", Generation.V4_4),
        ("4.4.1-rc0", Generation.V4_4),
        ("4.4.0-SNAPSHOT", Generation.V4_4),
    ],
)
def test_a_version_has_a_generation(text, expected):
    assert generation_of_version(text) is expected


@pytest.mark.parametrize("text", ["", "4", "4.x", "v4.4", "4.4.0.0.0", " 4.4", "4.4\n", "٤.٤"])
def test_a_text_that_is_no_version_is_refused(text):
    with pytest.raises(ConfigError, match="is not a version of Kafka: expected one such as"):
        generation_of_version(text)


@pytest.mark.parametrize("text", ["4.5", "4.10.0", "5.0", "0.8.2"])
def test_a_kafka_whose_decisions_are_not_known_is_refused(text):
    with pytest.raises(ConfigError, match=r"is not supported: expected a version up to 4\.4"):
        generation_of_version(text)


def test_a_server_has_the_generation_of_the_newest_level_that_it_supports():
    assert [generation_of_level(level) for level in (7, 30, 31)] == [Generation.V4_3] * 3
    assert [generation_of_level(level) for level in (32, 33, 34)] == [Generation.V4_4] * 3


@pytest.mark.parametrize(
    ("version", "ranges", "expected"),
    [
        (None, None, None),
        (None, True, Generation.V4_4),
        (None, False, Generation.V4_3),
        ("4.3.1", None, Generation.V4_3),
        ("4.3.1", False, Generation.V4_3),
        ("4.4.0", True, Generation.V4_4),
    ],
)
def test_two_settings_name_one_generation(version, ranges, expected):
    assert named_generation(version, ranges, version_name="v", ranges_text="r") is expected


@pytest.mark.parametrize(
    ("version", "ranges", "complaint"),
    [
        ("4.4.0", False, "v 4.4.0 and r differ: expected one of them"),
        ("4.3", True, "v 4.3 and r differ: expected one of them"),
        ("4.5", True, "v: Kafka 4.5 is not supported: expected a version up to 4.4"),
        ("x", None, "v: 'x' is not a version of Kafka: expected one such as 4.3.1 or 4.4.0"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_one_text(version, ranges, complaint):
    with pytest.raises(ConfigError) as refused:
        named_generation(version, ranges, version_name="v", ranges_text="r")
    assert str(refused.value) == complaint


def test_controllers_decide_what_changes_metadata_and_no_client_data():
    decided = {
        kind.name: {operation.name for operation in AclOperation if controllers_decide(kind, operation)}
        for kind in ResourceType
    }
    assert {kind for kind, operations in decided.items() if operations} == {"TOPIC", "GROUP", "CLUSTER", "USER"}
    assert decided["TOPIC"] == {"CREATE", "DELETE", "ALTER", "ALTER_CONFIGS", "DESCRIBE_CONFIGS"}
    assert {"ALTER", "DESCRIBE", "CLUSTER_ACTION", "CREATE"} <= decided["CLUSTER"]
    assert "IDEMPOTENT_WRITE" not in decided["CLUSTER"]
    assert not controllers_decide(99, AclOperation.ALTER)
