"""`aclog acls` prints and writes what kafka-acls 4.3.1 does."""

import gzip
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.support.cli.command import aclog

DATA = Path(__file__).parents[1] / "data"
SMALL, CHURN = DATA / "kafka-4.3.1-small", DATA / "kafka-4.3.1-churn"
PARTITION = "__cluster_metadata-0"
KEYS = ["resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType", "id"]


def text_of(path):
    return gzip.open(path, "rt", encoding="utf-8").read() if path.suffix == ".gz" else path.read_text()


def paragraphs(text):
    """Return the resources and entries regardless of order: kafka-acls prints hash maps."""
    found = [paragraph.splitlines() for paragraph in re.split(r"\n\n+", text.strip("\n")) if paragraph]
    return sorted((head, sorted(entries)) for head, *entries in found)


@pytest.mark.parametrize("fixture", [SMALL, CHURN], ids=["small", "churn"])
class TestList:
    @staticmethod
    def listed(fixture, name, *flags):
        return aclog("acls", "list", "--log", fixture / PARTITION, *flags, "--format", name).ok()

    @staticmethod
    def expected(fixture, name):
        return text_of(next((fixture / "expected").glob(f"{name}*")))

    def test_jsonl_equals_what_kafka_describes(self, fixture):
        rows = [json.loads(line) for line in self.listed(fixture, "jsonl").lines]
        assert all(list(row) == KEYS and len(row["id"]) == 22 for row in rows)
        expected = [json.loads(line) for line in self.expected(fixture, "acls.jsonl").splitlines()]
        assert [{key: row[key] for key in KEYS[:-1]} for row in rows] == expected

    def test_kafka_text_equals_kafka_acls(self, fixture):
        assert paragraphs(self.listed(fixture, "kafka").out) == paragraphs(self.expected(fixture, "acls-cli.txt"))

    def test_the_newest_checkpoint_and_the_listing_itself_are_sources_too(self, fixture, tmp_path):
        lines = self.listed(fixture, "jsonl").out
        packed = tmp_path / "acls.jsonl.gz"
        packed.write_bytes(gzip.compress(lines.encode()))
        for source, stdin, name in ((packed, b"", str(packed)), ("-", lines.encode(), "stdin")):
            listed = aclog("acls", "list", "--acls", source, "--format", "jsonl", stdin=stdin).ok().lines
            for number, (row, line) in enumerate(zip(listed, lines.splitlines(), strict=True), 1):
                assert json.loads(row) == json.loads(line) | {"file": name, "line": number}
        made = aclog("snapshot", "create", "--log", fixture / PARTITION, "--out", tmp_path / "out").ok()
        assert aclog("acls", "list", "--snapshot", made.lines[0], "--format", "jsonl").ok().out == lines


@pytest.mark.parametrize("version", ["4.1.1", "3.9.1"])
def test_logs_of_other_kafkas_are_listed_as_those_describe_them(version):
    fixture = DATA / f"kafka-{version}"
    rows = [
        json.loads(line) for line in aclog("acls", "list", "--log", fixture / PARTITION, "--format", "jsonl").ok().lines
    ]
    expected = [json.loads(line) for line in text_of(fixture / "expected/acls.jsonl").splitlines()]
    assert [{key: row[key] for key in KEYS[:-1]} for row in rows] == expected


def queries():
    """Return the flags of each query in the fixture, and the output of kafka-acls."""
    found = re.split(
        r"^\$ kafka-acls --list (.*?)   # rc=0\n", text_of(SMALL / "expected/acls-cli-queries.txt"), flags=re.MULTILINE
    )
    return list(zip(found[1::2], found[2::2], strict=True))


def answers(text):
    """Return the paragraphs by principal."""
    parts = re.split(r"^ACLs for principal `(.*)`\n", text, flags=re.MULTILINE)
    heads = ["", *parts[1::2]]
    return [(head, paragraphs(part)) for head, part in zip(heads, parts[::2], strict=True)]


@pytest.mark.parametrize(("flags", "answer"), queries(), ids=[flags for flags, _ in queries()])
def test_queries_print_what_kafka_acls_prints(flags, answer):
    words = shlex.split(flags.replace("*", "'*'"))
    listed = aclog("acls", "list", "--log", SMALL / PARTITION, "--format", "kafka", *words).ok()
    assert answers(listed.out) == answers(answer)


