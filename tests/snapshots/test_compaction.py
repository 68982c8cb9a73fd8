"""The merger: a new base in the background, no change lost, readers never wait."""

import random
import threading
import time
import weakref

import pytest

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.snapshots.applier import Applier
from aclog.snapshots.compaction import FoldError, fold_at, take_apart
from aclog.snapshots.image import Image, Provenance
from aclog.snapshots.publisher import Merger, Publisher
from tests.support.builders import acls
from tests.support.builders.images import with_ids
from tests.support.builders.state_records import acl, removal
from tests.support.models.native_paths import PATHS
from tests.support.processes.reader_thread import ReaderThread
from tests.support.processes.waiting import wait_until

READ, ALLOW, DENY, TOPIC = 3, 3, 2, 2
ONE_BY_ONE = 1 << 60


def chunk(base, *records):
    values = [encode_record(record) for record in records]
    return build_batch(values, base_offset=base, leader_epoch=1, timestamp=base)


def allowed(image, name):
    return image.acls.verdict("User:alice", "10.0.0.1", READ, TOPIC, name).name == "ALLOW"


def one_by_one():
    return Publisher(applier=Applier(bulk_bytes=ONE_BY_ONE))


@pytest.fixture
def merging():
    """Makes mergers that are closed at the end; none of them merges for lack of updates unless told to."""
    mergers = []

    def make(publisher, **settings):
        merger = Merger(publisher=publisher, **{"idle_s": 3600, **settings})
        mergers.append(merger)
        return merger

    yield make
    for merger in mergers:
        merger.close()


class Folder:
    """Folds when it is let to."""

    def __init__(self, failure=None, allowed=True):
        self.begun, self.go_on, self.folds, self.failure = threading.Event(), threading.Event(), [], failure
        if allowed:
            self.go_on.set()

    def fold(self, acls):
        self.folds.append(acls.overlay_size)
        self.begun.set()
        assert self.go_on.wait(60)
        if self.failure is not None:
            raise self.failure
        return acls.merged()

    def tidy(self):
        pass

    def close(self):
        self.go_on.set()


class TestWhen:
    def test_at_a_size_of_the_overlay(self, merging):
        publisher, reports = one_by_one(), []
        merging(publisher, merge_at=10, report=reports.append)
        for n in range(9):
            publisher.advance(chunk(n, acl(n)))
        assert publisher.current.acls.overlay_size == 9
        publisher.advance(chunk(9, acl(9)))
        wait_until(lambda: reports)
        assert publisher.current.acls.overlay_size == 0
        assert publisher.current is publisher.applier.image
        assert (reports[0].rules, reports[0].changes, reports[0].failure) == (0, 10, None)
        assert len(publisher.advance(chunk(10, removal(3))).acls) == 9

    def test_when_no_update_has_come_for_a_while(self, merging):
        publisher = one_by_one()
        merging(publisher, idle_s=0.01)
        publisher.advance(chunk(0, acl(0)))
        wait_until(lambda: publisher.current.acls.overlay_size == 0)
        assert len(publisher.current.acls.index.base) == 1

    def test_a_second_quiet_moment_waits_until_merges_take_little_of_a_core(self, merging, monkeypatch):
        publisher, reports = one_by_one(), []
        merger = merging(publisher, idle_s=0.01, report=reports.append)
        monkeypatch.setattr("aclog.snapshots.publisher._REST", 1e9)
        publisher.advance(chunk(0, acl(0)))
        wait_until(lambda: merger._rest_until > 0)
        publisher.advance(chunk(1, acl(1)))
        time.sleep(0.1)
        assert len(reports) == 1
        merger._rest_until = 0
        wait_until(lambda: len(reports) == 2)

    @pytest.mark.parametrize(
        ("rules", "changes"),
        [(0, 256), (1_000, 256), (1_025, 256), (10_000, 2_500), (100_000, 25_000), (10**7, 32_768)],
    )
    def test_a_quarter_of_the_base_or_32768(self, rules, changes):
        assert fold_at(rules) == changes


