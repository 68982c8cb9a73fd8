"""What must stay, against trying every set of rules that could go."""

from itertools import chain, combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from aclog.usage.unused import NO_PREMISE, KeepClause, fewest_kept, keep_clauses
from aclog.usage.window import AccessSets

RULES = 9
numbers = st.integers(0, RULES - 1)


def allowed(denies, allows) -> bool:
    return bool(allows) and not denies


def flips(accesses, present, gone) -> bool:
    """Whether any access is decided otherwise without what is gone, by the rules of its time or of now."""
    for denies, allows in accesses:
        if allowed(denies - gone, allows - gone) != allowed(denies, allows):
            return True
        denies_now, allows_now = denies & present, allows & present
        if allowed(denies_now - gone, allows_now - gone) != allowed(denies_now, allows_now):
            return True
    return False


def subsets(items):
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))


@st.composite
def histories(draw):
    denying = draw(st.frozensets(numbers, max_size=4))
    present = draw(st.frozensets(numbers))
    accesses = draw(st.lists(st.frozensets(numbers, min_size=1, max_size=5), max_size=14))
    pairs = {(each & denying, each - denying) for each in accesses}
    # what an access needs never goes: it is in no set by itself
    needed = {
        min(each) for denies, allows in pairs
        for each in ((allows,) if not denies else (denies,) if allows else ()) if len(each) == 1
    }  # fmt: skip
    may_go = draw(st.frozensets(numbers)) & present - needed
    return [pair for pair in pairs if len(pair[0]) + len(pair[1]) > 1], present, may_go


def mask(items):
    found = np.zeros(RULES, np.bool_)
    found[list(items)] = True
    return found


@given(histories(), st.lists(st.integers(0, 3), min_size=RULES, max_size=RULES))
def test_the_most_goes_that_flips_nothing(history, worth):
    accesses, present, may_go = history
    clauses = keep_clauses(AccessSets.of(accesses), present=mask(present), may_go=mask(may_go))
    gone = may_go - fewest_kept(clauses, worth.__getitem__)
    assert not flips(accesses, present, gone)
    most = max(len(each) for each in subsets(may_go) if not flips(accesses, present, frozenset(each)))
    assert len(gone) == most


def satisfied(clauses, kept) -> bool:
    return all(
        not kept.isdisjoint(each.members) for each in clauses if each.premise == NO_PREMISE or each.premise in kept
    )


members = st.lists(numbers, min_size=1, max_size=4, unique=True).map(lambda found: tuple(sorted(found)))
premises = st.one_of(st.just(NO_PREMISE), numbers)


@given(st.sets(st.builds(KeepClause, premises, members), max_size=20))
def test_what_is_kept_is_enough_and_the_fewest(clauses):
    kept = fewest_kept(clauses, lambda number: number)
    assert satisfied(clauses, kept)
    assert len(kept) == min(len(each) for each in subsets(range(RULES)) if satisfied(clauses, set(each)))


def test_a_large_group_is_no_larger_than_what_can_go_one_by_one():
    """More rules than a search gets through: each of a ring covers its neighbors, and all are linked."""
    size = 1_000
    clauses = {KeepClause(NO_PREMISE, tuple(sorted({at, (at + 1) % size, (at * 7 + 3) % size}))) for at in range(size)}
    kept = fewest_kept(clauses, lambda _: 0)
    assert satisfied(clauses, kept)
    one_by_one = set(range(size))
    for each in range(size):
        if satisfied(clauses, one_by_one - {each}):
            one_by_one.remove(each)
    assert len(kept) <= len(one_by_one)


def test_of_equals_the_one_that_matched_most_stays():
    clauses = {KeepClause(NO_PREMISE, (1, 2, 3))}
    assert fewest_kept(clauses, {1: 5, 2: 7, 3: 7}.__getitem__) == {2}


def test_denies_may_go_with_all_that_they_overrule():
    sets = AccessSets.of([({0, 1}, {2}), ({0, 1}, {2, 3})])
    everything = np.ones(4, np.bool_)
    assert fewest_kept(keep_clauses(sets, present=everything, may_go=everything), lambda _: 0) == set()
    stays = mask({0, 1, 2})
    assert len(fewest_kept(keep_clauses(sets, present=everything, may_go=stays), lambda _: 0)) == 1
