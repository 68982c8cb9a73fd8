"""Files of Kafka Security Manager: what its CSV and YAML say, and that of tools with nearly the same CSV."""

import csv
import io
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.sources.choice import AclsSource
from tests.support.cli.command import aclog
from tests.support.sources.files_of_rules import read_rules, refused, write_files

_HEADER = "KafkaPrincipal,ResourceType,PatternType,ResourceName,Operation,PermissionType,Host\n"


def _read(directory: Path, name: str, text: str) -> dict[str, list[int]]:
    (directory / name).write_text(text, newline="")
    return read_rules(directory / name).rules


def test_csv_with_empty_lines_quotes_and_any_case(tmp_path: Path) -> None:
    text = (
        _HEADER + "User:alice,Topic,LITERAL,orders,Read,Allow,*\n"
        "\n"
        '"User:CN=a,O=b",GROUP,prefixed,"x ""y""",describe,DENY,10.0.0.1\n'
        "User:a,TransactionalId,Literal,*,idempotentwrite,allow,*"
    )
    expected = {
        "ALLOW READ TOPIC orders to User:alice": [2],
        'DENY DESCRIBE GROUP x "y"* to User:CN=a,O=b from 10.0.0.1': [4],
        "ALLOW IDEMPOTENT_WRITE TRANSACTIONAL_ID * to User:a": [5],
    }
    assert _read(tmp_path, "acls.csv", text) == expected
    assert _read(tmp_path, "acls.csv", "\ufeff" + text.replace("\n", "\r\n")) == expected


def test_csv_of_before_kafka_2_has_no_pattern_type_and_names_are_literal(tmp_path: Path) -> None:
    text = (
        "KafkaPrincipal;ResourceType;ResourceName;Operation;PermissionType;Host;Why\nUser:a;Topic;t*;All;Allow;*;so\n"
    )
    assert _read(tmp_path, "acls.csv", text) == {"ALLOW ALL TOPIC t* to User:a": [2]}
    (rule,) = AclsSource(str(tmp_path / "acls.csv")).image().acls
    assert rule.acl.pattern_type == PatternType.LITERAL


def test_csv_that_conduktor_exports_has_kafkas_enum_names(tmp_path: Path) -> None:
    text = _HEADER + "User:john,CLUSTER,LITERAL,kafka-cluster,IDEMPOTENT_WRITE,ALLOW,*\n"
    assert _read(tmp_path, "x.csv", text) == {"ALLOW IDEMPOTENT_WRITE CLUSTER kafka-cluster to User:john": [2]}


def test_csv_of_kafka_ui_has_another_first_column_and_spaces_around_cells(tmp_path: Path) -> None:
    text = (
        _HEADER.removeprefix("Kafka").replace(",", ", ") + "User:a, USER, LITERAL, User:b, CREATE_TOKENS, ALLOW, *\n\n"
    )
    assert _read(tmp_path, "x.csv", text) == {"ALLOW CREATE_TOKENS USER User:b to User:a": [2]}


_ROW = "User:a,Topic,LITERAL,t,Read,Allow,*\n"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (_HEADER + _ROW + "# a comment\n", "3: 1 cells below a header of 7"),
        (_HEADER + " \n", "2: 1 cells below"),
        (
            _HEADER + "User:CN=a,O=b,Topic,LITERAL,t,Read,Allow,*\n",
            "2: 8 cells below a header of 7: quote",
        ),
        (_HEADER + "User:a,Topic,LITERAL,t,Read,Allow\n", "2: 6 cells below"),
        (_HEADER + _ROW.replace("Read", " Read"), "2: Operation ' Read' is not one of ALL, READ"),
        (_HEADER + _ROW.replace("Read", "Any"), "2: Operation 'Any' is not one of"),
        (_HEADER + _ROW.replace("Read", "wr\u0131te"), "2: Operation 'wr\u0131te' is not one of"),
        (_HEADER + _ROW.replace("LITERAL", "MATCH"), "2: PatternType 'MATCH' is not one of LITERAL, PREFIXED"),
        (_HEADER + _ROW.replace("LITERAL", ""), "2: PatternType '' is not one of"),
        (_HEADER + _ROW.replace("Topic", "Topics"), "2: ResourceType 'Topics' is not one of TOPIC, GROUP"),
        (_HEADER + _ROW.replace("User:a", "alice"), "2: no Kafka accepts this rule"),
        (_HEADER + _ROW.replace(",t,", ",,"), "2: no Kafka accepts this rule: Invalid empty resource name"),
        (_HEADER + _ROW.replace("Topic", "Cluster"), "2: no Kafka accepts this rule: The only valid name"),
        (_HEADER + _ROW + 'User:a,"Topic\nx,y\n', "3: not CSV: a cell is either wholly in quotes or has none"),
        (_HEADER + '"User:a\nb",Topic,LITERAL,t,Read,Allow,*\n\n' + 'User:a"b' + _ROW[6:], "5: not CSV"),
        (_HEADER + "User:a\u2028b" + _ROW[6:], "2: not CSV"),
        ("\n" + _HEADER + _ROW, "2: on another line than the first: the header"),
        (_HEADER.replace(",Host", ""), "1: Host missing in the header: expected KafkaPrincipal,"),
        (_HEADER.replace("PatternType", "Pattern"), "1: a column 'Pattern' and none PatternType"),
        (_HEADER.replace("Host", "Host,Host"), "1: duplicate column 'Host'"),
        (_HEADER[5:] + '"User:CN=a,O=b",TOPIC,LITERAL,t,READ,ALLOW,*\n', "2: expected 7 cells"),
        (_HEADER[5:] + "User:a,TOPIC,LITERAL, ,READ,ALLOW,*\n", "2: expected 7 cells, each with text"),
    ],
)
def test_csv_that_is_not_understood_is_named_with_its_line(tmp_path: Path, text: str, where: str) -> None:
    (tmp_path / "acls.csv").write_text(text)
    assert refused(tmp_path / "acls.csv").startswith(f"{tmp_path / 'acls.csv'}:{where}")


