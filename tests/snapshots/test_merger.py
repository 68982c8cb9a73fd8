"""The merger: a new base in the background, no change lost, readers never wait."""

import random
import threading

import pytest

from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.snapshots.applier import Applier
from aclog.snapshots.merger import Merger
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


class TestMerger:
    def test_it_merges_when_the_overlay_has_grown(self):
        publisher = Publisher(applier=Applier(bulk_bytes=1 << 60))
        merger = Merger(publisher=publisher, merge_at=10)
        for n in range(9):
            publisher.advance(chunk(n, acl(n)))
        merger.wait()
        assert publisher.current.acls.overlay_size == 9
        publisher.advance(chunk(9, acl(9)))
        merger.wait()
        assert publisher.current.acls.overlay_size == 0
        assert publisher.current is publisher.applier.image
        assert len(publisher.advance(chunk(10, removal(3))).acls) == 9

    def test_changes_during_a_merge_are_kept(self, monkeypatch):
        publisher = Publisher()
        merged_class = type(publisher.current.acls)
        begun, go_on = threading.Event(), threading.Event()
        real = merged_class.merged

        def slow(self, pause=None):
            begun.set()
            assert go_on.wait(30)
            return real(self)

        monkeypatch.setattr(merged_class, "merged", slow)
        merger = Merger(publisher=publisher, merge_at=5)
        publisher.advance(chunk(0, *(acl(n) for n in range(5))))
        assert begun.wait(30)
        offset = 5
        for n in range(100):
            publisher.advance(chunk(offset, acl(100 + n), *([removal(n)] if n < 5 else [])))
            offset = publisher.current.end_offset
        expected = publisher.current.acls.digest()
        go_on.set()
        merger.wait()
        assert publisher.current.acls.digest() == expected
        assert publisher.applier.journal is None
        assert publisher.current.acls.overlay_size < 106
        assert publisher.current.end_offset == offset

    def test_a_checkpoint_during_a_merge_makes_it_void(self, monkeypatch):
        publisher = Publisher()
        replacement = Applier().apply(chunk(0, acl(77)))
        kind = type(publisher.current.acls)
        real = kind.merged

        def replaced_meanwhile(self, pause):
            publisher.replace(replacement)
            return real(self, pause)

        monkeypatch.setattr(kind, "merged", replaced_meanwhile)
        merger = Merger(publisher=publisher, merge_at=5)
        publisher.advance(chunk(0, *(acl(n) for n in range(5))))
        merger.wait()
        assert publisher.current is replacement

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
    def test_a_merge_that_fails_changes_nothing(self, monkeypatch):
        publisher = Publisher()

        def fails(self, pause):
            raise MemoryError

        monkeypatch.setattr(type(publisher.current.acls), "merged", fails)
        merger = Merger(publisher=publisher, merge_at=1)
        image = publisher.advance(chunk(0, acl(1)))
        merger.wait()
        assert publisher.current is image
        assert publisher.applier.journal is None

    def test_many_merges_under_readers_lose_nothing(self):
        publisher, rnd = Publisher(), random.Random(7)
        merger = Merger(publisher=publisher, merge_at=50)
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
        merger.wait()
        assert publisher.current.acls.digest() == plain.image.acls.digest()
        assert publisher.current.provenance == plain.image.provenance
        assert len(publisher.current.acls.index.base) > 0 == len(plain.image.acls.index.base)


def test_the_authorizer_gets_the_merged_rules():
    """An authorizer that is not notified would keep the old base and its overlay alive."""
    publisher, authorizer = Publisher(applier=Applier(bulk_bytes=ONE_BY_ONE)), StandardAuthorizer()
    publisher.subscribe(lambda image: authorizer.load(image.acls))
    merger = Merger(publisher=publisher, merge_at=5)
    for n in range(5):
        publisher.advance(chunk(n, acl(n)))
    merger.wait()
    assert publisher.current.acls.overlay_size == 0
    assert authorizer._view.image.overlay_size == 0


def test_a_merge_that_fails_is_not_tried_again_at_every_update(monkeypatch):
    publisher, tries = Publisher(applier=Applier(bulk_bytes=ONE_BY_ONE)), []

    def fails(self, pause=None):
        tries.append(1)
        raise MemoryError

    monkeypatch.setattr(type(publisher.current.acls), "merged", fails)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    merger = Merger(publisher=publisher, merge_at=1)
    for n in range(10):
        publisher.advance(chunk(n, acl(n)))
        merger.wait()
    assert len(tries) < 5
