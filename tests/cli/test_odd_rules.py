"""Rules that no request can create, and rules that match nobody: what each command refuses, writes and tells."""

import json

import pytest

from tests.support.builders.acls import acl_row
from tests.support.cli.command import aclog

GOOD = acl_row("good")
MATCH = acl_row("zz", patternType="MATCH")
COLONLESS = acl_row("zz", principal="bob")
ODD = [
    (MATCH, "patternType must not be MATCH"),
    (MATCH | {"patternType": "ANY"}, "patternType must not be ANY"),
    (MATCH | {"patternType": "UNKNOWN"}, "Invalid patternType UNKNOWN"),
    (acl_row("zz", resourceType="ANY"), "resourceType must not be ANY"),
    (acl_row("zz", operation="ANY"), "operation must not be ANY"),
    (acl_row("zz", permissionType="ANY"), "permissionType must not be ANY"),
    (acl_row("foo", resourceType="CLUSTER"), "The only valid name for the CLUSTER resource is kafka-cluster"),
    (acl_row("", patternType="PREFIXED"), "Invalid empty resource name"),
    (COLONLESS, "Could not parse principal from `bob` (no colon is present separating the"),
]


def lines(*rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def history(*rows) -> bytes:
    ids = ("JCfGj5ocQb6uGSddU7P83A", "3aPpDAnMRlu4BAsYOn9-Bg")
    place = {"offset": 1, "endOffset": 2, "timestamp": 3, "change": "ADDED"}
    return lines(*(place | {"acl": row | {"id": id_}} for row, id_ in zip(rows, ids, strict=True)))


@pytest.mark.parametrize(("row", "message"), ODD)
def test_what_create_acls_refuses_is_refused_and_nothing_is_written(row, message, tmp_path):
    acls, new = tmp_path / "acls", tmp_path / "new"
    acls.write_bytes(lines(GOOD, row))
    for command in (("import", acls, "--log", new), ("snapshot", "create", "--acls", acls, "--out", new)):
        refused = aclog(*command)
        assert (refused.code, refused.complaint.startswith(f"{acls}: line 2: {message}")) == (2, True)
    refused = aclog("import", "--history", "-", "--log", new, stdin=history(GOOD, row))
    assert (refused.code, refused.complaint.startswith(f"stdin: line 2: {message}")) == (2, True)
    assert "--keep-odd-rules" in refused.complaint
    assert list(tmp_path.iterdir()) == [acls]


def test_an_existing_log_is_left_as_it_is(tmp_path):
    aclog("import", "-", "--log", tmp_path / "log", stdin=lines(GOOD)).ok()
    before = aclog("log", "dump", tmp_path / "log").ok().out
    assert aclog("import", "-", "--log", tmp_path / "log", stdin=lines(acl_row("more"), MATCH)).code == 2
    assert aclog("log", "dump", tmp_path / "log").ok().out == before


def test_the_export_of_a_log_that_has_some_can_be_imported(tmp_path):
    counted = "2 ACLs that CreateAcls refuses, on 1 of which Kafka 4.3.1 throws"
    keep, avro, acls = "--keep-odd-rules", tmp_path / "avro", tmp_path / "acls"
    written = aclog("import", "-", "--log", tmp_path / "a", keep, stdin=lines(GOOD, MATCH, acl_row(""))).ok()
    assert f"{counted}. The first: ALLOW User:alice" in written.err
    aclog("export", "--log", tmp_path / "a", "--format", "avro", "--out", avro).ok()
    assert aclog("import", avro, "--log", tmp_path / "b").complaint.startswith(f"{avro}: row ")
    assert counted in aclog("import", avro, "--log", tmp_path / "b", keep).ok().err
    listed = [aclog("acls", "list", "--log", tmp_path / name, "--format", "jsonl").ok().out for name in "ab"]
    assert listed[0] == listed[1]
    acls.write_text(listed[0])
    assert counted in aclog("snapshot", "create", "--acls", acls, "--out", tmp_path / "c", keep).ok().err
    replayed = aclog("import", "--history", "-", "--log", tmp_path / "d", keep, stdin=history(GOOD, MATCH)).ok()
    assert "1 ACL that CreateAcls refuses, on 1 of which Kafka 4.3.1 throws" in replayed.err


VERIFIED = f"""\
CreateAcls refuses it: {ODD[-1][1]} principal type from the principal name); \
Kafka 4.3.1 throws on every decision that reaches it
CreateAcls refuses it: Invalid empty resource name
CreateAcls refuses it: Invalid operation UNKNOWN; \
Kafka 4.3.1 throws on every listing and every removal that selects it
CreateAcls refuses it: patternType must not be MATCH; \
Kafka 4.3.1 throws on every listing and every removal of ACLs, with any filter
never matches: the host 'localhost' is neither * nor an address
"""


def test_verify_tells_each_and_on_what_kafka_throws(tmp_path):
    unknown, host = acl_row("zz", operation="UNKNOWN"), acl_row("t", host="localhost")
    rows = lines(GOOD, MATCH, unknown, COLONLESS, acl_row(""), host, acl_row("t", host="10.0.0.0/8"))
    aclog("import", "-", "--log", tmp_path / "log", "--keep-odd-rules", stdin=rows).ok()
    aclog("snapshot", "create", "--log", tmp_path / "log", "--out", tmp_path).ok()
    (checkpoint,) = tmp_path.glob("*.checkpoint")
    for command, place in (("log", tmp_path / "log"), ("snapshot", checkpoint)):
        done = aclog(command, "verify", place).ok()
        told = [line for line in done.err.splitlines() if line.startswith(f"aclog: warning: {place}: ")]
        assert sorted(line.partition("): ")[2] for line in told) == VERIFIED.splitlines()
        assert all(" (id " in line for line in told)
        assert "1 ACL (0 DENY) has a CIDR range as host" in done.err


@pytest.mark.parametrize(
    ("row", "last"),
    [
        (MATCH, "not damaged, but Kafka 4.3.1 throws on 1 of its ACLs: see the warnings"),
        (acl_row(""), "all is well"),
        (acl_row("t", host="localhost"), "all is well"),
    ],
)
def test_not_all_is_well_with_a_log_on_which_kafka_throws(row, last, tmp_path):
    aclog("import", "-", "--log", tmp_path / "log", "--keep-odd-rules", stdin=lines(GOOD, row)).ok()
    assert aclog("log", "verify", tmp_path / "log").ok().lines[-1] == last


def test_a_rule_that_matches_nobody_is_told_when_it_is_added(tmp_path):
    aclog("import", "-", "--log", tmp_path / "log", stdin=lines(GOOD)).ok()
    add = ("acls", "add", "--log", tmp_path / "log", "--allow-principal")
    owner = aclog(*add, "User:a", "--operation", "CreateTokens", "--user-principal", "owner1").ok()
    assert "never matches: the USER resource 'owner1' is not a principal: expected TYPE:NAME, as in" in owner.err
    several = aclog(*add, "User:a,User:b", "--allow-host", "localhost", "--operation", "READ", "--topic", "t").ok()
    host, name = (line.partition(" from localhost: ")[2] for line in several.err.splitlines())
    assert host == "never matches: the host 'localhost' is neither * nor an address"
    assert name.startswith("probably never matches: User:a,User:b is one principal whose name has a comma, not a list:")
    ranged = aclog(*add, "User:a", "--allow-host", "10.0.0.0/8", "--operation", "READ", "--topic", "t").ok()
    assert ranged.err.endswith(": the host 10.0.0.0/8 is a CIDR range, which matches clients from Kafka 4.4 on only\n")
    assert aclog(*add, "User:a", "--operation", "READ", "--topic", "t").ok().err == ""


def test_the_odd_rules_of_a_topic_can_be_removed(tmp_path):
    rows = lines(GOOD, MATCH, acl_row("zz", operation="ANY"), acl_row("zz", permissionType="UNKNOWN"))
    aclog("import", "-", "--log", tmp_path / "log", "--keep-odd-rules", stdin=rows).ok()
    which = ("--topic", "zz", "--resource-pattern-type", "any")
    aclog("acls", "remove", "--log", tmp_path / "log", *which, "--force").ok()
    listed = aclog("acls", "list", "--log", tmp_path / "log", "--format", "jsonl").ok().lines
    assert [json.loads(line)["resourceName"] for line in listed] == ["good"]


def test_an_import_counts_the_rules_that_match_nobody(tmp_path):
    rows = lines(GOOD, acl_row("t", host="localhost"), acl_row("t", host="::1", permissionType="DENY"))
    told = aclog("import", "-", "--log", tmp_path / "log", stdin=rows).ok().err
    assert told.startswith(
        "aclog: warning: 2 ACLs (1 DENY) probably match no principal. The first: ALLOW User:alice READ"
    )
