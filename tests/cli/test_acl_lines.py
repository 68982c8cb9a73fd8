import gzip
import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl, StandardAclWithId, rule_fields, rule_json
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.sources.acl_lines import blocks, numbered, parse_acl, read_acls
from tests.support.cli.command import aclog
from tests.support.cli.repository import Repository

DATA = Path(__file__).parents[1] / "data"
SMALL = DATA / "kafka-4.3.1-small/expected/acls.jsonl"
CHURN = DATA / "kafka-4.3.1-churn/expected/acls.jsonl.gz"

RULE = {
    "resourceType": "TOPIC",
    "resourceName": "orders",
    "patternType": "PREFIXED",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permissionType": "ALLOW",
    "id": "JCfGj5ocQb6uGSddU7P83A",
}

rules = st.builds(
    StandardAclWithId,
    id=st.none() | st.uuids(),
    acl=st.builds(
        StandardAcl,
        resource_type=st.sampled_from(ResourceType),
        resource_name=st.text(),
        pattern_type=st.sampled_from(PatternType),
        principal=st.text(),
        host=st.text(),
        operation=st.sampled_from(AclOperation),
        permission_type=st.sampled_from(AclPermissionType),
    ),
)


@given(rules)
def test_a_line_reads_back_as_the_same_acl(rule):
    line = rule_json(rule)
    assert "\n" not in line
    assert parse_acl(line.encode()) == rule


def test_keys_are_in_the_sort_order_of_the_lines():
    assert list(json.loads(rule_json(parse_acl(json.dumps(RULE).encode())))) == list(RULE)


def test_an_id_may_be_missing_or_null():
    for line in ({**RULE, "id": None}, {key: value for key, value in RULE.items() if key != "id"}):
        assert parse_acl(json.dumps(line).encode()).id is None


@pytest.mark.parametrize("path", [SMALL, CHURN], ids=["plain", "gzip"])
def test_fixtures_are_read_and_are_sorted(path):
    found = list(read_acls(str(path)))
    assert len(found) == {SMALL: 68, CHURN: 12_000}[path]
    assert sorted(found, key=rule_fields) == found


def test_stdin_is_read_gzipped_or_not(monkeypatch):
    for content in (SMALL.read_bytes(), gzip.compress(SMALL.read_bytes())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
        assert list(read_acls("-")) == list(read_acls(str(SMALL)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"host": ...}, "key host is missing"),
        ({"host": 7}, "host must be a string, not 7"),
        ({"host": "\ud800"}, "host has a lone surrogate at character 0"),
        ({"operation": "FLY"}, "operation 'FLY' is not one of UNKNOWN, ANY, ALL, READ"),
        ({"resourceType": "topic"}, "resourceType 'topic' is not one of"),
        ({"id": "x"}, "'x' is not a Kafka uuid"),
        ({"id": 5}, "id must be a string, not 5"),
    ],
)
def test_an_invalid_line_is_reported_with_its_number(tmp_path, change, message):
    bad = {key: value for key, value in {**RULE, **change}.items() if value is not ...}
    path = tmp_path / "acls.jsonl"
    path.write_text(json.dumps(RULE) + "\n\n" + json.dumps(bad) + "\n")
    with pytest.raises(ConfigError) as error:
        list(read_acls(str(path)))
    assert str(error.value).startswith(f"{path}: line 3: {message}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "not JSON"),
        (b"\xff{}", "byte 0 is not UTF-8"),
        (b"[1]", "expected a JSON object, not list"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"1" * 5_000, "not JSON"),
    ],
)
def test_a_line_that_is_not_an_object_is_refused(line, message):
    with pytest.raises(ConfigError, match=message):
        parse_acl(line)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_raise_only_config_errors(line):
    with pytest.raises(ConfigError):
        parse_acl(line)


def test_a_truncated_gzip_file_is_an_error(tmp_path):
    path = tmp_path / "acls.jsonl.gz"
    path.write_bytes(CHURN.read_bytes()[:5000])
    with pytest.raises(ConfigError, match=r"acls\.jsonl\.gz: damaged or truncated gzip file"):
        list(read_acls(str(path)))


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path, monkeypatch):
    content = b"\xef\xbb\xbf" + SMALL.read_bytes()
    expected = list(read_acls(str(SMALL)))
    for name, data in (("rules.jsonl", content), ("rules.jsonl.gz", gzip.compress(content))):
        (tmp_path / name).write_bytes(data)
        assert list(read_acls(str(tmp_path / name))) == expected
    repository = Repository.create(tmp_path / "repository")
    repository.write({"rules.jsonl": content.decode("utf-8")})
    repository.commit({})
    monkeypatch.chdir(repository.path)
    for source in (("--acls", tmp_path / "rules.jsonl"), ("--ref", "HEAD:rules.jsonl")):
        listed = aclog("acls", "list", *source, "--format", "jsonl").ok()
        assert len(listed.lines) == len(expected)


def test_an_endless_line_is_not_read_into_memory(tmp_path):
    path = tmp_path / "endless"
    path.write_bytes(b"x\n" + b" " * (6 << 20))
    with pytest.raises(ConfigError, match=r"endless: line 2 is longer than 4194304 bytes"):
        list(numbered(str(path)))


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)))
def test_blocks_contain_every_line(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("lines") / "file"
    path.write_bytes(b"\n".join([*lines, b""]) if lines else b"")
    expected = lines if b"\n".join([*lines, b""])[:2] != b"\x1f\x8b" else None
    if expected is not None:
        assert [line for block in blocks(str(path)) for line in block] == expected
