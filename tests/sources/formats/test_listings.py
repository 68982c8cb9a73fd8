"""Listings of rpk, the confluent CLI and aclog itself, read back."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl, StandardAclWithId, object_of_rule
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.sources.choice import AclsSource
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.runs.profiles import examples

RULES = (
    acl("orders", "User:app"),
    acl("a-", "User:CN=a,O=b", "10.0.0.1", AclOperation.ALTER_CONFIGS, pattern_type=PatternType.PREFIXED),
    acl("*", "RedpandaRole:ops", resource_type=ResourceType.GROUP, permission_type=AclPermissionType.DENY),
    acl("kafka-cluster", "User:*", operation=AclOperation.ALL, resource_type=ResourceType.CLUSTER),
    acl("t", "User:b", operation=AclOperation.WRITE, resource_type=ResourceType.TRANSACTIONAL_ID),
)
RPK_TITLES = (
    *(
        "PRINCIPAL",
        "HOST",
        "RESOURCE-TYPE",
        "RESOURCE-NAME",
        "RESOURCE-PATTERN-TYPE",
        "OPERATION",
        "PERMISSION",
        "ERROR",
    ),
)
CONFLUENT_TITLES = ("Principal", "Permission", "Operation", "Host", "Resource Type", "Resource Name", "Pattern Type")


def rpk_cells(rule: StandardAcl) -> list[str]:
    row = object_of_rule(rule)
    keys = ("principal", "host", "resourceType", "resourceName", "patternType", "operation", "permissionType")
    return [row[key] for key in keys] + [""]


def rpk_table(rules: tuple[StandardAcl, ...]) -> str:
    """Return a table as Go's tabwriter aligns it: two blanks behind the longest cell of a column."""
    rows = [list(RPK_TITLES), *map(rpk_cells, rules)]
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    return "".join(
        "".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows
    )


def rpk_json(rules: tuple[StandardAcl, ...]) -> str:
    keys = ("principal", "host", "resource_type", "resource_name", "resource_pattern_type", "operation", "permission")
    return json.dumps({"matches": [dict(zip(keys, rpk_cells(rule), strict=False)) for rule in rules]})


def confluent_cells(rule: StandardAcl) -> list[str]:
    row = object_of_rule(rule)
    keys = ("principal", "permissionType", "operation", "host", "resourceType", "resourceName", "patternType")
    return [row[key] for key in keys]


def confluent_table(rules: tuple[StandardAcl, ...]) -> str:
    rows = [list(CONFLUENT_TITLES), *map(confluent_cells, rules)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    rule = "+".join("-" * (width + 2) for width in widths)
    return "".join(f"  {line}\n" for line in (lines[0], rule, *lines[1:]))


def confluent_json(rules: tuple[StandardAcl, ...]) -> str:
    keys = ("principal", "permission", "operation", "host", "resource_type", "resource_name", "pattern_type")
    return json.dumps([dict(zip(keys, confluent_cells(rule), strict=True)) for rule in rules], indent=2)


LISTINGS = {
    "rpk.txt": rpk_table,
    "rpk": rpk_table,
    "rpk.json": rpk_json,
    "confluent.txt": confluent_table,
    "confluent": confluent_table,
    "confluent.json": confluent_json,
}


def read(path: Path) -> set[StandardAcl]:
    return {rule.acl for rule in AclsSource(str(path)).image().acls}


@pytest.mark.parametrize("name", LISTINGS)
def test_a_listing_is_recognized(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(LISTINGS[name](RULES))
    assert read(tmp_path) == set(RULES)
    assert read(tmp_path / name) == set(RULES)
    piped = aclog("acls", "list", "--acls", "-", "--format", "jsonl", stdin=(tmp_path / name).read_bytes()).ok()
    assert len(piped.lines) == len(RULES)


def test_confluent_cloud_lists_no_hosts(tmp_path: Path) -> None:
    lines = confluent_table((RULES[0],)).splitlines()
    cut = ["|".join(part for n, part in enumerate(line.replace("+", "|").split("|")) if n != 3) for line in lines]
    (tmp_path / "x.txt").write_text("\n".join(cut) + "\n")
    assert read(tmp_path) == {RULES[0]}


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("rpk.txt", rpk_table(RULES).replace("READ", "REED"), "rpk.txt:2: 'REED' is not one of"),
        ("rpk.txt", rpk_table(RULES).replace("orders", "orders-and-much-more-than-that"), "rpk.txt:2: "),
        ("confluent.txt", confluent_table(RULES).replace("orders", "a|b   "), "confluent.txt:3: 8 columns"),
        ("confluent.json", confluent_json(RULES).replace("READ", "REED"), "confluent.json:3: 'REED'"),
        ("rpk.json", rpk_json(RULES).replace("LITERAL", "GLOB", 1), "rpk.json:1: 'GLOB'"),
    ],
)
def test_what_is_no_listing_is_refused(tmp_path: Path, name: str, text: str, what: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError) as caught:
        read(tmp_path / name)
    assert what in str(caught.value)


