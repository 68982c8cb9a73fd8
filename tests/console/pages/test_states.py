"""The listing beside a naive one, and one that follows states beside one that is made anew."""

from bisect import bisect_left
from itertools import combinations, groupby, pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import ResourcePattern, StandardAcl, StandardAclWithId, record_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import WILDCARD, AclOperation, PatternType, ResourceType
from aclog.console.listing import Criteria, Listing, Ordered, key_of
from aclog.console.live import RuleTimeline
from aclog.console.pages.states import ChangeIndex
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.snapshots.history import Change, ChangeKind
from tests.support.analysis.policies import image_of
from tests.support.builders.acls import acl

NAMES = ("", "a", "a.b", "a.b.c", "a-b", "a..", "b", "*", "\U0010ffffz", "ab")
RULES = st.builds(
    acl,
    st.sampled_from(NAMES),
    st.sampled_from(["User:x", "User:y", "x"]),
    st.sampled_from(["*", "10.0.0.1"]),
    st.sampled_from([AclOperation.READ, AclOperation.ALL]),
    resource_type=st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
)
STATES = st.lists(st.frozensets(RULES, max_size=12), min_size=1, max_size=6)


def followed(states: list[frozenset[StandardAcl]], merged: int) -> AclsImage:
    """The images of some states, each made by changes of the one before; the last one."""
    acls, listing, number = AclsImage.empty(), Listing.of(AclsImage.empty()), 0
    for place, wanted in enumerate(states):
        have = {rule.acl: rule.id for rule in acls}
        gone = [RemoveAccessControlEntryRecord(id=id_) for each, id_ in have.items() if each not in wanted]
        come = sorted(wanted - have.keys(), key=key_of)
        # Ids of rules that went are taken again, by others.
        free = [record.id for record in gone] + [UUID(int=1 << 64 | number + step) for step in range(len(come))]
        number += len(come)
        acls = acls.apply([*gone, *(record_of(each, id_) for each, id_ in zip(come, free, strict=False))])
        if place == merged:
            acls = acls.merged()
        listing = listing.followed_by(acls)
        assert list(listing) == list(Listing.of(acls))
        assert {each for each in have.keys() | wanted if listing.has_rule(key_of(each))} == wanted
        anew = Listing.of(acls)
        assert list(listing.principals.items()) == list(anew.principals.items())
        assert list(listing.types.items()) == list(anew.types.items())
        assert list(listing.found_names("")) == list(anew.found_names(""))
        for criteria in (Criteria(anything="X"), Criteria(anything="a", principal="x"), Criteria(resource="A.")):
            assert list(listing.find(criteria)) == list(anew.find(criteria))
        assert listing.found_names("b") == anew.found_names("b")
    return acls


@given(STATES, st.integers(0, 6))
def test_following_ends_as_beginning_anew(states: list[frozenset[StandardAcl]], merged: int) -> None:
    assert {rule.acl for rule in followed(states, merged)} == states[-1]