_YAML = """\
users:
  alice:
    topics:
      orders: [Read]
      bill.*:
        - Consume
      ' * ': [all]
      '**':
        - Write,Deny,10.0.0.1
  CN=b,O=c:
    topics:
      out: [Produce]
    groups:
    transactional_ids:
      tx-*:
        - "Write,Allow,*,"
    clusters:
      kafka-cluster: [IDEMPOTENTWRITE, "Create,"]
      '*': [Alter]
  nobody: {}
"""


def test_yaml_of_users_with_stars_and_helpers(tmp_path: Path) -> None:
    assert _read(tmp_path, "acls.yml", _YAML) == {
        "ALLOW READ TOPIC orders to User:alice": [4],
        "ALLOW DESCRIBE TOPIC bill.* to User:alice": [6],
        "ALLOW READ TOPIC bill.* to User:alice": [6],
        "ALLOW ALL TOPIC * to User:alice": [7],
        "DENY WRITE TOPIC ** to User:alice from 10.0.0.1": [9],
        "ALLOW DESCRIBE TOPIC out to User:CN=b,O=c": [12],
        "ALLOW CREATE TOPIC out to User:CN=b,O=c": [12],
        "ALLOW WRITE TOPIC out to User:CN=b,O=c": [12],
        "ALLOW CREATE CLUSTER * to User:CN=b,O=c": [12],
        "ALLOW WRITE TRANSACTIONAL_ID tx-* to User:CN=b,O=c": [16],
        "ALLOW IDEMPOTENT_WRITE CLUSTER kafka-cluster to User:CN=b,O=c": [18],
        "ALLOW CREATE CLUSTER kafka-cluster to User:CN=b,O=c": [18],
        "ALLOW ALTER CLUSTER * to User:CN=b,O=c": [19],
    }
    patterns = {
        rule.acl.resource_name: rule.acl.pattern_type for rule in AclsSource(str(tmp_path / "acls.yml")).image().acls
    }
    assert (patterns["orders"], patterns["bill."], patterns["tx-"]) == (3, 4, 4)
    assert patterns["*"] == PatternType.LITERAL or "**" in _YAML


_USER = "users:\n  a:\n    topics:\n      t:\n        - Read\n"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (_USER + "        - Fetch\n", "6: the operation 'Fetch' is not one of all, read,"),
        (_USER + "        - IDEMPOTENT_WRITE\n", "6: the operation 'IDEMPOTENT_WRITE' is not one of"),
        (_USER + "        - CreateTokens\n", "6: the operation 'CreateTokens' is not one of"),
        (_USER + "        - Read,Deny\n", "6: 'Read,Deny': expected OPERATION or OPERATION,Allow,HOST"),
        (_USER + "        - Read, Deny,*\n", "6: 'Read, Deny,*': expected"),
        (_USER + "        - Consume,Allow,*\n", "6: the operation 'Consume' is not one of"),
        (_USER + "        - [Read]\n", "6: an operation is a list: expected text"),
        (_USER + "        -\n", "6: an operation is null: expected text"),
        (_USER + "      u: Read\n", "6: 'u' is 'Read': expected a list"),
        (_USER + "      u:\n", "6: 'u' is null: expected a list"),
        (_USER + "      '':\n        - Read\n", "7: no Kafka accepts this rule: Invalid empty resource name"),
        (_USER + "    groups: [g]\n", "6: resources is a list: expected a mapping"),
        (_USER + "    groups: {g: [Consume]}\n", "6: the operation 'Consume' is not one of"),
        (_USER + "    transactionalids: {x: [All]}\n", "6: user 'a' has an unknown key 'transactionalids'"),
        (_USER + "    clusters: {other: [Create]}\n", "6: no Kafka accepts this rule: The only valid name"),
        (_USER + "  b:\n", "6: user 'b' is null: expected a mapping"),
        (_USER + "groups: {}\n", "6: a file of Kafka Security Manager has an unknown key 'groups'"),
        (_USER + "  a: {}\n", "6: duplicate key 'a'"),
        (_USER + "\t- x\n", "6: not YAML"),
    ],
)
def test_yaml_that_is_not_understood_is_named_with_its_line(tmp_path: Path, text: str, where: str) -> None:
    (tmp_path / "acls.yaml").write_text(text)
    message = refused(tmp_path / "acls.yaml")
    assert message.startswith(f"{tmp_path / 'acls.yaml'}:{where}")


