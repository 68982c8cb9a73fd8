"""Creating, renewing, expiring and sweeping tokens: the resulting records and errors, and the order of checks."""

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from aclog.credentials.tokens import (
    MAX_SWEPT,
    Renewer,
    TokenCreation,
    TokenIndex,
    TokenSettings,
    TokensImage,
    create_token,
    expire_token,
    is_expired,
    refusal,
    renew_token,
    sweep,
    token_hmac_bytes,
)
from aclog.metalog.records import DelegationTokenRecord, RemoveDelegationTokenRecord

MAX_LONG = (1 << 63) - 1
NOW = 1_800_000_000_000
SETTINGS = TokenSettings(secret="hush", max_lifetime_ms=1000, expiry_time_ms=400)
ALICE, BOB, CAROL, DAVE = (f"User:{name}" for name in ("alice", "bob", "carol", "dave"))


def creation(owner=ALICE, requester=CAROL, renewers=(("User", "bob"),), lifetime=-1):
    named = tuple(Renewer(type=kind, name=name) for kind, name in renewers)
    return TokenCreation(owner=owner, requester=requester, renewers=named, max_lifetime_ms=lifetime)


def token(**changes: Any) -> DelegationTokenRecord:
    (made,) = create_token(creation(), token_id="id", now=NOW, settings=SETTINGS).records
    return evolve(made, **changes)


def test_a_token() -> None:
    result = create_token(creation(), token_id="id", now=NOW, settings=SETTINGS)
    made = DelegationTokenRecord(
        owner=ALICE, requester=CAROL, renewers=(BOB,), issue_timestamp=NOW, max_timestamp=NOW + 1000,
        expiration_timestamp=NOW + 400, token_id="id",
    )  # fmt: skip
    assert (result.error_code, result.records, result.expiry_ms) == (0, (made,), NOW + 400)


@pytest.mark.parametrize(
    ("wanted", "longest", "expires"),
    [(-1, 1000, 400), (0, 1000, 400), (1, 1, 1), (399, 399, 399), (401, 401, 400), (1001, 1000, 400)],
)
def test_a_lifetime_is_bounded_by_the_server(wanted, longest, expires) -> None:
    (made,) = create_token(creation(lifetime=wanted), token_id="id", now=NOW, settings=SETTINGS).records
    assert (made.max_timestamp, made.expiration_timestamp) == (NOW + longest, NOW + expires)


def test_sums_saturate_at_the_largest_long() -> None:
    endless = TokenSettings(secret="x", max_lifetime_ms=MAX_LONG, expiry_time_ms=MAX_LONG)
    (made,) = create_token(creation(), token_id="id", now=NOW, settings=endless).records
    assert (made.max_timestamp, made.expiration_timestamp) == (MAX_LONG, MAX_LONG)
    assert renew_token(made, ALICE, MAX_LONG, now=NOW, settings=endless).expiry_ms == MAX_LONG
    assert expire_token(made, ALICE, MAX_LONG, now=NOW).expiry_ms == MAX_LONG


@pytest.mark.parametrize(
    "renewers", [(("Group", "g"),), (("User", "b"), ("user", "c")), (("", "x"),), (("User:", "x"),)]
)
def test_renewers_are_users(renewers) -> None:
    result = create_token(creation(renewers=renewers), token_id="id", now=NOW, settings=SETTINGS)
    assert (result.error_code, result.records) == (67, ())


def test_tokens_unavailable() -> None:
    assert refusal(TokenSettings(), supported=False) == refusal(TokenSettings(secret=""), supported=True) == 61
    assert refusal(SETTINGS, supported=False) == 35
    assert refusal(SETTINGS, supported=True) == 0


@pytest.mark.parametrize(("period", "until"), [(-1, 400), (0, 400), (1, 1), (399, 399), (401, 400)])
def test_a_renewal(period, until) -> None:
    for who in (ALICE, BOB):
        result = renew_token(token(expiration_timestamp=NOW + 5), who, period, now=NOW, settings=SETTINGS)
        assert (result.error_code, result.expiry_ms) == (0, NOW + until)
        assert result.records == (token(expiration_timestamp=NOW + until),)


