"""Which generation of the authorizer a Kafka decides by."""

import pytest

from aclog.authorizer.generation import (
    Generation,
    generation_of_level,
    generation_of_version,
    generations_of_levels,
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
    with pytest.raises(ConfigError, match="is no version of Kafka: expected one such as"):
        generation_of_version(text)


@pytest.mark.parametrize("text", ["4.5", "4.10.0", "5.0", "0.8.2"])
def test_a_kafka_whose_decisions_are_not_known_is_refused(text):
    with pytest.raises(ConfigError, match=r"is not known: expected a version up to 4\.4"):
        generation_of_version(text)


def test_a_server_has_the_generation_of_the_newest_level_that_it_supports():
    assert [generation_of_level(level) for level in (7, 30, 31)] == [Generation.V4_3] * 3
    assert [generation_of_level(level) for level in (32, 33, 34)] == [Generation.V4_4] * 3
    assert generations_of_levels([30, 33]) == {Generation.V4_3, Generation.V4_4}
    assert generations_of_levels([]) == frozenset()