def test_a_table_has_a_line_per_acl_and_escapes_control_characters():
    table = aclog("acls", "list", "--log", SMALL / PARTITION, "--format", "table").ok()
    assert table.lines[0].split() == ["TYPE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION", "ID"]
    assert len(table.lines) == 1 + 68
    assert r"tab\there" in table.out


def test_the_default_format_is_kafka_unless_stdout_is_a_terminal():
    assert aclog("acls", "list", "--log", SMALL / PARTITION).ok().out.startswith("Current ACLs for resource `")


def test_acls_without_ids_show_null():
    [row] = map(json.loads, aclog("acls", "list", "--acls", "-", "--format", "jsonl", stdin=RULE).ok().lines)
    assert row["id"] is None


RULE = (
    b'{"resourceType":"TOPIC","resourceName":"t","patternType":"LITERAL","principal":"User:a","host":"10.0.0.0/8",'
    b'"operation":"READ","permissionType":"DENY"}\n'
)


def test_a_cidr_range_as_host_is_warned_about():
    for command in (["acls", "list"], ["explain", "--principal", "User:a", "--operation", "READ", "--topic", "t"]):
        result = aclog(*command, "--acls", "-", stdin=RULE)
        assert "aclog: warning: 1 ACL (1 DENY) has a CIDR range as host" in result.err
        assert result.code == (command[0] == "explain")


@pytest.fixture
def log(tmp_path):
    """A log of aclog's with one ACL, for User:zoe."""
    path = tmp_path / "log"
    line = RULE.replace(b"User:a", b"User:zoe").replace(b"10.0.0.0/8", b"*").replace(b"DENY", b"ALLOW")
    aclog("import", "-", "--log", path, stdin=line).ok()
    return path


def rules(log, *flags):
    rows = map(json.loads, aclog("acls", "list", "--log", log, "--format", "jsonl", *flags).ok().lines)
    return [" ".join(row[key] for key in KEYS[:-1]) for row in rows]


ZOE = "TOPIC t LITERAL User:zoe * READ ALLOW"


class TestAdd:
    def test_adding_prints_what_kafka_acls_prints(self, log):
        added = aclog(
            "acls", "add", "--log", log, "--topic", "t", "--allow-principal", "User:zoe", "--operation", "Read",
            "--operation", "alterconfigs",
        ).ok()  # fmt: skip
        resource = "ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)"
        assert added.out == (
            f"Acl (pattern={resource}, entry=(principal=User:zoe, host=*, operation=READ, permissionType=ALLOW)) "
            "already exists.\n"
            f"Adding ACLs for resource `{resource}`: \n"
            " \t(principal=User:zoe, host=*, operation=ALTER_CONFIGS, permissionType=ALLOW)\n\n"
        )
        assert rules(log) == ["TOPIC t LITERAL User:zoe * ALTER_CONFIGS ALLOW", ZOE]

    def test_all_acls_of_a_command_are_one_batch(self, log):
        flags = ("--consumer", "--topic", "t", "--group", "g", "--allow-principal", "User:app")
        aclog("acls", "add", "--log", log, *flags).ok()
        assert rules(log, "--principal", "User:app") == [
            "GROUP g LITERAL User:app * READ ALLOW",
            "TOPIC t LITERAL User:app * DESCRIBE ALLOW",
            "TOPIC t LITERAL User:app * READ ALLOW",
        ]
        assert rules(log, "--as-of", "4") == [ZOE]

    def test_an_acl_that_kafka_refuses_is_refused_and_nothing_is_written(self, log):
        flags = ("--topic", "", "--topic", "good", "--allow-principal", "User:x")
        refused = aclog("acls", "add", "--log", log, *flags)
        assert (refused.code, refused.complaint) == (2, "Invalid empty resource name")
        assert rules(log) == [ZOE]

    def test_flags_are_checked_before_the_log_is_touched(self, tmp_path):
        refused = aclog("acls", "add", "--log", tmp_path / "nowhere", "--topic", "t")
        assert (refused.code, refused.complaint) == (
            2,
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs",
        )

    def test_a_log_of_a_kafka_node_requires_force(self, tmp_path):
        copy = tmp_path / "kafka"
        shutil.copytree(SMALL, copy)
        flags = ("--log", copy / PARTITION, "--topic", "forced", "--deny-principal", "User:x")
        refused = aclog("acls", "add", *flags)
        assert refused.code == 2
        assert "belongs to a Kafka" in refused.complaint
        aclog("acls", "add", *flags, "--force").ok()
        assert rules(copy / PARTITION, "--topic", "forced") == ["TOPIC forced LITERAL User:x * ALL DENY"]
        assert aclog("log", "verify", copy / PARTITION).ok().lines[-1] == "all is well"

    def test_kip_11s_flags_take_lists_as_kip_11_writes_them(self, log):
        grant = ("--grantprincipal", "User:ann, Group:kafka", "--granthost", "h1,h2")
        revoke = ("--revokeprincipal", "User:bob,User:eve", "--revokehost", "h3,h4", "--revokehost", "h5")
        flags = (*grant, *revoke, "--action", "read,AlterConfigs", "--topic", "k")
        aclog("acls", "add", "--log", log, *flags).ok()
        assert rules(log, "--topic", "k") == sorted(
            f"TOPIC k LITERAL {principal} {host} {operation} {permission}"
            for permission, principals, hosts in (
                ("ALLOW", ("User:ann", "Group:kafka"), ("h1", "h2")),
                ("DENY", ("User:bob", "User:eve"), ("h3", "h4", "h5")),
            )
            for principal in principals
            for host in hosts
            for operation in ("ALTER_CONFIGS", "READ")
        )
        assert "20 ACLs removed" in aclog("acls", "remove", "--log", log, *flags, "--force").ok().err

    @pytest.mark.parametrize(
        ("flag", "text", "complaint"),
        [
            ("--revokeprincipal", "User:CN=b,OU=x", "'OU=x' is no principal: expected TYPE:NAME[,TYPE:NAME]*; "),
            ("--grantprincipal", "User:CN=b,OU=urn:x", "'OU=urn:x' is no principal: expected TYPE:NAME[,TYPE:NAME]*; "),
            ("--revokeprincipal", "User:bob,", "an empty entry: expected a list such as A,B"),
            ("--action", "read,", "an empty entry: expected a list such as A,B"),
            ("--action", "read,rite", "'rite' is not one of "),
        ],
    )
    def test_a_list_that_is_none_writes_nothing(self, log, flag, text, complaint):
        refused = aclog("acls", "add", "--log", log, flag, text, "--topic", "t", "--allow-principal", "User:a")
        assert refused.code == 2
        assert refused.complaint.startswith(f"{flag} {text!r}: {complaint}")
        assert rules(log) == [ZOE]

    def test_a_missing_directory_is_not_created(self, tmp_path):
        refused = aclog("acls", "add", "--log", tmp_path / "no", "--topic", "t", "--allow-principal", "User:x")
        assert (refused.code, refused.complaint) == (2, f"--log: {tmp_path}/no: no such file or directory")
        assert not (tmp_path / "no").exists()


