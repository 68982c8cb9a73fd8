"""A state source as a file of tests names it."""

from pathlib import Path

import pytest

from aclog.metalog.errors import ConfigError, MetadataError
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.yaml_nodes import parse_documents
from aclog.sources.named_source import NamedSource, absolute_moment, parse_source
from tests.support.cli.command import aclog

RULE = (
    '{"resourceType":"TOPIC","resourceName":"t","patternType":"LITERAL","principal":"User:a","host":"*",'
    '"operation":"READ","permissionType":"ALLOW"}\n'
)


def source(text: str, directory: Path = Path("repo")) -> NamedSource:
    (document,) = parse_documents(b"rules: " + text.encode(), "tests.yaml")
    return parse_source(document.required("rules"), directory)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("kafka", "acls", "repo/kafka"),
        ("rules.jsonl", "acls", "repo/rules.jsonl"),
        ("/abs/rules.jsonl", "acls", "/abs/rules.jsonl"),
        ("00000000000000000003-0000000001.checkpoint", "snapshot", "repo/00000000000000000003-0000000001.checkpoint"),
        ("{log: prod}", "log", "repo/prod"),
        ("{bootstrap-controller: 'c1:9093,c2:9093'}", "bootstrap-controller", "c1:9093,c2:9093"),
        ("{bootstrap-server: 'b:9092'}", "bootstrap-server", "b:9092"),
        ("{ref: 'main:kafka'}", "ref", "main:kafka"),
    ],
)
def test_each_kind(text: str, kind: str, value: str) -> None:
    found = source(text)
    assert (found.kind, found.value, found.place) == (kind, value, "tests.yaml:1")


def test_what_goes_with_a_kind() -> None:
    acls = source("{acls: kafka, format: ksm, modules: {acl: ../modules/acl}}")
    assert (acls.form, acls.modules) == (AclsFormat.KSM, {"acl": "modules/acl"})
    assert source("{log: prod, as-of: 30d ago}").as_of == "30d ago"
    assert source("{log: prod, as-of: 70000}").as_of == "70000"
    assert source("{bootstrap-server: 'b:9092', command-config: c.properties}").command_config == "repo/c.properties"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{}", "exactly one of log, snapshot, acls"),
        ("{log: a, acls: b}", "exactly one of log, snapshot, acls"),
        ("{lgo: a}", "unknown key 'lgo': did you mean log?"),
        ("[a, b]", "is a list: expected text"),
        ("{log: a, as-of: 03/04/2026}", "as-of: invalid offset or time '03/04/2026': which is the month"),
        ("{log: a, format: ksm}", "format: only together with acls or ref, not log"),
        ("{acls: a, as-of: 3}", "as-of: only together with log or bootstrap-controller or context, not acls"),
        ("{acls: a, format: xml}", "format 'xml' is not one of auto, jsonl"),
        ("{log: a, as-of: 999999w ago}", "before the year 1"),
        ("''", "expected a path"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=r"tests\.yaml:1: ") as found:
        source(text)
    assert complaint in str(found.value)


def test_an_age_counts_from_now() -> None:
    now = 1_790_000_000_000
    assert absolute_moment("30d ago", now_ms=now) == "2026-08-22T14:13:20Z"
    assert absolute_moment("90 m ago", now_ms=now) == "2026-09-21T12:43:20Z"
    assert absolute_moment("2026-01-01T00:00:00Z", now_ms=now) == "2026-01-01T00:00:00Z"


def test_a_directory_is_a_log_or_files_of_rules(tmp_path: Path) -> None:
    rules = tmp_path / "kafka"
    rules.mkdir()
    (rules / "a.jsonl").write_text(RULE)
    aclog("import", rules / "a.jsonl", "--log", tmp_path / "log").ok()
    for name in ("kafka", "log"):
        found = source(name, tmp_path)
        assert found.kind == ("log" if name == "log" else "acls")
        assert len(found.open(lambda _: None).image().acls) == 1
    assert len(source("{log: log, as-of: 0}", tmp_path).open(lambda _: None).image().acls) == 0


def test_what_cannot_be_read_is_trouble(tmp_path: Path) -> None:
    with pytest.raises((MetadataError, OSError)):
        source("missing.jsonl", tmp_path).open(lambda _: None).image()
    with pytest.raises(MetadataError):
        source("{log: missing}", tmp_path).open(lambda _: None).image()
    aclog("import", "--log", tmp_path / "log", "-", stdin=RULE.encode()).ok()
    with pytest.raises(MetadataError, match="the state is unknown"):
        source("{log: log, as-of: 30d ago}", tmp_path).open(lambda _: None).image()