@pytest.mark.skipif("native" not in PATHS, reason="NATIVE=0: the tests are told to do without the core")
@pytest.mark.parametrize("cidr", [False, True])
def test_the_native_core_reads_ranges_before_the_base_is_published(merging, cidr):
    publisher, authorizer, published = one_by_one(), StandardAuthorizer(cidr=cidr), []
    first = AclsImage.from_acls(with_ids([acls.acl("t", "User:alice")]))
    publisher.replace(Image(acls=first, provenance=Provenance(end_offset=0, epoch=1, timestamp=1)))
    merging(publisher, merge_at=2)
    publisher.subscribe(
        lambda image: published.append((image.acls.overlay_size, image.acls.index.base.memo.ranges_read))
    )
    publisher.subscribe(lambda image: authorizer.load(image.acls))
    for offset in range(2):
        added = acls.acl(f"t{offset}", "User:alice", "10.0.0.0/8")
        publisher.advance(chunk(offset, acls.acl_record(100 + offset, added)))
    wait_until(lambda: published[-1][0] == 0)
    assert published[-3:] == [(1, False), (2, cidr), (0, cidr)]


class TestWhatHappensMeanwhile:
    def test_changes_during_a_merge_are_kept(self, merging):
        publisher, folder = one_by_one(), Folder(allowed=False)
        merging(publisher, merge_at=5, folder=folder)
        publisher.advance(chunk(0, *(acl(n) for n in range(5))))
        assert folder.begun.wait(60)
        offset = 5
        for n in range(100):
            publisher.advance(chunk(offset, acl(100 + n), *([removal(n)] if n < 5 else [])))
            offset = publisher.current.end_offset
        expected = publisher.current.acls.digest()
        folder.go_on.set()
        wait_until(lambda: publisher.current.acls.overlay_size < 5)
        assert publisher.current.acls.digest() == expected
        assert publisher.current.end_offset == offset

    def test_a_checkpoint_makes_a_merge_void(self, merging):
        publisher, folder, reports = one_by_one(), Folder(allowed=False), []
        replacement = Applier().apply(chunk(0, acl(77)))
        merging(publisher, merge_at=5, folder=folder, report=reports.append)
        publisher.advance(chunk(0, *(acl(n) for n in range(5))))
        assert folder.begun.wait(60)
        publisher.replace(replacement)
        folder.go_on.set()
        wait_until(lambda: reports)
        assert publisher.current is replacement
        assert reports[0].failure is None

    def test_what_is_staged_in_its_merged_form_is_not_merged_again(self, merging):
        publisher, folder, reports = one_by_one(), Folder(), []
        merging(publisher, merge_at=2, folder=folder, report=reports.append)
        for n in range(4):
            publisher.stage(chunk(n, acl(n)))
        publisher.commit(2)
        wait_until(lambda: reports)
        publisher.commit(3)
        assert len(publisher.commit(4).acls) == 4
        assert publisher.current.acls.overlay_size == 0
        assert folder.folds == [4]

    def test_the_authorizer_gets_the_merged_rules(self, merging):
        """An authorizer that is not notified would keep the old base and its overlay alive."""
        publisher, authorizer, reports = one_by_one(), StandardAuthorizer(), []
        publisher.subscribe(lambda image: authorizer.load(image.acls))
        merging(publisher, merge_at=5, report=reports.append)
        for n in range(5):
            publisher.advance(chunk(n, acl(n)))
        wait_until(lambda: reports)
        assert publisher.current.acls.overlay_size == 0
        assert authorizer._view.image.overlay_size == 0

    def test_many_merges_under_readers_lose_nothing(self, merging):
        publisher, rnd, reports = Publisher(), random.Random(7), []
        merging(publisher, merge_at=50, report=reports.append)
        publisher.advance(chunk(0, acl(0, name="always"), acl(-1, name="never", permission=DENY)))
        live, offset, plain = [], 2, Applier(image=publisher.current)

        def ask():
            image = publisher.current
            assert allowed(image, "always")
            assert not allowed(image, "never")

        with ReaderThread(ask):
            for n in range(1, 1500):
                if live and rnd.random() < 0.4:
                    record = removal(live.pop(rnd.randrange(len(live))))
                else:
                    live.append(n)
                    record = acl(n)
                data = chunk(offset, record)
                publisher.advance(data)
                plain.apply(data)
                offset += 1
            wait_until(lambda: reports)
        assert publisher.current.acls.digest() == plain.image.acls.digest()
        assert publisher.current.provenance == plain.image.provenance
        assert len(publisher.current.acls.index.base) > 0 == len(plain.image.acls.index.base)


