"""The campaign's own checks: each finds what it is there to find."""

from uuid import UUID

import pytest
from attrs import evolve

from aclog.authorizer.acl import StandardAcl
from aclog.metalog.codec import encode_record
from aclog.metalog.control_records import LeaderChange, encode_control
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.metalog.topic_message import Placement
from tests.scenarios.failover.checking import Written, check_epochs, check_rules
from tests.support.builders.acls import acl, acl_record
from tests.support.models.ledger import Ledger


def led(offset: int, epoch: int, leader: int) -> Written:
    key, value = encode_control(LeaderChange(leader_id=leader, voters=(), granting_voters=()))
    return Written(Placement(offset=offset, base_offset=offset, count=1, epoch=epoch, control=key), value)


def data(offset: int, epoch: int, value: bytes = b"") -> Written:
    return Written(Placement(offset=offset, base_offset=offset, count=1, epoch=epoch), value)


def added(offset: int, number: int, rule: StandardAcl) -> Written:
    return data(offset, 1, encode_record(acl_record(number, rule)))


def removed(offset: int, number: int) -> Written:
    return data(offset, 1, encode_record(RemoveAccessControlEntryRecord(id=UUID(int=number))))


GOOD = [led(0, 1, 3), data(1, 1), led(2, 2, 1), data(3, 2), led(4, 5, 3)]


def test_who_led_which_epoch() -> None:
    assert check_epochs(GOOD) == {1: 3, 2: 1, 5: 3}


@pytest.mark.parametrize(
    ("messages", "what"),
    [
        ([*GOOD, data(6, 5)], "offset 6 where 5 was to come"),
        ([*GOOD, data(4, 5)], "offset 4 where 5 was to come"),
        ([*GOOD, data(5, 2)], "epoch 2 after epoch 5"),
        ([*GOOD, led(5, 5, 1)], "epoch 5 has a second leader"),
        ([*GOOD, data(5, 6)], "epoch 6 does not begin with a LeaderChange"),
        ([data(0, 1)], "epoch 1 does not begin with a LeaderChange"),
    ],
    ids=["a gap", "one again", "a deposed leader", "two leaders", "no leader", "no leader at first"],
)
def test_what_must_not_be_in_a_log(messages: list[Written], what: str) -> None:
    with pytest.raises(AssertionError, match=what):
        check_epochs(messages)


A, B, C = acl("w1"), acl("w2"), acl("ghost-1")


def test_what_was_acknowledged_and_what_may_have_been() -> None:
    ledger = Ledger(created={A}, maybe_created={B}, deleted={A}, maybe_deleted={B})
    assert check_rules([added(0, 1, A), removed(1, 1)], ledger) == set()
    assert check_rules([added(0, 1, A), added(1, 2, B), removed(2, 1)], ledger) == {B}


@pytest.mark.parametrize(
    ("messages", "ledger", "what"),
    [
        ([], Ledger(created={A}), "an acknowledged creation is lost"),
        ([added(0, 1, A)], Ledger(created={A}, deleted={A}), "an acknowledged deletion is lost"),
        ([added(0, 1, A)], Ledger(), "nobody asked for"),
        ([added(0, 1, A), removed(1, 1)], Ledger(created={A}), "a deletion that nobody asked for"),
        ([added(0, 1, A), added(1, 2, A)], Ledger(created={A}), "created twice"),
        ([added(0, 1, A), removed(1, 1), added(2, 1, A)], Ledger(created={A}, deleted={A}), "created twice"),
        ([added(0, 1, C)], Ledger(maybe_created={C}, ghosts={C}), "what a deposed leader wrote"),
        ([added(0, 1, A), added(1, 1, B)], Ledger(created={A, B}), "an id was given twice"),
    ],
    ids=["lost", "not deleted", "invented", "deleted unasked", "twice", "twice after all", "a ghost", "an id twice"],
)
def test_what_must_not_have_become_of_requests(messages: list[Written], ledger: Ledger, what: str) -> None:
    with pytest.raises(AssertionError, match=what):
        check_rules(messages, ledger)


def test_rules_of_others_are_left_alone() -> None:
    other = evolve(A, resource_name="tool-1")
    assert check_rules([added(0, 1, other), removed(1, 1), added(2, 2, other)], Ledger()) == {other}
