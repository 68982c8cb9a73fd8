"""Comparison of access states: reproducible requests, differing decisions, and known differences."""

from attrs import evolve

from aclog.zookeeper.migration import AccessState, compare, generated_requests
from tests.zkstore.migration.entries import ACL


def test_generated_requests_are_reproducible_and_close_to_the_acls():
    rules = [evolve(ACL, resource_name=name, principal=f"User:{name}") for name in "abc"]
    requests = list(generated_requests(rules, 200))
    assert requests == list(generated_requests(rules, 200))
    assert {request.principal for request in requests} == {"User:a", "User:b", "User:c"}
    assert {request.name for request in requests} >= {"a", "b", "c"}
    assert list(generated_requests([], 10)) == []


def test_a_differing_decision_is_found_for_equal_contents():
    state = AccessState(acls=frozenset({ACL}))
    same = compare(state, state, store_decides=lambda _: True, target_decides=lambda _: True, requests=50)
    assert same.is_equal
    other = compare(
        state, state, store_decides=lambda _: True, target_decides=lambda request: request.name != "t", requests=50
    )
    assert not other.is_equal
    assert {each.request.name for each in other.disagreements} == {"t"}
    assert "ALLOWED by the store, DENIED by the target" in str(other.disagreements[0])


def test_starred_names_are_a_known_difference():
    state = AccessState(acls=frozenset({evolve(ACL, resource_name="*")}))
    found = compare(
        state,
        state,
        store_decides=lambda _: True,
        target_decides=lambda request: not (request.name.startswith("*") and len(request.name) > 1),
        requests=500,
    )
    assert found.disagreements
    assert found.is_equal