def test_a_renewal_ends_at_the_max_timestamp() -> None:
    held = token(expiration_timestamp=NOW + 1000)
    assert renew_token(held, BOB, -1, now=NOW + 900, settings=SETTINGS).expiry_ms == NOW + 1000
    assert expire_token(held, BOB, 200, now=NOW + 900).expiry_ms == NOW + 1000


@pytest.mark.parametrize("who", [CAROL, DAVE, "User:", "Group:alice", "alice"])
def test_only_owner_and_renewers_may_renew(who) -> None:
    """A requester who is neither is refused, although KIP-48 allows it; super users are not a concern here."""
    assert renew_token(token(), who, -1, now=NOW, settings=SETTINGS).error_code == 63
    assert expire_token(token(), who, -1, now=NOW).error_code == 63


def test_the_order_of_checks() -> None:
    """A renewal checks expiry before the requester, an expiry checks the requester first."""
    late = NOW + 401
    assert renew_token(None, DAVE, -1, now=NOW, settings=SETTINGS).error_code == 62
    assert expire_token(None, DAVE, -1, now=NOW).error_code == 62
    assert renew_token(token(), DAVE, -1, now=late, settings=SETTINGS).error_code == 66
    assert renew_token(token(), ALICE, -1, now=late, settings=SETTINGS).error_code == 66
    assert expire_token(token(), DAVE, 0, now=late).error_code == 63
    assert expire_token(token(), ALICE, 0, now=late).error_code == 66
    gone = expire_token(token(), ALICE, -1, now=late)
    assert (gone.error_code, gone.records, gone.expiry_ms) == (0, (RemoveDelegationTokenRecord(token_id="id"),), late)


def test_a_token_is_valid_at_its_exact_expiry() -> None:
    assert not is_expired(token(), NOW + 400)
    assert is_expired(token(), NOW + 401)
    assert is_expired(token(expiration_timestamp=MAX_LONG), NOW + 1001)
    assert expire_token(token(), ALICE, 0, now=NOW).expiry_ms == NOW


def test_a_sweep() -> None:
    tokens = [token(token_id=f"{number:05}", expiration_timestamp=NOW + number) for number in range(2500)]
    image = TokensImage.EMPTY.apply(tokens)
    assert sweep(image, NOW) == ()
    assert sweep(image, NOW + 3) == tuple(RemoveDelegationTokenRecord(token_id=f"0000{n}") for n in range(3))
    counts = []
    while removed := sweep(image, NOW + 2100):
        counts.append(len(removed))
        image = image.apply(removed)
    assert (counts, len(image)) == ([MAX_SWEPT, MAX_SWEPT, 500], 0), "max timestamps count too"


def test_secrets_are_not_shown() -> None:
    index = TokenIndex("hush", b"hush-hush")
    index.add(["id"])
    assert "hush" not in repr(SETTINGS) + repr(index)


class TestIndex:
    def index(self, *token_ids: str) -> TokenIndex:
        made = TokenIndex("hush", b"key")
        made.add(token_ids)
        return made

    def test_a_token_is_found_by_its_hmac(self) -> None:
        image = TokensImage.EMPTY.apply([token(token_id="a"), token(token_id="b")])
        index = self.index("a", "b", "not in the image")
        assert index.find(image, token_hmac_bytes("hush", "b")) == token(token_id="b")
        assert index.find(image, token_hmac_bytes("hush", "not in the image")) is None
        for wrong in (b"", token_hmac_bytes("hush", "b")[:-1], token_hmac_bytes("other", "b"), b"x" * 64, b"x" * 1000):
            assert index.find(image, wrong) is None
        index.remove(["b", "never there"])
        assert index.find(image, token_hmac_bytes("hush", "b")) is None


TIMES = st.one_of(st.integers(-2, 3000), st.sampled_from([MAX_LONG, -MAX_LONG]))
PEOPLE = st.sampled_from([ALICE, BOB, CAROL, DAVE])


