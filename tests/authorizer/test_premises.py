"""What the nodes of a cluster answer of their authorizers, and what stays unknown."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG
from aclog.authorizer.standard import (
    AUTHORIZER_CLASS_NAME_CONFIG,
    KAFKAS_STANDARD_AUTHORIZER,
    SETTLED,
    UNKNOWN,
    ClusterSettings,
    NodeSettings,
    Premise,
    Premises,
)

CLASS = {AUTHORIZER_CLASS_NAME_CONFIG: KAFKAS_STANDARD_AUTHORIZER}


def node(number=1, problem=None, **values):
    named = {"super_users": SUPER_USERS_CONFIG, "allow": ALLOW_EVERYONE_CONFIG, "cls": AUTHORIZER_CLASS_NAME_CONFIG}
    found = {} if problem else CLASS | {named[key]: value for key, value in values.items()}
    return NodeSettings(node=f"broker {number}", values=found, problem=problem)


def premises(*nodes, given=frozenset(), **more):
    return ClusterSettings(nodes=nodes, **more).premises(given)


@pytest.mark.parametrize(
    "values", [{}, {"allow": "false"}, {"allow": "no"}, {"super_users": ""}, {"super_users": " ; ", "allow": " False "}]
)
def test_a_property_that_is_as_if_it_were_not_set_is_known(values):
    assert not premises(node(**values), node(2))


@pytest.mark.parametrize(
    ("nodes", "name", "problem", "settled_by"),
    [
        (
            [node(super_users=None), node(2, super_users=None), node(3)],
            SUPER_USERS_CONFIG,
            "it is set on brokers 1, 2, where the value is hidden",
            "--super-users USERS",
        ),
        (
            [node(super_users="User:a b")],
            SUPER_USERS_CONFIG,
            "on broker 1 it is 'User:a b', which no flag or context sets",
            "--super-users 'User:a b'",
        ),
        (
            [node(allow="TRUE"), node(2, allow="false")],
            ALLOW_EVERYONE_CONFIG,
            "on broker 1 it is 'TRUE', which no flag or context sets",
            "--allow-everyone-if-no-acl-found",
        ),
        (
            [node(super_users="User:{}"), node(2, super_users="nobody")],
            SUPER_USERS_CONFIG,
            (
                "on broker 1 it is 'User:{}', which no flag or context sets; "
                "on broker 2 it is 'nobody', which no flag or context sets"
            ),
            "--super-users USERS",
        ),
        (
            [node(n, super_users=None) for n in range(1, 9)],
            SUPER_USERS_CONFIG,
            "it is set on brokers 1, 2, 3, 4, 5 and 3 more, where the value is hidden",
            "--super-users USERS",
        ),
    ],
)
def test_a_property_that_is_set_is_unknown_unless_it_is_given(nodes, name, problem, settled_by):
    [found] = premises(*nodes).unknown
    assert (found.name, found.problem, found.settled_by) == (name, problem, settled_by)
    assert (found.allows, found.denies) == (True, False)
    assert not premises(*nodes, given={name})


def test_a_node_that_does_not_answer_leaves_both_unknown_and_says_why():
    both = premises(node(), node(2, problem="no right"))
    assert set(both.names) == SETTLED
    assert {each.problem for each in both.unknown} == {"it cannot be read on broker 2: no right"}
    assert premises(node(2, problem="x"), given={SUPER_USERS_CONFIG}).names == (ALLOW_EVERYONE_CONFIG,)
    assert not premises(node(2, problem="x"), given=SETTLED)


def test_an_authorizer_that_is_not_kafkas_may_decide_anything():
    for hidden, said in (("com.example.Own", "com.example.Own"), (None, "one whose class is hidden")):
        [found] = premises(node(cls=hidden), node(2)).unknown
        assert found.name == AUTHORIZER_CLASS_NAME_CONFIG
        assert found.problem == f"broker 1 has {said}"
        assert found.denies
        assert found.allows
        assert "--acls FILE" in found.settled_by
        assert premises(node(cls=hidden), given=SETTLED)  # no flag can settle it


def test_a_broker_without_an_authorizer_allows_everything():
    [found] = premises(node(), node(2, cls="")).unknown
    assert found.problem == "broker 2 may have none, and then everything is allowed"
    assert not found.denies


def test_no_authorizer_at_all_is_known_only_where_none_has_described_acls():
    none = node(cls=""), node(2, cls=" ")
    assert ClusterSettings(nodes=none).has_no_authorizer
    served = ClusterSettings(nodes=none, serves_acls=True)
    assert not served.has_no_authorizer
    assert not served.premises(frozenset())  # a service that hides the property
    assert not ClusterSettings(nodes=(*none, node(3, problem="x"))).has_no_authorizer
    with pytest.raises(ValueError, match="nodes"):
        ClusterSettings(nodes=())  # of which nothing is known


VALUES = st.none() | st.sampled_from(["", "true", "false", "User:a", "x"])
NODES = st.lists(
    st.builds(
        lambda number, problem, values: NodeSettings(
            node=f"broker {number}", problem=problem, values={} if problem else values
        ),
        st.integers(0, 9),
        st.none() | st.just("out of reach"),
        st.dictionaries(st.sampled_from([*sorted(SETTLED), AUTHORIZER_CLASS_NAME_CONFIG]), VALUES),
    ),
    min_size=1,
    max_size=4,
)


@given(NODES, st.booleans())
def test_what_is_given_is_never_unknown_and_the_rest_stays(nodes, serves_acls):
    settings = ClusterSettings(nodes=tuple(nodes), serves_acls=serves_acls)
    everything = settings.premises(frozenset())
    for given_names in [{SUPER_USERS_CONFIG}, {ALLOW_EVERYONE_CONFIG}, SETTLED]:
        assert settings.premises(given_names) == everything.without(given_names)
    for name in SETTLED:
        unread = [each for each in nodes if not each.is_read or each.values.get(name, "") is None]
        assert not unread or name in everything.names
    assert all(UNKNOWN in each.note() for each in everything.unknown)


def test_only_what_could_turn_an_answer_is_named():
    more = Premise(name="a", problem="p", unless="u", settled_by="--a")
    other = Premise(name="b", problem="p", unless="v", settled_by="--b", denies=True)
    less = Premise(name="c", problem="p", unless="w", settled_by="--c", allows=False, denies=True)
    found = Premises((more, other, less))
    assert found.turning(allowed=False).names == ("a", "b")
    assert found.turning(allowed=True).names == ("b", "c")
    assert found.turning(allowed=False).decided("DENIED") == "DENIED unless u (--a) or v (--b)"
    assert Premises().decided("DENIED") == "DENIED"
    assert Premises().key() == {}
    texts = [each.note().split(": ")[2] for each in found.unknown]
    assert all(one.split(";")[0] != two.split(";")[0] for one, two in pairwise(texts))


def test_allow_everyone_bears_on_resources_without_acls_alone():
    everyone = Premise(name=ALLOW_EVERYONE_CONFIG, problem="p", unless="u", settled_by="--x")
    assert Premises((everyone,)).bearing_on(allowed=False, has_candidate=False)
    assert not Premises((everyone,)).bearing_on(allowed=False, has_candidate=True)
    assert not Premises((everyone,)).bearing_on(allowed=True, has_candidate=False)
