"""The publisher: one swap, no intermediate state, no change lost."""

import threading

import pytest

from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import ReplayError
from aclog.metalog.records import BeginTransactionRecord, EndTransactionRecord
from aclog.snapshots.applier import Applier
from aclog.snapshots.image import Image, Provenance
from aclog.snapshots.publisher import Publisher
from tests.support.builders.state_records import acl, removal
from tests.support.processes.reader_thread import ReaderThread

READ, ALLOW, DENY, TOPIC = 3, 3, 2, 2
ONE_BY_ONE = 1 << 60


def chunk(base, *records):
    values = [encode_record(record) for record in records]
    return build_batch(values, base_offset=base, leader_epoch=1, timestamp=base)


def allowed(image, name):
    return image.acls.verdict("User:alice", "10.0.0.1", READ, TOPIC, name).name == "ALLOW"


class TestReadiness:
    def image(self, end_offset):
        return Image(provenance=Provenance(end_offset=end_offset))

    @pytest.mark.parametrize("mark", [-1, 0])
    def test_an_empty_image_is_never_ready(self, mark):
        publisher = Publisher()
        publisher.observe_high_watermark(mark)
        publisher.replace(Image.EMPTY)
        assert not publisher.ready

    def test_a_mark_of_minus_one_is_unknown(self):
        publisher = Publisher()
        publisher.observe_high_watermark(-1)
        publisher.replace(self.image(5))
        assert not publisher.ready
        publisher.observe_high_watermark(5)
        assert publisher.ready

    def test_the_first_mark_counts(self):
        publisher = Publisher()
        publisher.observe_high_watermark(5)
        publisher.observe_high_watermark(100)
        publisher.replace(self.image(4))
        assert not publisher.ready
        publisher.replace(self.image(5))
        assert publisher.ready

    def test_readiness_never_reverts(self):
        publisher = Publisher()
        publisher.replace(self.image(5))
        publisher.observe_high_watermark(3)
        assert publisher.ready
        publisher.observe_high_watermark(50)
        publisher.replace(Image.EMPTY)
        assert publisher.ready
        assert publisher.wait_ready(0)

    def test_a_publisher_is_ready_once_every_subscriber_has_the_image(self):
        publisher, seen = Publisher(), []
        publisher.subscribe(lambda _: seen.append(publisher.ready))
        publisher.observe_high_watermark(1)
        publisher.advance(chunk(0, acl(1)))
        assert seen == [False], "an authorizer that has an older image would be asked"
        assert publisher.ready

    def test_it_can_be_waited_for(self):
        publisher = Publisher()
        waiter = threading.Thread(target=publisher.wait_ready)
        waiter.start()
        publisher.observe_high_watermark(1)
        publisher.advance(chunk(0, acl(1)))
        waiter.join(30)
        assert not waiter.is_alive()


class TestSwap:
    def test_subscribers_get_each_image_in_order(self):
        publisher, told = Publisher(), []
        publisher.subscribe(told.append)
        first = publisher.advance(chunk(0, acl(1)))
        second = publisher.advance(chunk(1, acl(2)))
        publisher.replace(first)
        assert told == [first, second, first]
        assert publisher.current is first
        assert len(first.acls) == 1

    def test_replay_continues_after_a_replaced_image(self):
        publisher = Publisher()
        publisher.replace(Image(provenance=Provenance(end_offset=7, epoch=1)))
        assert len(publisher.advance(chunk(7, acl(1))).acls) == 1

    def test_after_an_error_the_last_good_image_stays(self):
        publisher, told = Publisher(), []
        good = publisher.advance(chunk(0, acl(1)))
        publisher.subscribe(told.append)
        with pytest.raises(ReplayError):
            publisher.advance(chunk(1, acl(2), acl(1)))
        assert publisher.current is good
        assert told == []


class TestAtomicity:
    def test_a_deny_and_an_allow_in_one_batch_are_never_seen_apart(self):
        """Every batch moves the one allowed topic; an intermediate state would have none, or two."""
        publisher = Publisher()
        publisher.advance(chunk(0, acl(0, name="t0"), acl(1, name="t1"), acl(-1, name="t1", permission=DENY)))
        seen = set()

        def ask():
            image = publisher.current
            answer = (allowed(image, "t0"), allowed(image, "t1"))
            assert answer in {(True, False), (False, True)}
            seen.add(answer)

        offset = 3
        with ReaderThread(ask) as reader:
            turn = 0
            while turn < 400 or (len(seen) < 2 and reader.is_alive()):
                off, on = ("t0", "t1") if turn % 2 == 0 else ("t1", "t0")
                swap = removal(-1 - turn), acl(-2 - turn, name=off, permission=DENY)
                publisher.advance(chunk(offset, *(swap if on == "t1" else reversed(swap))))
                offset, turn = offset + 2, turn + 1
        assert len(seen) == 2

    @pytest.mark.parametrize("batches", [[(1, 2)], [(1,), (2,)]], ids=["one batch", "two"])
    def test_what_is_denied_first_is_at_no_moment_allowed(self, batches):
        """KIP-801's example: a DENY on topic foo, then an ALLOW on all topics."""
        records = {1: acl(1, name="foo", permission=DENY), 2: acl(2, name="*")}
        publisher, images, offset = Publisher(), [], 0
        publisher.subscribe(images.append)
        for numbers in batches:
            publisher.advance(chunk(offset, *(records[number] for number in numbers)))
            offset += len(numbers)
        assert len(images) == len(batches)
        assert not any(allowed(image, "foo") for image in images)
        assert allowed(images[-1], "bar")

    def test_a_checkpoint_replaces_the_image_in_one_swap(self):
        one = Applier().apply(chunk(0, *(acl(n, name=f"one{n}") for n in range(50))))
        two = Applier().apply(chunk(0, *(acl(n, name=f"two{n}") for n in range(50))))
        publisher, seen = Publisher(), set()
        publisher.replace(one)

        def ask():
            image = publisher.current
            names = {allowed(image, f"one{n}") for n in (0, 25, 49)}, {allowed(image, f"two{n}") for n in (0, 25, 49)}
            assert names in (({True}, {False}), ({False}, {True}))
            seen.add(True in names[0])

        with ReaderThread(ask) as reader:
            turn = 0
            while turn < 300 or (len(seen) < 2 and reader.is_alive()):
                publisher.replace((one, two)[turn % 2])
                turn += 1
        assert seen == {True, False}