# aclog's own


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "table", "kafka"])
def test_aclogs_own_lists_are_read_back(tmp_path: Path, form: str) -> None:
    (tmp_path / "rules.jsonl").write_text("".join(f"{json.dumps(object_of_rule(rule))}\n" for rule in RULES))
    listed = aclog("acls", "list", "--acls", tmp_path / "rules.jsonl", "--format", form).ok()
    suffix = {"table": ".txt", "kafka": ".txt"}.get(form, f".{form}")
    for name in (f"a/list{suffix}", "b/list"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(listed.out)
        assert read(tmp_path / name) == set(RULES)
    if form != "jsonl":
        assert read(tmp_path / "a") == set(RULES)
    piped = aclog("acls", "list", "--acls", "-", "--format", "jsonl", stdin=listed.out.encode()).ok()
    assert len(piped.lines) == len(RULES)


def test_ids_come_back_and_symbols_are_refused_where_they_would_be_lost(tmp_path: Path) -> None:
    row = {**StandardAclWithId(id=None, acl=RULES[0]).to_dict(), "id": "AAAAAAAAAAAAAAAAAAAAAQ"}
    symbol = {**row, "id": None, "principal": "User:${x.id}", "symbolic": "principal"}
    (tmp_path / "one.jsonl").write_text(json.dumps(row))
    (tmp_path / "symbol.jsonl").write_text(json.dumps(symbol))
    back = aclog("acls", "list", "--acls", tmp_path / "one.jsonl", "--format", "json").ok().out
    (tmp_path / "back.json").write_text(back)
    assert aclog("acls", "list", "--acls", tmp_path / "back.json", "--format", "json").ok().out == back
    for form, code in (("json", 0), ("csv", 2), ("table", 2)):
        listed = aclog("acls", "list", "--acls", tmp_path / "symbol.jsonl", "--format", form).ok().out
        assert aclog("acls", "list", "--acls", "-", stdin=listed.encode()).code == code


@pytest.mark.parametrize(
    "text",
    ["[", "[{}]", '[{"resourceType":"TOPIC"}]', "[1]", '{"resourceType":1}', "[{}", "[{} {}]", "[]x"],
)
def test_a_broken_array_is_refused(tmp_path: Path, text: str) -> None:
    whole = json.dumps(object_of_rule(RULES[0]))
    (tmp_path / "x.json").write_text(text.replace("{}", whole))
    if text == "[{}]":
        assert read(tmp_path / "x.json") == {RULES[0]}
        return
    with pytest.raises(ConfigError):
        read(tmp_path / "x.json")


_WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=9)


@settings(max_examples=examples(60))
@given(rules=st.lists(st.builds(acl, _WORDS, _WORDS.map("User:{}".format)), min_size=1, max_size=4, unique=True))
@pytest.mark.parametrize("form", ["json", "csv"])
def test_any_names_come_back(tmp_path_factory, form, rules) -> None:
    directory = tmp_path_factory.mktemp("lists")
    (directory / "rules.jsonl").write_text("".join(f"{json.dumps(object_of_rule(rule))}\n" for rule in rules))
    listed = aclog("acls", "list", "--acls", directory / "rules.jsonl", "--format", form).ok().out
    (directory / f"x.{form}").write_text(listed)
    if form == "csv" and "${" in listed:
        return
    assert read(directory / f"x.{form}") == set(rules)
