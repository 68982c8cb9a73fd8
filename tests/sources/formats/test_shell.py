"""Commands of kafka-acls in shell scripts: what they add, and what a shell would make of them."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import ChangePlace, StandardAcl, acl_command
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.reading import ReadFiles, read_tree
from aclog.sources.formats.rule import DirectoryTree, ReadContext
from tests.support.builders.acls import acl
from tests.support.runs.profiles import examples
from tests.support.sources.files_of_rules import rule_text, write_files

ADD = "kafka-acls.sh --bootstrap-server b:9092 --add --allow-principal 'User:*' --operation All --topic '*'"
ALL = "ALLOW ALL TOPIC * to User:*"


def read(directory: Path, text: str, form: AclsFormat = AclsFormat.SHELL) -> ReadFiles:
    tree = DirectoryTree(str(write_files(directory, {"acls.sh": f"#!/bin/sh\n{text}\n"})))
    return read_tree(ReadContext(tree=tree), form)


def rules(found: ReadFiles) -> set[str]:
    return {rule_text(rule.acl) for rule in found.stated.rules()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ADD, {ALL}),
        (ADD.replace("kafka-acls.sh", "kafka-acls"), {ALL}),
        (ADD.replace("kafka-acls.sh", "/opt/kafka/bin/kafka-acls.sh"), {ALL}),
        (ADD.replace("kafka-acls.sh", '"$KAFKA_HOME"/bin/kafka-acls.sh'), {ALL}),
        (ADD.replace("kafka-acls.sh", "docker exec -it broker kafka-acls.sh"), {ALL}),
        (ADD.replace("b:9092", '"$SERVERS" --command-config $CONFIG'), {ALL}),
        (ADD.replace(" --", " \\\n  --"), {ALL}),
        (ADD.replace("'User:*'", '"User:*"').replace("'*'", "\\*"), {ALL}),
        (ADD.replace(" 'User:*'", "='User:*'"), {ALL}),
        (f"set -e\n{ADD} > log 2>&1; echo done # '", {ALL}),
        (f"cd x && {ADD}", {ALL}),
        (f"set -e && kafka-acls --list && {ADD}", {ALL}),
        (f"exec > log 2>&1\n{ADD}", {ALL}),
        (f"cat <<EOF\nx\nEOF\n{ADD}", {ALL}),
        (f"cat <<-'EOF'; echo\n{{ (\n\tEOF\n{ADD}", {ALL}),
        (f"grep a <<< x\n{ADD}", {ALL}),
        (f"KAFKA_OPTS=$X A=b sudo {ADD}", {ALL}),
        (f"kubectl -n kafka exec -it pod-0 -c kafka -- {ADD}", {ALL}),
        (f"docker compose exec -T kafka {ADD}", {ALL}),
        (ADD.replace(" --operation All", ""), {ALL}),
        (
            ADD.replace("All", "Read --operation describe-configs"),
            {"ALLOW READ TOPIC * to User:*", "ALLOW DESCRIBE_CONFIGS TOPIC * to User:*"},
        ),
        (ADD.replace("--topic '*'", "--group g --resource-pattern-type PREFIXED"), {"ALLOW ALL GROUP g* to User:*"}),
        (ADD.replace("--topic '*'", "--cluster"), {"ALLOW ALL CLUSTER kafka-cluster to User:*"}),
        (
            ADD.replace("--allow-principal", "--deny-host 10.0.0.1 --deny-principal"),
            {"DENY ALL TOPIC * to User:* from 10.0.0.1"},
        ),
        (
            "kafka-acls --add --allow-principal User:a --producer --topic t --transactional-id x --idempotent",
            {
                *(f"ALLOW {each} TOPIC t to User:a" for each in ("WRITE", "DESCRIBE", "CREATE")),
                *(f"ALLOW {each} TRANSACTIONAL_ID x to User:a" for each in ("WRITE", "DESCRIBE")),
                "ALLOW IDEMPOTENT_WRITE CLUSTER kafka-cluster to User:a",
            },
        ),
        (
            "kafka-acls --add --allow-principal User:a --consumer --topic t --group g",
            {*(f"ALLOW {each} TOPIC t to User:a" for each in ("READ", "DESCRIBE")), "ALLOW READ GROUP g to User:a"},
        ),
        ("kafka-acls --list --topic $X", set()),
    ],
)
def test_what_a_command_adds(tmp_path: Path, text: str, expected: set[str]) -> None:
    found = read(tmp_path, text)
    assert rules(found) == expected
    assert found.unread == ()


@pytest.mark.parametrize(
    "text",
    [
        ADD.replace("'User:*'", "User:$1"),
        ADD.replace("'User:*'", '"User:${NAME}"'),
        ADD.replace("'User:*'", "`whoami`"),
        ADD.replace("'*'", "*"),
        f"if true; then {ADD}; fi",
        f"for t in a b; do\n{ADD}\ndone",
        f"while read x; do {ADD}; done",
        f"add() {{\n  {ADD}\n}}",
        f"test -f x || {ADD}",
        "# of kafka-acls\n$CMD --add --topic x",
        "$CMD --allow-principal User:a",
        f'docker exec k bash -c "{ADD}"',
        f"cat <<EOF\n{ADD}\nEOF",
        f"sh <<'EOF'\n{ADD}\nEOF",
        f"echo {ADD}",
        f"docker exec k echo {ADD}",
        f"false && {ADD}",
        f"false && cd x && {ADD}",
        f'[ "$ENV" = prod ] && {ADD}',
        ADD.replace("'User:*'", "User:a{b,c}"),
        ADD.replace("'User:*'", "User:a{1..3}"),
        f"exit\n{ADD}",
        f"exec bash; {ADD}",
        f"return 1\n{ADD}",
        "CMD='kafka-acls --bootstrap-server b:9092'",
        f"( {ADD} )",
        ADD.replace("--add", "--remove --force"),
        f"case $1 in\n a) {ADD};;\nesac",
    ],
)
def test_what_may_run_otherwise_is_unread(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, text)
    assert rules(found) == set()
    assert [each.label for each in found.unread] == ["program:kafka-acls"]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("All", "Reed", "--operation 'Reed' is unknown"),
        ("--topic '*'", "", "expected a resource"),
        ("--allow-principal 'User:*'", "", "expected --allow-principal"),
        ("--topic '*'", "--topik t", "'--topik' is no flag"),
        ("--add ", "", "expected --add, --remove or --list"),
        ("'User:*'", "alice", "no Kafka accepts this rule"),
        ("--topic", "--resource-pattern-type match --topic", "expected literal or prefixed"),
        ("--topic", "--producer --topic", "--operation together with --producer"),
    ],
)
def test_what_the_tool_refuses(tmp_path: Path, old: str, new: str, what: str) -> None:
    with pytest.raises(ConfigError, match=r"acls.sh:2: kafka-acls: ") as caught:
        read(tmp_path, ADD.replace(old, new, 1))
    assert what in str(caught.value)


def test_a_script_is_read_on_request_only(tmp_path: Path) -> None:
    rule = (
        '{"resourceType":"TOPIC","resourceName":"t","patternType":"LITERAL","principal":"User:a","host":"*",'
        '"operation":"READ","permissionType":"ALLOW"}\n'
    )
    write_files(tmp_path, {"user.jsonl": rule})
    found = read(tmp_path, ADD, AclsFormat.AUTO)
    assert rules(found) == {"ALLOW READ TOPIC t to User:a"}
    assert [each.kind for each in found.unread] == ["program"]


_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r\ufdd0"), min_size=1, max_size=8)


@settings(max_examples=examples(200))
@given(
    name=_TEXTS.filter(lambda text: text.isprintable()),
    principal=_TEXTS.filter(lambda text: text.isprintable()),
    prefixed=st.booleans(),
    deny=st.booleans(),
    host=st.sampled_from(["*", "10.0.0.1"]),
)
def test_it_reads_the_commands_that_aclog_writes(tmp_path_factory, name, principal, prefixed, deny, host) -> None:
    added: StandardAcl = acl(
        name,
        f"User:{principal}",
        host,
        AclOperation.WRITE,
        resource_type=ResourceType.TRANSACTIONAL_ID,
        pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        permission_type=AclPermissionType.DENY if deny else AclPermissionType.ALLOW,
    )
    command = acl_command(added, add=True, place=ChangePlace())
    if command is None:
        return
    found = read(tmp_path_factory.mktemp("script"), command)
    assert {rule.acl for rule in found.stated.rules()} == {added}