class Naive:
    """A naive model of a token: its owner, renewers, and its current and last possible expiry."""

    def __init__(self, owner: str, renewers: set[str], born: int, lifetime: int) -> None:
        self.trusted = {owner, *renewers}
        self.longest = born + (min(lifetime, 1000) if lifetime > 0 else 1000)
        self.ends = min(self.longest, born + 400)

    def dead(self, now: int) -> bool:
        return self.ends < now


class Tokens(RuleBasedStateMachine):
    """Any sequence of creations, renewals, expiries, sweeps and clock steps, compared with the naive model."""

    made = Bundle("made")

    @initialize()
    def begin(self) -> None:
        self.now, self.image, self.book, self.index = NOW, TokensImage.EMPTY, {}, TokenIndex("hush", b"key")

    @rule(step=st.integers(0, 700))
    def tick(self, step) -> None:
        self.now += step

    @rule(target=made, owner=PEOPLE, renewers=st.lists(PEOPLE, max_size=2), lifetime=TIMES)
    def create(self, owner, renewers, lifetime) -> str:
        token_id = f"{len(self.book)}"
        named = tuple(tuple(renewer.split(":")) for renewer in renewers)
        asked = creation(owner=owner, renewers=named, lifetime=lifetime)
        result = create_token(asked, token_id=token_id, now=self.now, settings=SETTINGS)
        self.index.add([token_id])
        self.book[token_id] = kept = Naive(owner, set(renewers), self.now, lifetime)
        self.image = self.image.apply(result.records)
        assert (result.error_code, result.expiry_ms) == (0, kept.ends)
        return token_id

    @rule(token_id=made, who=PEOPLE, period=TIMES)
    def renew(self, token_id, who, period) -> None:
        found = self.index.find(self.image, token_hmac_bytes("hush", token_id))
        result = renew_token(found, who, period, now=self.now, settings=SETTINGS)
        kept = self.book[token_id]
        if kept is None:
            expected = 62
        elif kept.dead(self.now):
            expected = 66
        else:
            expected = 0 if who in kept.trusted else 63
        assert result.error_code == expected
        if not expected:
            kept.ends = min(kept.longest, self.now + (min(period, 400) if period > 0 else 400))
            assert result.expiry_ms == kept.ends
        self.image = self.image.apply(result.records)

    @rule(token_id=made, who=PEOPLE, period=TIMES)
    def expire(self, token_id, who, period) -> None:
        found = self.index.find(self.image, token_hmac_bytes("hush", token_id))
        result = expire_token(found, who, period, now=self.now)
        kept = self.book[token_id]
        if kept is None:
            expected = 62
        elif who not in kept.trusted:
            expected = 63
        else:
            expected = 66 if period >= 0 and kept.dead(self.now) else 0
        assert result.error_code == expected
        if not expected and period < 0:
            self.book[token_id] = None
        elif not expected:
            kept.ends = min(kept.longest, self.now + period)
            assert result.expiry_ms == kept.ends
        self.image = self.image.apply(result.records)

    @rule()
    def sweep(self) -> None:
        removed = sweep(self.image, self.now)
        dead = {token_id for token_id, kept in self.book.items() if kept is not None and kept.dead(self.now)}
        assert {record.token_id for record in removed} == dead
        self.book |= dict.fromkeys(dead)
        self.image = self.image.apply(removed)
        self.index.remove(record.token_id for record in removed)

    @rule(token_id=consumes(made))
    def forget(self, token_id) -> None:
        """Nobody asks for this one any more; sweeps see to it."""

    @invariant()
    def no_token_outlives_its_max_lifetime(self) -> None:
        for held in self.image.records():
            assert held.issue_timestamp <= held.max_timestamp <= held.issue_timestamp + SETTINGS.max_lifetime_ms
            assert held.expiration_timestamp <= held.max_timestamp

    @invariant()
    def the_book_agrees(self) -> None:
        kept = {token_id: each.ends for token_id, each in self.book.items() if each is not None}
        assert {held.token_id: held.expiration_timestamp for held in self.image.records()} == kept


TestTokens = Tokens.TestCase


@given(st.binary(max_size=80))
def test_no_hmac_is_found_by_chance(data) -> None:
    index = TokenIndex("hush", b"key")
    index.add(["id"])
    assert index.find(TokensImage.EMPTY.apply([token()]), data) is None
