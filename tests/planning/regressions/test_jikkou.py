"""Deletes that are called something else, and patterns of which nothing comes (streamthoughts/jikkou)."""

import json

import pytest

from aclog.authorizer.codes import ResourceType
from aclog.metalog.primitives import elapsed_seconds
from tests.support.builders.acls import acl
from tests.support.fakes.broker import FakeBroker
from tests.support.planning.estate import Estate, line_of, log_with

AUTHORIZATION = """\
apiVersion: kafka.jikkou.io/v1beta2
kind: KafkaPrincipalAuthorization
metadata: {{name: "User:app"}}
spec:
  acls:
    - resource: {{type: TOPIC, pattern: orders, patternType: LITERAL}}
      type: ALLOW
      operations: [{operations}]
      host: "*"
    - resource: {{type: GROUP, pattern: {group}, patternType: {kind}}}
      type: ALLOW
      operations: [READ]
      host: "*"
"""
READ, WRITE, DESCRIBE = acl(operation=3), acl(operation=4), acl(operation=8)
CLOSED = "--no-allow-everyone-if-no-acl-found"
"""Of a broker that does not tell: else a plan counts on the opposite, and on denials on the way."""
ANY_GROUP = acl("*", resource_type=ResourceType.GROUP)


def authorization(operations="READ", group='"*"', kind="LITERAL"):
    return AUTHORIZATION.format(operations=operations, group=group, kind=kind)


@pytest.fixture
def estate(tmp_path):
    return Estate(tmp_path / "source", log_with(tmp_path / "log", [acl("legacy", "User:old")]))


def test_jikkou_118_a_delete_is_a_delete_and_comes(estate):
    """`apply` said of deletions `TASK [CREATE] Delete ACL`, and its last line counted them as created, none deleted."""
    estate.wants_file("acls.yaml", authorization("READ, WRITE, DESCRIBE"))
    estate.bring()
    before = estate.rules()
    estate.wants_file("acls.yaml", authorization("DESCRIBE"))
    planned = estate.plan()
    assert planned.added() == set()
    assert planned.removed() == {READ, WRITE}
    said = estate.apply().ok()
    assert ": 0 rules added, 2 deleted; apply id: " in said.out
    assert estate.rules() == before - {READ, WRITE}
    assert estate.plan().result.code == 0


def test_jikkou_118_a_delete_that_does_not_come_is_told(tmp_path, monkeypatch):
    """A broker that says yes to a deletion and keeps the rule: what is written is read back before it counts."""
    with FakeBroker([acl("legacy", "User:old")]) as broker:
        estate = Estate(tmp_path, ("--bootstrap-server", broker.address))
        estate.wants(READ, WRITE)
        estate.bring(CLOSED)
        estate.wants(READ)
        assert estate.plan(CLOSED).removed() == {WRITE}
        before, broker.next_rules = list(broker.rules), lambda: before
        with monkeypatch.context() as patched:  # it waits for 20 s of a clock that is in a hurry
            patched.setattr("aclog.targets.cluster.elapsed_seconds", lambda: 50 * elapsed_seconds())
            failed = estate.apply()
        assert failed.code == 2
        assert "WRITE" in failed.complaint
        assert '"DONE"' not in estate.journal.read_text().splitlines()[-1]
        broker.next_rules = None  # now it is gone
        assert estate.plan().result.code == 0


@pytest.mark.parametrize("pattern", ["MATCH", "ANY", "UNKNOWN"])
def test_jikkou_210_a_pattern_of_which_nothing_comes(estate, pattern):
    """An ACL with a pattern that Kafka takes in filters only: nothing was created, and nothing was said."""
    row = {**json.loads(line_of(ANY_GROUP)), "patternType": pattern}
    estate.want.write_text(line_of(READ) + json.dumps(row) + "\n")
    refused = estate.plan()
    assert refused.result.code == 2
    assert f"GROUP {pattern} '*' from * ({estate.want}:2): CreateAcls refuses it: " in refused.result.complaint
    assert not estate.plan_file.exists()


@pytest.mark.parametrize("group", ['"*"', '".*"'])
def test_jikkou_210_a_match_of_groups_in_a_file_of_jikkou(estate, group):
    """The report's own file: READ on the topic came, READ on the group was skipped without a word."""
    estate.wants_file("acls.yaml", authorization(group=group, kind="MATCH"))
    refused = estate.plan()
    assert refused.result.code == 2
    assert "acls.yaml:10: " in refused.result.complaint
    assert "MATCH" in refused.result.complaint
    estate.wants_file("acls.yaml", authorization())
    assert estate.bring().added() == {READ, ANY_GROUP}
