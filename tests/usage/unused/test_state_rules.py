"""The rules of a state by number, and where their keys stand among others."""

import numpy as np
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import record_of, rule_fields
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclPermissionType
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.usage.unused import StateRules, places_of
from tests.support.builders.images import with_ids
from tests.support.models import estates

keys = st.lists(st.one_of(st.binary(min_size=16, max_size=16), st.integers(0, 9).map(lambda n: n.to_bytes(16))))


colonless = estates.rules().map(lambda acl: evolve(acl, principal="anybody"))


@given(st.lists(st.one_of(estates.rules(), colonless), unique=True, max_size=12), st.data())
def test_numbers_of_rules(acls, data):
    rules = with_ids(acls)
    first = data.draw(st.integers(0, len(rules)))
    removed = data.draw(st.sets(st.sampled_from(rules))) if rules else set()
    image = AclsImage.from_acls(rules[:first]).apply(record_of(rule.acl, rule.id) for rule in rules[first:])
    state = StateRules.of(image.apply(RemoveAccessControlEntryRecord(id=rule.id) for rule in removed))
    left = [rule for rule in rules if rule not in removed]
    numbered = list(state.in_text_order())
    assert [rule for _, rule in numbered] == sorted(left, key=rule_fields)
    assert sorted(number for number, _ in numbered) == list(range(len(state)))
    assert all(state.rule(number) == rule for number, rule in numbered)
    assert [state.ids[number].tobytes() for number, _ in numbered] == [rule.id.bytes for _, rule in numbered]
    some = np.array([data.draw(st.booleans()) for _ in range(len(state))], np.bool_)
    assert list(state.in_text_order(some)) == [each for each in numbered if some[each[0]]]
    denies = [rule.acl.permission_type != AclPermissionType.ALLOW for _, rule in numbered]
    assert [bool(state.denies[number]) for number, _ in numbered] == denies
    some_numbers = np.flatnonzero(some)
    assert state.principals(some_numbers) == [state.rule(number).acl.principal for number in some_numbers.tolist()]
    throwing = [":" not in rule.acl.principal for _, rule in numbered]
    assert [bool(state.throwing[number]) for number, _ in numbered] == throwing
    patterns = [(rule.acl.resource_type, rule.acl.resource_name, rule.acl.pattern_type) for _, rule in numbered]
    numbers = [int(state.patterns[number]) for number, _ in numbered]
    pairs = set(zip(patterns, numbers, strict=True))
    assert len(pairs) == len(set(patterns)) == len(set(numbers))
    assert state.has_ids or not left


def test_a_state_without_ids():
    state = StateRules.of(AclsImage.from_acls([]))
    assert (len(state), list(state.in_text_order())) == (0, [])


@given(keys, keys)
def test_places_of_keys(wanted, among):
    among = list(dict.fromkeys(among))
    one, other = (np.frombuffer(b"".join(each), np.uint8).reshape(-1, 16) for each in (wanted, among))
    assert places_of(one, other).tolist() == [among.index(key) if key in among else -1 for key in wanted]
