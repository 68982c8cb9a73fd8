"""The rules at each position of a timeline, beside the states that it was told."""

from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAclWithId, record_of
from aclog.authorizer.acls_image import AclsImage
from aclog.console import live
from aclog.console.live import Grown, RuleTimeline
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.snapshots.history import Change, ChangeKind
from tests.support.builders.acls import acl


def image(**ids: int) -> AclsImage:
    return AclsImage.empty().apply([record_of(acl(name), UUID(int=number)) for name, number in ids.items()])


def change(offset: int, kind: ChangeKind, name: str, number: int, *, gap: bool = False) -> Change:
    rule = StandardAclWithId(id=UUID(int=number), acl=acl(name))
    return Change(offset=offset - 1, end_offset=offset, timestamp=offset, kind=kind, rule=rule, gap=gap)


def names(timeline: RuleTimeline) -> list[list[str]]:
    """Those of the rules at each position."""
    return [
        sorted(rule.acl.resource_name for rule in timeline.acls_at(position)) for position in range(len(timeline) + 1)
    ]


def test_a_rule_that_came_back_under_another_id_in_a_gap() -> None:
    told = RuleTimeline.at(image(x=1), offset=10, timestamp=0)
    told = told.followed_by([change(20, ChangeKind.ADDED, "y", 5, gap=True)], end=20, acls=image(x=2, y=5))
    told = told.followed_by([change(21, ChangeKind.REMOVED, "x", 2)], end=21, acls=image(y=5))
    told = told.followed_by([change(22, ChangeKind.ADDED, "z", 7)], end=22, acls=image(y=5, z=7))
    assert names(told) == [["x"], ["x", "y"], ["y"], ["y", "z"]]
    assert names(told.shortened(2)) == [["x", "y"], ["y"], ["y", "z"]]
    assert names(RuleTimeline.at(image(x=1), offset=10, timestamp=0).joined(told)) == names(told)


def test_a_gap_in_which_only_an_id_changed() -> None:
    told = RuleTimeline.at(image(x=1), offset=10, timestamp=0)
    told = told.followed_by([change(11, ChangeKind.ADDED, "y", 5)], end=11, acls=image(x=1, y=5))
    told = told.followed_by([], end=20, acls=image(x=2, y=5))
    told = told.followed_by([change(21, ChangeKind.REMOVED, "x", 2)], end=21, acls=image(y=5))
    assert names(told) == [["x"], ["x", "y"], ["y"]]


@given(st.lists(st.sampled_from("abcd"), max_size=60), st.integers(1, 7), st.integers(1, 70))
def test_each_state_is_the_one_that_was_told(toggled: list[str], together: int, most: int) -> None:
    have: dict[str, int] = {}
    acls, states = AclsImage.empty(), [list[str]()]
    changes = []
    timeline = RuleTimeline.at(acls, offset=0, timestamp=0)
    for number, name in enumerate(toggled, 1):
        gone = have.pop(name, None)
        if gone is None:
            have[name] = number
            acls = acls.apply([record_of(acl(name), UUID(int=number))])
            changes.append(change(number, ChangeKind.ADDED, name, number))
        else:
            acls = acls.apply([RemoveAccessControlEntryRecord(id=UUID(int=gone))])
            changes.append(change(number, ChangeKind.REMOVED, name, gone))
        states.append(sorted(have))
        if number % together == 0:
            timeline, changes = timeline.followed_by(changes, end=number, acls=acls), []
    timeline = timeline.followed_by(changes, end=len(toggled), acls=acls)
    assert names(timeline) == states
    assert names(timeline.shortened(most)) == states[-len(timeline.shortened(most)) - 1 :]
    back = RuleTimeline.back_from(
        RuleTimeline.at(acls, offset=len(toggled), timestamp=0), timeline.changes, begin=0, timestamp=0
    )
    assert names(back) == states


@given(st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(), max_size=4)), max_size=12))
def test_grown_sequences_share_items_and_stay_as_they_are(steps: list[tuple[int, list[int]]]) -> None:
    every, naive = [Grown[int]()], [tuple[int, ...]()]
    for place, more in steps:
        chosen = place % len(every)
        every.append(every[chosen].grown(more))
        naive.append((*naive[chosen], *more))
    for found, items in zip(every, naive, strict=True):
        assert (tuple(found), len(found), found[:]) == (items, len(items), items)
        assert (found[-1:], found[1:3], list(reversed(found))) == (items[-1:], items[1:3], list(reversed(items)))
        assert [found[place] for place in range(-len(items), len(items))] == [*items, *items]
        with pytest.raises(IndexError):
            found[len(items)]


def test_states_between_are_kept_often_enough() -> None:
    acls, timeline = AclsImage.empty(), RuleTimeline.at(AclsImage.empty(), offset=0, timestamp=0)
    for number in range(1, 500):
        acls = acls.apply([record_of(acl(f"t{number}"), UUID(int=number))])
        timeline = timeline.followed_by([change(number, ChangeKind.ADDED, f"t{number}", number)], end=number, acls=acls)
    places = [anchor.position for anchor in timeline.anchors]
    assert max(after - before for before, after in pairwise(places)) <= live._STEP
    assert len(places) <= 500 // live._STEP + 2
