"""Deletes that nobody could forbid, and deletes that never came (kafka-ops/julie)."""

import pytest

from tests.support.builders.acls import acl
from tests.support.planning.estate import Estate, log_with

TOPOLOGY = """\
context: shop
projects:
  - name: web
    consumers:
{consumers}
    topics:
      - name: orders
"""


def topology(*users):
    return TOPOLOGY.format(consumers="".join(f'      - principal: "User:{user}"\n' for user in users))


@pytest.fixture
def estate(tmp_path):
    return Estate(tmp_path / "shop", log_with(tmp_path / "log", [acl("legacy", "User:old")]))


def test_julie_156_any_delete_can_be_forbidden(estate):
    """Whoever could run the tool could delete; there was no setting, only a flag of each run, to block it."""
    estate.wants(acl("orders"), acl("payments"))
    estate.bring("--max-deletes", 0)
    before = estate.rules()
    estate.wants(acl("orders"), acl("refunds"))
    refused = estate.plan("--max-deletes", 0)
    assert refused.result.code == 2
    assert "1 deletes of 2 managed ACLs exceed --max-deletes (0)" in refused.result.complaint
    assert not estate.plan_file.exists()
    assert estate.rules() == before
    estate.wants(acl("orders"), acl("payments"), acl("refunds"))  # what only adds is as good as ever
    assert estate.bring("--max-deletes", 0).added() == {acl("refunds")}


def test_julie_72_what_is_taken_out_of_the_file_is_deleted(estate):
    """A consumer that was removed from the topology kept its ACLs: the list of deletions was emptied before its use."""
    estate.wants_file("topology.yaml", topology("ann", "bob"))
    estate.bring()
    of_bob = {each for each in estate.rules() if each.principal == "User:bob"}
    assert of_bob
    before = estate.rules()
    estate.wants_file("topology.yaml", topology("ann"))
    assert estate.bring().removed() == of_bob
    assert estate.rules() == before - of_bob