@given(
    st.lists(st.tuples(st.frozensets(st.integers(0, 40), max_size=8), st.frozensets(st.integers(0, 40), max_size=8))),
    st.integers(1, 4),
    st.integers(0, 20),
)
def test_what_is_ordered_is_as_a_sorted_set(
    changes: list[tuple[frozenset[int], frozenset[int]]], block: int, singly: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aclog.console.listing._BLOCK", block)
        patch.setattr("aclog.console.listing._SINGLY", singly)
        values, ordered = set[int](), Ordered[int]()
        for removed, added in changes:
            before, former = sorted(values), ordered
            values = (values - removed) | added
            ordered = ordered.changed(removed, added)
            assert list(former) == before
            expected = sorted(values)
            assert list(ordered) == expected == [ordered[place] for place in range(len(ordered))]
            assert [ordered.place(each) for each in range(-1, 42)] == [
                bisect_left(expected, each) for each in range(-1, 42)
            ]
            assert {each for each in range(41) if each in ordered} == values
            for low, high in combinations(range(-3, len(expected) + 2), 2):
                assert ordered[low:high] == expected[low:high]
            assert ordered[::-1] == expected[::-1]
            assert ordered[::2] == expected[::2]


def covers_some(rule: StandardAcl, prefix: str) -> bool:
    """Whether a rule covers topics whose names begin so."""
    if rule.resource_type != ResourceType.TOPIC:
        return False
    if rule.pattern_type == PatternType.PREFIXED and rule.resource_name and prefix.startswith(rule.resource_name):
        return True
    is_every = rule.pattern_type == PatternType.LITERAL and rule.resource_name == WILDCARD
    return is_every or rule.resource_name.startswith(prefix)


@given(
    st.lists(RULES, max_size=40, unique=True), st.lists(st.integers(0, 40), max_size=3), st.sampled_from(NAMES), RULES
)
def test_an_index_of_changes_finds_them(
    rules: list[StandardAcl], ends: list[int], name: str, rule: StandardAcl
) -> None:
    timeline, index = RuleTimeline.at(AclsImage.empty(), offset=0, timestamp=0), ChangeIndex()
    about = ResourcePattern(resource_type=ResourceType.TOPIC, name=name, pattern_type=PatternType.PREFIXED)
    for begin, end in pairwise(sorted({0, *ends, 40})):
        changes = [
            Change(
                offset=offset,
                end_offset=offset + 1,
                timestamp=offset,
                kind=ChangeKind.ADDED,
                rule=StandardAclWithId(id=UUID(int=offset), acl=each),
            )
            for offset, each in list(enumerate(rules))[begin:end]
        ]
        if changes:
            timeline = timeline.followed_by(changes, end=begin + len(changes), acls=image_of(rules[:end]))
        covers = [place for place, change in enumerate(timeline.changes) if covers_some(change.rule.acl, name)]
        assert index.positions_on(timeline, about) == covers
        places = [place for place, each in enumerate(timeline.changes) if each.rule.acl == rule]
        for before in range(len(timeline) + 1):
            last = max((place for place in places if place < before), default=None)
            assert index.last(timeline, rule, before) == last


@given(st.frozensets(RULES, max_size=40))
def test_a_listing_that_gives_way_to_others_is_the_same(rules: frozenset[StandardAcl]) -> None:
    acls, paused = image_of(rules), []
    with_pauses = Listing.of(acls, lambda: paused.append(1))
    at_once = Listing.of(acls)
    for each in ("_rules", "_has_ids", "principals", "types"):
        assert getattr(with_pauses, each) == getattr(at_once, each)
    for each in ("_keys", "_names"):
        assert list(getattr(with_pauses, each)) == list(getattr(at_once, each))
    assert list(with_pauses.principals) == list(at_once.principals)
    assert paused or not rules


def test_a_long_listing_gives_way_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aclog.console.listing._SORTED", 50)
    acls, paused = image_of(acl(f"t{number * 7919 % 1000}", f"User:{number % 7}") for number in range(1000)), []
    found = Listing.of(acls, lambda: paused.append(1))
    assert list(found._keys) == list(Listing.of(acls)._keys) == sorted(found._keys)
    assert len(paused) > 60


def test_rules_without_ids_are_listed_anew() -> None:
    before, after = image_of([acl("a")]), image_of([acl("b")])
    without = AclsImage.from_acls(rule.__class__(id=None, acl=rule.acl) for rule in after)
    assert [rule.acl for rule in Listing.of(before).followed_by(without).followed_by(after)] == [acl("b")]


@given(
    st.frozensets(RULES, max_size=20),
    st.sampled_from(["", "x", "User:X", "A."]),
    st.sampled_from(["", "y"]),
    st.sampled_from(["", "B", "a.b.c"]),
    st.sampled_from(["", "10."]),
    st.sampled_from([None, AclOperation.READ]),
    st.sampled_from([None, PatternType.PREFIXED]),
)
def test_what_is_found(
    rules: frozenset[StandardAcl],
    anything: str,
    principal: str,
    resource: str,
    host: str,
    operation: int | None,
    pattern: int | None,
) -> None:
    wanted = Criteria(
        anything=anything,
        principal=principal,
        resource=resource,
        host=host,
        operation=operation,
        pattern_type=pattern,
    )
    found = [rule.acl for rule in Listing.of(image_of(rules)).find(wanted)]
    texts = {each: (each.principal.lower(), each.resource_name.lower(), each.host) for each in rules}
    naive = [
        each
        for each in sorted(rules, key=key_of)
        if all(any(word in text for text in texts[each]) for word in anything.lower().split())
        and principal in each.principal
        and resource.lower() in each.resource_name.lower()
        and host in each.host
        and operation in (None, each.operation)
        and pattern in (None, each.pattern_type)
    ]
    assert found == naive


@given(st.frozensets(RULES, max_size=20), st.sampled_from(["", "a", "a.", "a.b"]))
def test_branches_have_every_rule_once(rules: frozenset[StandardAcl], prefix: str) -> None:
    listing = Listing.of(image_of(rules))
    topics = [each for each in rules if each.resource_type == ResourceType.TOPIC]
    below = [each for each in topics if each.resource_name.startswith(prefix)]
    branches = listing.branches(ResourceType.TOPIC, prefix, ".-")
    assert sum(branch.rules for branch in branches) == len(below)
    assert all(branch.text.startswith(prefix) for branch in branches)
    names = {(each.resource_name, each.pattern_type) for each in below}
    assert sum(branch.names for branch in branches) == len(names)
    known = [each for each in listing.found_names("") if each[0] == ResourceType.TOPIC and each[1].startswith(prefix)]
    found = [(name, pattern, listing.count(kind, name, pattern)) for kind, name, pattern in known]
    assert listing.count_names(ResourceType.TOPIC, prefix) == len(found)
    keys = sorted((each.resource_name, each.pattern_type) for each in below)
    assert found == [(*key, len(list(group))) for key, group in groupby(keys)]


def test_a_lone_way_on_is_gone() -> None:
    listing = Listing.of(image_of([acl("team.orders.eu"), acl("team.orders.us")]))
    found = listing.branches(ResourceType.TOPIC, "", ".")
    assert [(each.text, each.is_name) for each in found] == [("team.orders.eu", True), ("team.orders.us", True)]


def test_a_name_and_a_prefix_that_are_spelled_as_what_is_asked_are_ends() -> None:
    rules = [acl("pii-", pattern_type=PatternType.PREFIXED), acl("pii-"), acl("pii-customers"), acl("log")]
    listing = Listing.of(image_of(rules))
    assert [(each.text, each.names, each.pattern_type) for each in listing.branches(ResourceType.TOPIC, "", "-")] == [
        ("log", 1, PatternType.LITERAL),
        ("pii-", 3, None),
    ]
    assert [
        (each.text, each.names, each.pattern_type) for each in listing.branches(ResourceType.TOPIC, "pii-", "-")
    ] == [
        ("pii-", 1, PatternType.LITERAL),
        ("pii-", 1, PatternType.PREFIXED),
        ("pii-customers", 1, PatternType.LITERAL),
    ]
