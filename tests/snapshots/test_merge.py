"""A merge under way: whatever happens meanwhile, the state is that of a replay in order, and each merge ends."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import ReplayError
from aclog.metalog.records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from aclog.snapshots.applier import Applier
from aclog.snapshots.image import Image, Provenance
from aclog.snapshots.publisher import Publisher
from tests.support.builders.state_records import acl, removal
from tests.support.runs.profiles import examples

ONE_BY_ONE = 1 << 60
NUMBERS = st.integers(0, 11)


def chunk(base, *records):
    values = [encode_record(record) for record in records]
    return build_batch(values, base_offset=base, leader_epoch=1, timestamp=base)


def rule_of(number):
    """One of a few rules: pairs of them share a resource, a prefix, or a subject."""
    return acl(number, name=f"t{number // 4}", principal=f"User:u{number % 4}", permission=2 + number % 2)


def held(numbers):
    return sorted(encode_record(rule_of(number)) for number in numbers)


class MergesAmongUpdates(RuleBasedStateMachine):
    """A publisher in every interleaving of updates, commits, checkpoints, failures and merges, beside plain sets."""

    def __init__(self):
        super().__init__()
        self.publisher = Publisher(applier=Applier(bulk_bytes=ONE_BY_ONE))
        self.shown, self.newest, self.staged = set(), set(), []
        self.open = None  # what an open transaction has made of `newest`
        self.offset, self.merge, self.failed, self.kept, self.told = 0, None, False, [], []
        self.publisher.subscribe(self.told.append)

    def records(self, numbers):
        """Records that turn each of these rules on or off, and what holds after them."""
        after, made = set(self.newest if self.open is None else self.open), []
        for number in numbers:
            made.append(removal(number) if number in after else rule_of(number))
            after ^= {number}
        return made, after

    def apply(self, how, records, after, *, visible):
        data = chunk(self.offset, *records)
        image = how(data)
        self.offset += len(records)
        if visible:
            self.newest, self.open = after, None
        else:
            self.open = after
        return image

    def update(self, numbers, how):
        records, after = self.records(numbers)
        image = self.apply(how, records, after, visible=self.open is None)
        if how == self.publisher.advance:
            self.staged.clear()
            self.shown = self.newest
            assert image is self.publisher.current
        else:
            self.staged.append((self.offset, self.newest))

    @precondition(lambda self: not self.failed)
    @rule(numbers=st.lists(NUMBERS, min_size=1, max_size=6))
    def advance(self, numbers):
        self.update(numbers, self.publisher.advance)

    @precondition(lambda self: not self.failed)
    @rule(numbers=st.lists(NUMBERS, min_size=1, max_size=6))
    def stage(self, numbers):
        self.update(numbers, self.publisher.stage)

    @precondition(lambda self: not self.failed and self.open is None)
    @rule(numbers=st.lists(NUMBERS, max_size=3))
    def begin_transaction(self, numbers):
        records, after = self.records(numbers)
        self.apply(self.publisher.stage, [BeginTransactionRecord(name="t"), *records], after, visible=False)
        self.staged.append((self.offset, self.newest))

    @precondition(lambda self: not self.failed and self.open is not None)
    @rule(aborted=st.booleans())
    def end_transaction(self, aborted):
        end = AbortTransactionRecord(reason="r") if aborted else EndTransactionRecord()
        self.apply(self.publisher.stage, [end], self.newest if aborted else self.open, visible=True)
        self.staged.append((self.offset, self.newest))

    @rule(behind=st.integers(0, 8))
    def commit(self, behind):
        mark = self.offset - behind
        # While a transaction is open, an image ends where it began.
        seen = [(end, state) for end, state in self.staged if end <= mark]
        self.publisher.commit(mark)
        if self.open is None and not self.failed:
            for end, state in seen:
                self.shown = state
                self.staged.remove((end, state))
        else:
            self.adopt(mark)

    def adopt(self, mark):
        """Take over what was shown, having checked that it is one of the states that may be."""
        shown = sorted(self.publisher.current.acls.records())
        allowed = [self.shown, *(state for _, state in self.staged)]
        self.shown = next(state for state in allowed if held(state) == shown)
        self.staged = [(end, state) for end, state in self.staged if end > mark]

    @rule(what=st.sampled_from(["checkpoint", "advance", "stage", "abandon"]), numbers=st.sets(NUMBERS, min_size=1))
    def something_goes_wrong(self, what, numbers):
        if what == "abandon" and self.merge is not None:
            self.publisher.abandon_merge(self.merge)
        elif what in ("advance", "stage") and not self.failed and self.open is None:
            self.replay_fails(what, min(numbers))
        else:
            self.checkpoint(numbers)

    def replay_fails(self, how, number):
        records, _ = self.records([number])
        good, bad = chunk(self.offset, *records), chunk(self.offset + 1, removal(99))
        with pytest.raises(ReplayError):
            getattr(self.publisher, how)(good + bad)
        self.failed = True
        if how == "advance":
            self.staged.clear()

    def checkpoint(self, numbers):
        self.offset += 5
        acls = AclsImage.from_acls(()).apply([rule_of(number) for number in sorted(numbers)])
        self.publisher.replace(Image(acls=acls, provenance=Provenance(end_offset=self.offset, epoch=1, timestamp=1)))
        self.shown = self.newest = numbers
        self.staged, self.open, self.failed = [], None, False

    @rule(most=st.integers(1, 5))
    def merge_goes_on(self, most):
        """Each step of a merge, in order; between them, anything may happen."""
        if self.merge is None:
            self.merge = self.publisher.begin_merge()
            with pytest.raises(RuntimeError, match="already running"):
                self.publisher.begin_merge()
        elif self.merge.begun is not None:
            self.publisher.offer_merged(self.merge, self.merge.begun.merged())
        else:
            self.publisher.catch_up(self.merge, most)

    @rule(most=st.integers(1, 5))
    def merge_goes_on_too(self, most):
        self.merge_goes_on(most)

    @rule()
    def keep(self):
        """Readers keep images as long as they like; some are forked: the same image applied to twice."""
        for acls in (self.publisher.current.acls, self.publisher.latest.acls):
            numbers = {n for n in range(12) if acls.get(rule_of(n).id)}
            self.kept.append((acls, frozenset(numbers)))
            number = len(self.kept) % 12
            change = removal(number) if number in numbers else rule_of(number)
            self.kept.append((acls.apply([change]), frozenset(numbers) ^ {number}))

    @invariant()
    def nothing_is_lost_and_nothing_shown_early(self):
        assert sorted(self.publisher.current.acls.records()) == held(self.shown)
        if not self.failed:
            assert sorted(self.publisher.latest.acls.records()) == held(self.newest)
        if self.told:
            assert self.told[-1] is self.publisher.current
        if self.merge is not None and self.merge.ended:
            assert self.publisher.applier.journal is None
            self.merge = None

    def teardown(self):
        for acls, numbers in self.kept:
            assert sorted(acls.records()) == held(numbers)


MergesAmongUpdates.TestCase.settings = settings(max_examples=examples(80), stateful_step_count=50)
TestMergesAmongUpdates = MergesAmongUpdates.TestCase


def journaled(count):
    """A publisher with `count` changes since a merge began, and that merge."""
    publisher = Publisher(applier=Applier(bulk_bytes=ONE_BY_ONE))
    publisher.advance(chunk(0, acl(-1)))
    merge = publisher.begin_merge()
    folded = merge.begun.merged()
    for n in range(count):
        publisher.advance(chunk(1 + n, acl(n)))
    publisher.offer_merged(merge, folded)
    return publisher, merge


@pytest.mark.parametrize("count", [0, 1, 2, 3, 100, 1000])
def test_updates_alone_end_a_merge_after_half_as_many_as_came_before(count):
    publisher, merge = journaled(count)
    updates = 0
    while not merge.ended:
        publisher.advance(chunk(publisher.current.end_offset, acl(10_000 + updates)))
        updates += 1
    assert updates <= count // 2 + 1
    assert len(publisher.current.acls.index.base) == 1
    assert len(publisher.current.acls) == 1 + count + updates


def test_an_update_of_many_changes_takes_twice_as_many_off_the_journal():
    publisher, merge = journaled(1000)
    publisher.advance(chunk(1001, *(acl(10_000 + n) for n in range(995))))
    assert not merge.ended
    publisher.advance(chunk(1996, *(acl(20_000 + n) for n in range(10))))
    assert merge.ended
    assert len(publisher.current.acls) == 2006


def test_without_updates_the_merger_ends_it_in_slices():
    publisher, merge = journaled(100)
    told = []
    publisher.subscribe(told.append)
    before = publisher.current
    for _ in range(2):
        publisher.catch_up(merge, 40)
        assert not merge.ended
        assert publisher.current is before
    publisher.catch_up(merge, 40)
    assert merge.ended
    assert told == [publisher.current]
    assert publisher.current.provenance == before.provenance
    assert publisher.current.acls.digest() == before.acls.digest()
    assert merge.replaced is before.acls


def test_a_change_that_does_not_fit_the_folded_rules_makes_the_merge_void():
    """The updates themselves are as they should be."""
    publisher = Publisher(applier=Applier(bulk_bytes=ONE_BY_ONE))
    publisher.advance(chunk(0, acl(0), acl(1)))
    merge = publisher.begin_merge()
    publisher.offer_merged(merge, AclsImage.from_acls(()))
    image = publisher.advance(chunk(2, removal(1)))
    assert merge.ended
    assert isinstance(merge.failure, ReplayError)
    assert merge.replaced is None
    assert len(image.acls) == 1
    assert len(publisher.advance(chunk(3, acl(2))).acls) == 2