class TestRemove:
    def test_only_y_confirms_a_removal(self, log):
        question = "Are you sure you want to delete all ACLs for resource filter `ResourcePattern(resourceType=TOPIC"
        kept = aclog("acls", "remove", "--log", log, "--topic", "t", stdin=b"n\n").ok()
        assert kept.out.startswith(question)
        assert rules(log) == [ZOE]
        removed = aclog("acls", "remove", "--log", log, "--topic", "t", stdin=b"Y\n").ok()
        assert "1 ACL removed" in removed.err
        assert rules(log) == []

    def test_end_of_stdin_removes_nothing(self, log):
        refused = aclog("acls", "remove", "--log", log, "--topic", "t")
        assert (refused.code, refused.complaint) == (
            2,
            "no answer on stdin: nothing was removed; use --force to remove without confirmation",
        )
        assert rules(log) == [ZOE]

    def test_with_a_principal_only_the_given_acls_are_removed(self, log):
        aclog("acls", "add", "--log", log, "--topic", "t", "--allow-principal", "User:zoe", "--operation", "Write").ok()
        who = ("--topic", "t", "--allow-principal", "User:zoe", "--force")
        assert "0 ACLs removed" in aclog("acls", "remove", "--log", log, *who, "--operation", "All").ok().err
        assert "1 ACL removed" in aclog("acls", "remove", "--log", log, *who, "--operation", "Write").ok().err
        assert rules(log) == [ZOE]

    def test_match_removes_everything_that_affects_the_resource(self, log):
        for pattern in ("literal", "prefixed"):
            flags = ("--topic", "tt", "--resource-pattern-type", pattern, "--allow-principal", "User:x")
            aclog("acls", "add", "--log", log, *flags).ok()
        aclog("acls", "remove", "--log", log, "--topic", "tt1", "--resource-pattern-type", "match", "--force").ok()
        assert rules(log) == [ZOE, "TOPIC tt LITERAL User:x * ALL ALLOW"]
