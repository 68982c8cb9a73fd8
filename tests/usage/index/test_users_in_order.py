"""The order of users by principal and host, against a sort of pairs."""

from random import Random

import pytest

from aclog.usage.index.used import _in_order

TEXTS = ("User:a", "User:", "User:b", "é", "a\U0001f600", "\uffff", "")


@pytest.mark.parametrize("seed", range(30))
def test_users_are_in_the_order_of_pairs(seed):
    random = Random(seed)
    users = [(random.choice(TEXTS), random.choice(TEXTS)) for _ in range(random.randrange(40))]
    ordered, place = _in_order(users)
    pairs = sorted(set(users))
    assert [users[at] for at in ordered.tolist()] == pairs
    assert [pairs[at] for at in place.tolist()] == users