def test_what_comes_from_stdin_is_csv_if_its_first_line_is_a_header_and_else_yaml() -> None:
    for text in (_HEADER + _ROW, _USER):
        listed = aclog("acls", "list", "--acls", "-", "--acls-format", "ksm", "--format", "jsonl", stdin=text.encode())
        assert '"resourceName":"t"' in listed.ok().out


def test_users_of_other_tools_are_left_to_them(tmp_path: Path) -> None:
    files = {
        "ksm.yaml": _USER,
        "gitops.yaml": "users:\n  a:\n    principal: User:g\n    roles: [reader]\n",
        "other.yaml": "users:\n  bob: {groups: [wheel], topics: x}\n",
        "more.csv": "name,principal\na,b\n",
        "ksm.csv": _HEADER + _ROW,
    }
    found = read_rules(write_files(tmp_path, files))
    assert "ALLOW READ TOPIC * to User:g" in found.rules
    assert found.rules["ALLOW READ TOPIC t to User:a"] == [2, 5]
    assert found.ignored == {"other file": 2}


_NAMES = st.text(min_size=1)
_ACLS = st.builds(
    StandardAcl,
    resource_type=st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID]),
    resource_name=_NAMES,
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    principal=_NAMES.map(lambda name: f"User:{name}"),
    host=st.sampled_from(["*", "10.0.0.1", "::1"]),
    operation=st.sampled_from([each for each in AclOperation if AclOperation.ANY < each < AclOperation.CREATE_TOKENS]),
    permission_type=st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY]),
)


def _csv(acls: list[StandardAcl]) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(_HEADER.strip().split(","))
    for acl in acls:
        operation, permission = AclOperation(acl.operation).name, AclPermissionType(acl.permission_type).name
        kind, pattern = ResourceType(acl.resource_type).name, PatternType(acl.pattern_type).name
        writer.writerow([acl.principal, kind, pattern, acl.resource_name, operation, permission, acl.host])
    return out.getvalue()


@given(st.lists(_ACLS, max_size=5))
def test_whatever_csv_says_is_read_exactly(tmp_path_factory: pytest.TempPathFactory, acls: list[StandardAcl]) -> None:
    path = tmp_path_factory.getbasetemp() / "rules.csv"
    path.write_text(_csv(acls), encoding="utf-8", newline="")
    assert {rule.acl for rule in AclsSource(str(path)).image().acls} == set(acls)


_SECTIONS = {
    ResourceType.TOPIC: "topics",
    ResourceType.GROUP: "groups",
    ResourceType.TRANSACTIONAL_ID: "transactional_ids",
}


@given(st.lists(_ACLS.filter(lambda acl: acl.resource_name[0] > " " < acl.resource_name[-1]), min_size=1, max_size=5))
def test_whatever_yaml_says_is_read_exactly(tmp_path_factory: pytest.TempPathFactory, acls: list[StandardAcl]) -> None:
    acls = [acl for acl in acls if acl.pattern_type == PatternType.PREFIXED or acl.resource_name[-1] != "*"]
    users: dict[str, dict[str, dict[str, list[str]]]] = {"z": {"topics": {"t": ["Read"]}}}
    for acl in acls:
        name = acl.resource_name + "*" * (acl.pattern_type == PatternType.PREFIXED)
        user = users.setdefault(acl.principal.removeprefix("User:"), {})
        operation = AclOperation(acl.operation).name.title().replace("_", "")
        entry = f"{operation},{AclPermissionType(acl.permission_type).name.title()},{acl.host}"
        user.setdefault(_SECTIONS[ResourceType(acl.resource_type)], {}).setdefault(name, []).append(entry)
    path = tmp_path_factory.getbasetemp() / "rules.yaml"
    path.write_text(yaml.safe_dump({"users": users}), encoding="utf-8")
    read = {rule.acl for rule in AclsSource(str(path)).image().acls}
    assert {acl for acl in read if acl.principal != "User:z"} == {acl for acl in acls if acl.principal != "User:z"}
