"""Mapping rules for TLS clients' names, compared with Kafka's mapper."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.config.properties import NoMatchingRuleError, SslPrincipalMapper, find_all, java_pattern, replace_all
from aclog.metalog.errors import ConfigError

JAVA = json.loads((Path(__file__).parents[1] / "security" / "java_texts.json").read_text())
KEY = re.escape("ssl.principal.mapping.rules")
JAVAS_ALONE = ("(?s", "&&", "\\p{")
"""Java's regex features without a counterpart in Python: refused at the start."""

GOOD = [m for m in JAVA["mappings"] if "text" in m and not any(mark in m["rules"] for mark in JAVAS_ALONE)]
BAD = [m for m in JAVA["mappings"] if "error" in m]


def mapped(mapper, name):
    try:
        return mapper.name(name)
    except NoMatchingRuleError:
        return None


@pytest.mark.parametrize("mapping", GOOD, ids=lambda mapping: mapping["rules"])
def test_rules_map_as_in_kafka(mapping):
    mapper = SslPrincipalMapper.parse(mapping["rules"])
    assert f"[{', '.join(map(str, mapper.rules))}]" == mapping["text"]
    assert [mapped(mapper, name) for name in JAVA["subjects"]] == mapping["names"]


@pytest.mark.parametrize("mapping", BAD, ids=lambda mapping: mapping["rules"])
def test_rules_that_kafka_refuses(mapping):
    with pytest.raises(ConfigError, match=KEY) as caught:
        SslPrincipalMapper.parse(mapping["rules"])
    kind, _, text = mapping["error"].partition(": ")
    if kind == "java.lang.IllegalArgumentException":
        assert str(caught.value) == f"ssl.principal.mapping.rules: {text}"
    assert "\n" not in str(caught.value)


def test_enough_was_compared():
    assert len(GOOD) >= 45
    assert len(BAD) >= 10


@pytest.mark.parametrize(
    "rules",
    [
        "RULE:(?s)CN=(.*)/$1/",
        "RULE:(?m:^CN)/x/",
        "RULE:a(?i)b/x/",
        "RULE:[a-z&&[^b]]/x/",
        "RULE:[a[bc]]/x/",
        "RULE:[]a]/x/",
        "RULE:[^]a]/x/",
        "RULE:[/x/",
        "RULE:\\p{Lu}/x/",
        "RULE:[\\p{Lu}]/x/",
        "RULE:\\h+/x/",
        "RULE:\\R/x/",
        "RULE:a{99999999999}/x/",
    ],
)
def test_unsupported_settings_stop_the_start(rules):
    with pytest.raises(ConfigError, match=f"{KEY}: RULE:"):
        SslPrincipalMapper.parse(rules)


def test_no_rule_matches():
    mapper = SslPrincipalMapper.parse("RULE:^OU=(.*)$/$1/,RULE:^UID=(.*)$/$1/U")
    with pytest.raises(NoMatchingRuleError) as caught:
        mapper.name("CN=a")
    assert str(caught.value) == "No rules apply to CN=a, rules [RULE:^OU=(.*)$/$1, RULE:^UID=(.*)$/$1/U]"


def test_the_whole_match_is_a_group():
    assert SslPrincipalMapper.parse("RULE:^CN=(.*)$/$09/").name("CN=a") == "CN=a9"


@pytest.mark.parametrize(("pattern", "text", "replacement", "result"), JAVA["replacements"])
def test_expressions_match_as_in_java(pattern, text, replacement, result):
    assert replace_all(java_pattern(pattern), text, replacement) == result


@given(st.text("ab(|)*+?[]^$\\.{}1,<>:=!-&Q"), st.text("ab"))
def test_any_expression_is_accepted_or_refused(expression, text):
    try:
        pattern = java_pattern(expression)
    except ConfigError:
        return
    assert isinstance(pattern, re.Pattern)
    assert all(match.end() <= len(text) for match in find_all(pattern, text))
