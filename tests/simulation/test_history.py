"""The checker of histories: against every order of small ones, and on the violations that it must find."""

from itertools import permutations
from math import inf

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tests.simulation.history import Call, History


def explained(calls, latest=inf):
    """The naive reference: whether some order of the calls, of which those without an answer may be left out, fits."""
    returned = [call for call in calls if call.answer is not None]
    unknown = [evolve(call, ended=call.begun + latest) for call in calls if call.answer is None]
    for mask in range(1 << len(unknown)):
        chosen = returned + [call for number, call in enumerate(unknown) if mask >> number & 1]
        for order in permutations(chosen):
            state = frozenset()
            for number, call in enumerate(order):
                if any(later.ended < call.begun for later in order[number + 1 :]):
                    break
                state = call.apply(state)
                if state is None:
                    break
            else:
                return True
    return False


SETS = st.frozensets(st.integers(0, 2), max_size=2)


@st.composite
def a_call(draw):
    kind, acls = draw(st.sampled_from(("create", "delete", "describe"))), draw(SETS)
    begun = draw(st.integers(0, 12))
    if draw(st.booleans()) and draw(st.booleans()):
        return Call(kind=kind, acls=acls, begun=begun)
    answer = acls if kind == "create" else draw(SETS) & acls
    return Call(kind=kind, acls=acls, begun=begun, ended=begun + draw(st.integers(1, 6)) + 0.5, answer=answer)


@given(st.lists(a_call(), max_size=5))
def test_it_agrees_with_every_order(calls):
    assert (History(calls=calls).first_violation() is None) is explained(calls)


@given(st.lists(a_call(), max_size=5))
def test_a_history_that_is_split_has_no_violation_that_the_whole_has_not(calls):
    split = History(calls=calls, most_steps=0)
    if split.first_violation() is not None:
        assert not explained(calls)
    assert split.was_split or not any(call.answer is not None for call in calls)


@given(st.lists(a_call(), max_size=5))
def test_a_bound_of_late_effects_agrees_with_every_order(calls):
    assert (History(calls=calls, latest=4.25).first_violation() is None) is explained(calls, 4.25)


def test_a_lost_acknowledged_write_is_found_in_a_split_history():
    calls = [
        Call(kind="create", acls=frozenset({1, 2}), begun=0, ended=1, answer=frozenset({1, 2})),
        Call(kind="describe", acls=frozenset({1, 2}), begun=2, ended=3, answer=frozenset({1})),
    ]
    history = History(calls=calls, most_steps=0)
    assert history.first_violation() is not None
    assert (history.was_split, history.undecided) == (True, False)


def test_a_lost_acknowledged_write():
    calls = [
        Call(kind="create", acls=frozenset({1}), begun=0, ended=1, answer=frozenset({1})),
        Call(kind="describe", acls=frozenset({1}), begun=2, ended=3, answer=frozenset()),
    ]
    assert History(calls=calls).first_violation() is calls[1]


def test_a_write_of_unknown_outcome_may_take_effect_late_or_never():
    lost = Call(kind="create", acls=frozenset({1}), begun=0)
    reads = [
        Call(kind="describe", acls=frozenset({1}), begun=at, ended=at + 1, answer=frozenset(answer))
        for at, answer in ((2, ()), (4, {1}))
    ]
    assert History(calls=[lost, *reads]).first_violation() is None
    assert History(calls=[lost, reads[0]]).first_violation() is None