class TestFailures:
    @pytest.mark.parametrize("failure", [MemoryError(), FoldError("it is gone"), FoldError("killed", here=False)])
    def test_a_merge_that_fails_changes_nothing_and_is_reported(self, merging, failure):
        publisher, reports = one_by_one(), []
        merging(publisher, merge_at=1, folder=Folder(failure), report=reports.append)
        image = publisher.advance(chunk(0, acl(1)))
        wait_until(lambda: reports)
        assert publisher.current is image
        assert publisher.applier.journal is None
        assert str(failure) in reports[0].failure

    def test_it_is_not_tried_again_at_every_update(self, merging):
        publisher, folder, reports = one_by_one(), Folder(FoldError("killed", here=False)), []
        merging(publisher, merge_at=1, folder=folder, report=reports.append)
        publisher.advance(chunk(0, acl(0)))
        for n in range(1, 40):
            wait_until(lambda: len(reports) == len(folder.folds))
            publisher.advance(chunk(n, acl(n)))
        assert len(folder.folds) < 12

    def test_after_another_failure_this_process_folds_by_itself(self, merging):
        publisher, folder, reports = one_by_one(), Folder(FoldError("no such program")), []
        merging(publisher, merge_at=4, folder=folder, report=reports.append)
        for n in range(4):
            publisher.advance(chunk(n, acl(n)))
        wait_until(lambda: len(reports) == 1)
        for n in range(4, 6):
            publisher.advance(chunk(n, acl(n)))
        wait_until(lambda: len(reports) == 2)
        assert reports[1].failure is None
        assert folder.folds == [4]
        assert len(publisher.current.acls.index.base) == 6

    def test_a_new_base_that_does_not_fit_is_dropped(self, merging):
        class Wrong(Folder):
            def fold(self, acls):
                super().fold(acls)
                return type(acls).empty()

        publisher, reports = one_by_one(), []
        folder = Wrong(allowed=False)
        merging(publisher, merge_at=2, folder=folder, report=reports.append)
        publisher.advance(chunk(0, acl(0), acl(1)))
        assert folder.begun.wait(60)
        publisher.advance(chunk(2, removal(1)))
        folder.go_on.set()
        wait_until(lambda: reports)
        assert "does not exist" in reports[0].failure
        assert len(publisher.current.acls) == 1


def test_a_closed_merger_has_no_thread_and_merges_no_more():
    publisher, folder = one_by_one(), Folder(allowed=False)
    merger = Merger(publisher=publisher, merge_at=2, folder=folder)
    publisher.advance(chunk(0, acl(0), acl(1)))
    assert folder.begun.wait(60)
    merger.close()
    assert not merger._thread.is_alive()
    assert len(publisher.advance(chunk(2, acl(2))).acls) == 3
    merger.close()
    assert folder.folds == [2]


def test_what_was_replaced_is_taken_apart_without_harm_to_who_holds_it():
    image = one_by_one().advance(chunk(0, *(acl(n) for n in range(1300))))
    held, pauses = image.acls.digest(), []
    take_apart([image.acls], lambda: pauses.append(1))
    assert image.acls.digest() == held
    assert len(pauses) == 6


def test_what_nobody_holds_is_freed_while_it_is_taken_apart():
    records = [acl(n) for n in range(1300)]
    alive, left = [weakref.ref(record) for record in records], []
    retired = [AclsImage.from_acls(()).apply(records)]
    del records
    take_apart(retired, lambda: left.append(sum(ref() is not None for ref in alive)))
    assert left[-2:] == [276, 0]
    assert left == sorted(left, reverse=True)
