"""What could turn a proof that nothing differs: with any values of what is left, nothing does."""

from random import Random

from attrs import evolve
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from aclog.analysis.comparison import Comparison, SidePremises, turning
from aclog.analysis.policy import Policy
from aclog.analysis.regions import Direction
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG
from aclog.authorizer.standard import ALL_KNOWN, Premise, Premises
from tests.support.analysis.policies import image_of, random_pair
from tests.support.runs.profiles import examples

CAMPAIGN = settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck), database=None)
NAMES = (SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG)
SIDES = st.sets(st.sampled_from(NAMES))


def unknown(names):
    return Premises(tuple(Premise(name=name, problem="p", unless="u", settled_by="-") for name in sorted(names)))


def with_values(policy, names, users, *, is_open):
    values = {SUPER_USERS_CONFIG: {"super_users": users}, ALLOW_EVERYONE_CONFIG: {"allow_everyone": is_open}}
    changes = {key: value for name in names for key, value in values[name].items()}
    return Policy(policy.acls, evolve(policy.settings, **changes))


def pair(random):
    """Two policies with Kafka's defaults, of rules that often decide alike: one lacks some of the other's."""
    old, _ = random_pair(random)
    old = Policy(old.acls, evolve(old.settings, super_users=frozenset(), allow_everyone=False))
    rules = [rule.acl for rule in old.acls]
    kept = [rule for rule in rules if random.random() < 0.8]
    new = Policy(image_of(kept).with_options(documented=old.acls.documented, cidr=old.acls.cidr), old.settings)
    return (old, new) if random.random() < 0.5 else (new, old)


@CAMPAIGN
@given(
    st.integers(0, 2**32 - 1).map(Random), SIDES, SIDES, st.booleans(), st.sampled_from([None, Direction.GAINED]),
    st.booleans(),
)  # fmt: skip
def test_nothing_differs_whatever_cannot_turn_it(random, in_old, in_new, same_settings, direction, is_open):
    old, new = pair(random)
    found = Comparison.of(old, new, direction=direction)
    assume(not found.differences)
    sides = SidePremises(old=unknown(in_old), new=unknown(in_new), same_settings=same_settings)
    left = {name for name in NAMES if name not in turning(sides, found, direction).names}
    principals = sorted({rule.acl.principal for policy in (old, new) for rule in policy.acls}) or ["User:x"]
    users = [frozenset(random.sample(principals, random.randint(0, len(principals)))) for _ in range(2)]
    opens = [is_open, is_open]
    if not same_settings:
        opens[1], users[1] = random.random() < 0.5, users[random.randint(0, 1)]
    else:
        users[1] = users[0]
    old_now = with_values(old, in_old & left, users[0], is_open=opens[0])
    new_now = with_values(new, in_new & left, users[1], is_open=opens[1])
    assert not Comparison.of(old_now, new_now, direction=direction).differences


def test_settings_of_one_cluster_turn_nothing_by_their_super_users():
    old = new = Policy(image_of([]))
    found = Comparison.of(old, new)
    both = unknown(NAMES)
    assert not turning(SidePremises.of_one(both, frozenset(), frozenset()), found)
    given_once = SidePremises.of_one(both, frozenset({SUPER_USERS_CONFIG}), frozenset())
    assert turning(given_once, found).names == (SUPER_USERS_CONFIG,)
    assert turning(given_once, found, Direction.GAINED).names == (SUPER_USERS_CONFIG,)
    assert not turning(SidePremises(old=both, new=ALL_KNOWN), found, Direction.GAINED)
    apart = SidePremises(old=both, new=both, same_settings=False)
    assert set(turning(apart, found).names) == set(NAMES)
