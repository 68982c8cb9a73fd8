"""What kafka-gitops deletes that nobody told it to (devshawn/kafka-gitops)."""

import pytest

from tests.support.builders.acls import acl
from tests.support.planning.estate import Estate, log_with

THEIRS = {acl("legacy", "User:old", operation=each) for each in (2, 3, 4, 8)}
"""Rules that were there before, of somebody whose files nobody has written yet."""
SHOP = """\
topics: []
services:
  shop: {type: application, principal: "User:shop", produces: [%s]}
"""
ORDERS = acl("orders", "User:shop", operation=4)
"""What SHOP makes of `produces: [orders]`."""


@pytest.fixture
def estate(tmp_path):
    return Estate(tmp_path / "shop", log_with(tmp_path / "log", THEIRS))


def test_kafka_gitops_33_the_first_apply_deletes_what_was_there(estate):
    """A first `apply` on an existing cluster deleted every topic and ACL that the state file did not have."""
    estate.wants_file("state.yaml", SHOP % "orders")
    assert estate.bring().steps == (("ADD", ORDERS),)
    assert estate.rules() == {*THEIRS, ORDERS}


def test_kafka_gitops_33_a_rule_that_was_there_stays_when_it_is_no_longer_wanted(estate):
    """It was wanted, but it was not the first apply that added it: it is not this source's to delete."""
    estate.wants(*THEIRS)
    assert estate.bring().steps == ()
    estate.wants()
    assert estate.bring().steps == ()
    assert estate.rules() == THEIRS


def test_kafka_gitops_79_an_empty_list_deletes_all(estate):
    """`topics: []` deleted all topics, while leaving the key out left them alone; so nobody dared to write a part."""
    estate.wants_file("state.yaml", SHOP % "")
    assert estate.bring().steps == ()
    assert estate.rules() == THEIRS


def test_kafka_gitops_79_an_empty_list_of_what_was_full(estate):
    """Of rules that the source does own, an empty file is refused, be there 21 or a thousand of them."""
    mine = [acl(f"topic-{number}", "User:shop") for number in range(21)]
    estate.wants(*mine)
    estate.bring()
    estate.wants()
    refused = estate.plan()
    assert refused.result.code == 2
    assert "21" in refused.result.complaint
    assert "--max-deletes" in refused.result.complaint
    assert refused.steps == ()  # a program that reads them has nothing to do
    assert not estate.plan_file.exists()
    assert estate.rules() == {*THEIRS, *mine}

    assert estate.plan("--max-deletes", "100%").removed() == set(mine)
    estate.apply().ok()
    assert estate.rules() == THEIRS
