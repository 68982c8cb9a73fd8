"""Budgets of connections: no network and no identity holds what others need, whatever the order in which they come."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aclog.console.connections import shares_of
from aclog.server.connection_budget import ConnectionBudget, Shares, Slot, network_of

SHARES = Shares(connections=12, reserve=4, of_network=5, of_identity=3)
STEPS = st.lists(
    st.tuples(st.sampled_from(["open", "close", "busy", "idle", "login"]), st.integers(0, 5), st.integers(0, 30)),
    max_size=120,
)


class Held:
    """The connections of a budget, as their owner knows them."""

    def __init__(self, budget: ConnectionBudget) -> None:
        self.budget, self.open, self.ended = budget, list[Slot](), list[tuple[Slot, str]]()

    def come(self, network: str) -> Slot | None:
        def end(reason: str) -> None:
            self.open.remove(slot)
            self.ended.append((slot, reason))

        slot = self.budget.open(network, end)
        if slot is not None:
            self.open.append(slot)
        return slot

    def go(self, slot: Slot) -> None:
        self.open.remove(slot)
        self.budget.close(slot)

    def step(self, what: str, key: int, number: int) -> None:
        if what == "open":
            self.come(f"network {key}")
        elif self.open:
            slot = self.open[number % len(self.open)]
            if what == "close":
                self.go(slot)
            elif what == "login":
                self.budget.authenticate(slot, f"identity {key}")
            else:
                slot.is_busy = what == "busy"


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("no address", "no address", True),
        ("", "0.0.0.0", False),
    ],
)
def test_peers_of_a_network_count_together(one: str, other: str, is_same: bool) -> None:
    assert (network_of(one) == network_of(other)) is is_same


@given(STEPS)
def test_no_share_is_exceeded(steps: list[tuple[str, int, int]]) -> None:
    held = Held(ConnectionBudget(shares=SHARES))
    for step in steps:
        held.step(*step)
        strangers = Counter(slot.network for slot in held.open if slot.identity is None)
        identities = Counter(slot.identity for slot in held.open if slot.identity is not None)
        assert len(held.open) == len(held.budget) <= SHARES.connections
        assert held.budget.strangers == strangers.total() <= SHARES.connections - SHARES.reserve
        assert held.budget.authenticated == identities.total()
        assert max(strangers.values(), default=0) <= SHARES.of_network
        sizes = {network: size for size, networks in enumerate(held.budget._by_size) for network in networks}
        assert sizes == dict(strangers)
        assert max(identities.values(), default=0) <= SHARES.of_identity
    for slot in tuple(held.open):
        held.go(slot)
    assert (len(held.budget), held.budget._strangers, held.budget._authenticated) == (0, {}, {})


@given(STEPS)
def test_what_is_being_answered_to_who_has_authenticated_is_never_ended(steps: list[tuple[str, int, int]]) -> None:
    held = Held(ConnectionBudget(shares=SHARES))
    for step in steps:
        held.step(*step)
    assert not any(slot.is_busy and slot.identity is not None for slot, _ in held.ended)


@given(STEPS, st.integers(0, 5))
def test_there_is_always_a_place_for_one_that_comes_unless_all_are_at_work(
    steps: list[tuple[str, int, int]], key: int
) -> None:
    held = Held(ConnectionBudget(shares=SHARES))
    for step in steps:
        held.step(*step)
    are_at_work = all(slot.is_busy and slot.identity is not None for slot in held.open)
    slot = held.come(f"network {key}")
    assert slot is not None or (are_at_work and len(held.open) == SHARES.connections)


def test_a_flood_of_one_network_costs_the_others_nothing() -> None:
    held = Held(ConnectionBudget(shares=shares_of(1000)))
    others = [held.come(f"10.0.0.{number}") for number in range(300)]
    known = [held.come("10.0.1.1") for _ in range(100)]
    assert all(slot is not None and held.budget.authenticate(slot, "token") for slot in known)
    for _ in range(5_000):
        assert held.come("10.9.9.9") is not None
    assert {slot.network for slot, _ in held.ended} == {"10.9.9.9"}
    assert all(slot in held.open for slot in (*others, *known))


def test_the_oldest_idle_one_gives_its_place() -> None:
    held = Held(ConnectionBudget(shares=SHARES))
    slots = [held.come("a") for _ in range(SHARES.of_network)]
    assert slots[0] is not None
    slots[0].is_busy = True
    held.come("a")
    assert held.ended == [(slots[1], "network")]


def test_one_identity_cannot_take_the_reserve() -> None:
    held = Held(ConnectionBudget(shares=SHARES))
    slots = []
    for number in range(SHARES.of_identity):
        slot = held.come(f"n{number}")
        assert slot is not None
        assert held.budget.authenticate(slot, "one")
        slot.is_busy = True
        slots.append(slot)
    further = held.come("further")
    assert further is not None
    assert not held.budget.authenticate(further, "one"), "all that it may hold are at work"
    assert held.budget.authenticate(further, "another")
    slots[1].is_busy = False
    last = held.come("last")
    assert last is not None
    assert held.budget.authenticate(last, "one")
    assert held.ended == [(slots[1], "identity")]


def test_one_that_was_closed_before_it_authenticated_ends_no_other() -> None:
    held = Held(ConnectionBudget(shares=Shares(connections=3, of_network=3, of_identity=1)))
    first = held.come("a")
    assert held.budget.authenticate(first, "identity")
    late = held.come("b")
    held.go(late)
    assert held.budget.authenticate(late, "identity")
    assert (held.open, held.ended, len(held.budget)) == ([first], [], 1)


def test_who_authenticates_as_another_counts_as_that_one() -> None:
    held = Held(ConnectionBudget(shares=SHARES))
    slot = held.come("a")
    assert slot is not None
    for identity in ("one", "two", "two"):
        assert held.budget.authenticate(slot, identity)
    assert held.budget._authenticated == {"two": {slot: None}}
    held.go(slot)
    assert held.budget.authenticate(slot, "three"), "it was closed meanwhile"
    assert len(held.budget) == 0


@example([("open", 0, 0)] * 10)
@given(STEPS)
def test_an_even_budget_ends_only_idle_ones_of_a_network_that_holds_clearly_more(
    steps: list[tuple[str, int, int]],
) -> None:
    held = Held(ConnectionBudget(shares=Shares.equal(8), keeps_evenly=True))
    for what, key, number in steps:
        before = Counter(slot.network for slot in held.open if slot.identity is None)
        ended = len(held.ended)
        held.step(what, key, number)
        for slot, _ in held.ended[ended:]:
            assert not slot.is_busy
            assert slot.identity is None
            assert before[slot.network] > before[f"network {key}"] + 1
    assert len(held.open) <= 8
