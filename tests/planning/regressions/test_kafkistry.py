"""A broker that has just started and knows of no rules yet (infobip/kafkistry)."""

import pytest

from tests.support.builders.acls import acl
from tests.support.fakes.broker import FakeBroker
from tests.support.planning.estate import Estate

THEIRS = [acl(f"theirs-{number}", "User:old") for number in range(10)]
MINE = [acl(f"mine-{number}", "User:shop") for number in range(10)]


@pytest.fixture
def broker():
    with FakeBroker(THEIRS) as running:
        yield running


@pytest.fixture
def estate(tmp_path, broker):
    found = Estate(tmp_path, ("--bootstrap-server", broker.address))
    found.wants(*MINE)
    found.bring()
    return found


def test_kafkistry_an_empty_answer_after_a_restart_is_no_base_to_apply_on(estate, broker):
    """A node that had just restarted answered with no ACLs, and the autopilot acted on that: its fix was to wait."""
    known = set(broker.rules)
    estate.wants(*MINE[1:], acl("new", "User:shop"))
    assert len(estate.plan().steps) == 2
    broker.next_rules = list
    refused = estate.apply()
    assert refused.code == 2
    assert "returned no ACLs" in refused.complaint
    broker.next_rules = None
    assert set(broker.rules) == known, "something was written"
    estate.apply().ok()
    assert set(broker.rules) == known - {MINE[0]} | {acl("new", "User:shop")}


def test_kafkistry_an_empty_answer_after_a_restart_is_no_base_to_plan_on(estate, broker):
    """Nobody has removed all rules, and the journal knows that some were there: that answer is not believed."""
    broker.next_rules = list
    refused = estate.plan()
    assert refused.result.code == 2
    assert "returned no ACLs" in refused.result.complaint
    assert not estate.plan_file.exists()


def test_kafkistry_an_answer_that_is_not_whole_yet(estate, broker):
    """A node that is still catching up knows of some rules: an answer that shrank by more than a fifth is refused."""
    estate.wants(*MINE, acl("new", "User:shop"))
    assert len(estate.plan().steps) == 1
    known = set(broker.rules)
    broker.next_rules = lambda: broker.rules[:15]
    refused = estate.apply()
    assert refused.code == 2
    assert "15" in refused.complaint
    assert set(broker.rules) == known
