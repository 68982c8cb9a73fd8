"""Names as questions write them: what each text stands for, exactly, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.authorizer.settings import asked_pattern, name_text, parse_name, parse_pattern, pattern_text, rule_pattern
from aclog.metalog.errors import ConfigError

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
TEXTS = [
    ("orders", "orders", LITERAL),
    ("pii-*", "pii-", PREFIXED),
    ("*", "", PREFIXED),
    (r"\*", "*", LITERAL),
    (r"a\*b", "a*b", LITERAL),
    (r"a\**", "a*", PREFIXED),
    # Backslashes count only right before a star.
    (r"DOM\app", r"DOM\app", LITERAL),
    (r"a\\b", r"a\\b", LITERAL),
    ("a\\", "a\\", LITERAL),
    ("a\\\\", "a\\\\", LITERAL),
    (r"DOM\app*", r"DOM\app", PREFIXED),
    (r"a\\*", "a\\", PREFIXED),
    (r"a\\\*", r"a\*", LITERAL),
    (r"a\\\**", r"a\*", PREFIXED),
    (r"a\\\\*", r"a\\", PREFIXED),
    ("", "", LITERAL),
]
NAMES = st.text(st.sampled_from("\\*ab-")) | st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.parametrize(("text", "name", "pattern"), TEXTS)
def test_a_text_stands_for_one_name_or_prefix(text, name, pattern):
    assert parse_name(text) == (name, pattern)
    assert name_text(name, pattern) == text


@given(NAMES, st.sampled_from([LITERAL, PREFIXED]))
def test_every_name_and_prefix_has_a_text(name, pattern):
    assert parse_name(name_text(name, pattern)) == (name, pattern)


@given(NAMES)
def test_a_text_is_read_in_one_way_or_refused(text):
    try:
        name, pattern = parse_name(text)
    except ConfigError:
        assert "*" in text[:-1]
    else:
        assert name_text(name, pattern) == text
        assert "*" in text or (name, pattern) == (text, LITERAL)


@pytest.mark.parametrize("text", ["a*b", "**", "*a", r"\\*a", r"a*\*"])
def test_a_star_in_the_middle_is_refused_with_both_ways_out(text):
    with pytest.raises(ConfigError, match=r"expected PREFIX\*, or \\\* for a star in the name"):
        parse_name(text)


@pytest.mark.parametrize("text", [r"\*", r"a\*", r"a\**"])
def test_no_topic_has_a_star_in_its_name(text):
    with pytest.raises(ConfigError, match=r"a topic name cannot contain \*"):
        asked_pattern(TOPIC, text)
    assert pattern_text(asked_pattern(GROUP, text)) == text


@pytest.mark.parametrize("pattern", [LITERAL, PREFIXED])
def test_with_a_pattern_type_a_name_is_as_it_is(pattern):
    for kind in (TOPIC, GROUP):
        for name in ("pii-*", r"a\*b", "a*b", ""):
            found = ResourcePattern(resource_type=kind, name=name, pattern_type=pattern)
            assert asked_pattern(kind, name, pattern) == found


def test_a_rule_on_every_name_is_on_the_name_star():
    assert rule_pattern(TOPIC, "*") == ResourcePattern(resource_type=TOPIC, name="*")
    assert rule_pattern(GROUP, "g*") == parse_pattern(GROUP, "g*")
    assert rule_pattern(GROUP, r"g\*") == ResourcePattern(resource_type=GROUP, name="g*")
    with pytest.raises(ConfigError, match=r"a rule on the name \* is on every name"):
        rule_pattern(GROUP, r"\*")