class TestStaging:
    def test_what_is_staged_is_not_shown(self):
        publisher, told = Publisher(), []
        publisher.subscribe(told.append)
        staged = publisher.stage(chunk(0, acl(1)))
        assert publisher.current is Image.EMPTY
        assert publisher.latest is staged
        assert told == []

    def test_a_commit_shows_the_newest_image_below_the_mark_once(self):
        publisher, told = Publisher(), []
        publisher.subscribe(told.append)
        images = [publisher.stage(chunk(2 * n, acl(2 * n), acl(2 * n + 1))) for n in range(3)]
        assert publisher.commit(1) is Image.EMPTY
        assert publisher.commit(5) is images[1]
        assert publisher.commit(5) is images[1]
        assert publisher.commit(6) is publisher.current is images[2]
        assert told == images[1:]

    def test_an_open_transaction_shows_nothing(self):
        publisher = Publisher()
        first = publisher.stage(chunk(0, acl(1)))
        publisher.stage(chunk(1, BeginTransactionRecord(name="t"), acl(2)))
        assert publisher.commit(3) is first
        publisher.stage(chunk(3, EndTransactionRecord()))
        assert len(publisher.commit(4).acls) == 2

    def test_readiness_counts_what_is_shown(self):
        publisher = Publisher()
        publisher.observe_high_watermark(1)
        publisher.stage(chunk(0, acl(1)))
        assert not publisher.ready
        publisher.commit(1)
        assert publisher.ready

    def test_a_replaced_image_drops_what_was_staged(self):
        publisher, other = Publisher(), Image(provenance=Provenance(end_offset=7, epoch=1))
        publisher.stage(chunk(0, acl(1)))
        publisher.replace(other)
        assert publisher.commit(100) is other

    def test_after_an_error_what_was_staged_before_can_be_committed(self):
        publisher = Publisher()
        good = publisher.stage(chunk(0, acl(1)))
        with pytest.raises(ReplayError):
            publisher.stage(chunk(1, acl(1)))
        assert publisher.current is Image.EMPTY
        assert publisher.commit(2) is good

    def test_a_merge_shows_nothing_that_is_staged(self):
        publisher, told = Publisher(applier=Applier(bulk_bytes=ONE_BY_ONE)), []
        publisher.advance(chunk(0, acl(0)))
        publisher.subscribe(told.append)
        merge = publisher.begin_merge()
        publisher.stage(chunk(1, acl(1)))
        publisher.stage(chunk(2, acl(2)))
        publisher.offer_merged(merge, merge.begun.merged())
        publisher.catch_up(merge, 10)
        assert merge.ended
        assert len(publisher.current.acls) == 1
        assert told == []
        assert len(publisher.commit(2).acls) == 2
        shown = publisher.commit(3)
        assert len(shown.acls) == 3
        assert (len(shown.acls.index.base), shown.acls.overlay_size) == (1, 2)


def test_after_an_error_a_merge_shows_nothing_new():
    """The applier may be past `current` after a chunk that failed half-way."""
    publisher = Publisher(applier=Applier(bulk_bytes=ONE_BY_ONE))
    publisher.advance(chunk(0, acl(0)))
    merge = publisher.begin_merge()
    with pytest.raises(ReplayError):
        publisher.advance(chunk(1, acl(1)) + chunk(2, acl(1)))
    publisher.offer_merged(merge, merge.begun.merged())
    publisher.catch_up(merge, 10)
    assert merge.ended
    assert len(publisher.current.acls) == 1


def test_two_merges_lose_nothing():
    """A second begin_merge would empty the journal of the first."""
    publisher = Publisher(applier=Applier(bulk_bytes=ONE_BY_ONE))
    publisher.advance(chunk(0, acl(0)))
    first = publisher.begin_merge()
    publisher.advance(chunk(1, acl(1)))
    with pytest.raises(RuntimeError, match="already running"):
        publisher.begin_merge()
    publisher.advance(chunk(2, acl(2)))
    publisher.offer_merged(first, first.begun.merged())
    publisher.catch_up(first, 10)
    assert len(publisher.current.acls) == 3


def test_a_subscriber_that_fails_does_not_hide_the_image_from_the_others():
    """For example the merger when no thread can be started: the authorizer must still get the new image."""
    publisher, told = Publisher(), []

    def fails(_image):
        raise RuntimeError("can't start new thread")

    publisher.subscribe(fails)
    publisher.subscribe(told.append)
    with pytest.raises(RuntimeError):
        publisher.advance(chunk(0, acl(0)))
    assert told == [publisher.current]
