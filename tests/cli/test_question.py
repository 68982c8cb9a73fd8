"""The flags of a second state: which go together, and what they read. No command here gets as far as Spark."""

import json

import pytest

from aclog.authorizer.acls_image import RuleChange
from aclog.authorizer.settings import Generation
from aclog.cli.flags.common import AuthorizerFlags, Semantics
from aclog.cli.flags.many_requests import SecondSettingsFlags, SecondStateFlags
from aclog.cli.flags.source import SourceFlags
from aclog.metalog.errors import ConfigError
from aclog.sources.acl_lines import read_changes
from tests.support.builders.acls import acl, acl_row
from tests.support.cli.command import aclog

CHANGES = "expected them without a --to- flag"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("", "no second state is given: --to-log DIR, --to-snapshot FILE, --to-acls PATH, --to-ref GITREF:PATH"),
        ("--to-acls-format ksm --to-log a", "--to-acls-format: expected --to-acls PATH or --to-ref GITREF:PATH"),
        ("--to-acls a --to-ref b:c", "exactly one second state must be given"),
        ("--add a --to-acls b", CHANGES),
        ("--change a --to-as-of 7", CHANGES),
        ("--change a --add b", "expected either --change FILE, or --add FILE and --remove FILE"),
        ("--to-command-config f --to-acls a", "expected --to-bootstrap-controller or --to-bootstrap-server"),
        ("--to-acls a --to-snapshot b", "exactly one second state must be given: --to-log DIR, --to-snapshot FILE"),
        ("--add - --remove -", "--add - and --remove -: only one of them can be stdin"),
    ],
)
def test_flags_that_do_not_go_together_are_refused_before_anything_is_read(flags, said, tmp_path):
    out = ("--requests", tmp_path / "none", "--out", tmp_path / "out")
    result = aclog("spark", "simulate", *out, "--acls", tmp_path / "none", *flags.split())
    assert result.code == 2
    assert said in result.complaint


def test_stdin_is_read_once():
    with pytest.raises(ConfigError, match="can be stdin"):
        SecondStateFlags(change="-").check(SourceFlags(acls="-"))


def test_another_moment_of_the_first_source(tmp_path):
    first = SourceFlags(log=tmp_path, as_of="9")
    assert SecondStateFlags(to_as_of="7").source(first) == SourceFlags(log=tmp_path, as_of="7")
    assert SecondStateFlags(to_log=tmp_path / "b").source(first) == SourceFlags(log=tmp_path / "b")
    assert SecondStateFlags(change="c").source(first) is None


def test_a_login_is_that_of_the_first_cluster_unless_another_is_given(tmp_path):
    first = SourceFlags(bootstrap_server="a:1", command_config=tmp_path / "a")
    target = SecondStateFlags(to_bootstrap_server="b:1")
    assert target.source(first) == SourceFlags(bootstrap_server="b:1", command_config=tmp_path / "a")
    other = SecondStateFlags(to_bootstrap_server="b:1", to_command_config=tmp_path / "b")
    assert other.source(first) == SourceFlags(bootstrap_server="b:1", command_config=tmp_path / "b")


def test_changes_of_a_file_are_read_in_order(tmp_path):
    rows = [{"action": "REMOVE", "rule": acl_row("a")}, {"action": "ADD", "rule": {**acl_row("b"), "id": None}}]
    (tmp_path / "c").write_text("\n".join(map(json.dumps, rows)))
    changes = SecondStateFlags(change=str(tmp_path / "c")).changes()
    assert [(change.added, change.acl.resource_name) for change in changes] == [(False, "a"), (True, "b")]
    assert changes[1].where == f"{tmp_path}/c: line 2"


def test_removals_of_two_files_come_first(tmp_path):
    (tmp_path / "a").write_text(json.dumps(acl_row("t", principal="User:app")))
    flags = SecondStateFlags(add=str(tmp_path / "a"), remove=str(tmp_path / "a"))
    assert flags.changes() == (RuleChange(added=False, acl=acl("t")), RuleChange(added=True, acl=acl("t")))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[]", "expected a JSON object"),
        ("{}", "key action is missing"),
        ('{"action":"add"}', "action 'add' is not one of ADD, REMOVE"),
        ('{"action":"ADD"}', "expected the key rule with an ACL"),
        ('{"action":"ADD","rule":[]}', "expected the key rule with an ACL"),
        ('{"action":"ADD","rule":{}}', "key resourceType is missing"),
        (json.dumps({"action": "ADD", "rule": acl_row("t", operation="FLY")}), "operation 'FLY' is not one of"),
        ('{"action":"ADD","rule"', "not JSON"),
    ],
)
def test_a_line_that_is_no_change_is_refused_with_its_number(line, said, tmp_path):
    (tmp_path / "c").write_text(json.dumps({"action": "ADD", "rule": acl_row("b")}) + f"\n\n{line}\n")
    with pytest.raises(ConfigError, match="line 3: ") as refused:
        list(read_changes(str(tmp_path / "c")))
    assert said in str(refused.value)


def test_settings_of_the_second_state_are_those_of_the_first_unless_given():
    first = AuthorizerFlags(super_users="User:a", allow_everyone=True, semantics=Semantics.DOCUMENTED, cidr=True)
    assert SecondSettingsFlags().after(first) == first
    assert not SecondSettingsFlags().is_given()
    other = SecondSettingsFlags(
        to_super_users="", no_to_allow_everyone=True, to_semantics=Semantics.KAFKA, to_cidr=False
    )
    assert other.is_given()
    assert other.after(first) == AuthorizerFlags(cidr=False)
    assert SecondSettingsFlags(to_kafka_version="4.3.1").after(first).generation is Generation.V4_3
    assert SecondSettingsFlags(to_allow_everyone=True).after(AuthorizerFlags()).allow_everyone
    with pytest.raises(ConfigError, match="expected one of them"):
        SecondSettingsFlags(to_allow_everyone=True, no_to_allow_everyone=True).after(first)
