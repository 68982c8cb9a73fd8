"""Merges under load: a writer flat out and two busy readers, in one process, with a merger and without one.

Each update is a batch of one change, from its bytes to the published image, as a node applies it. The readers ask an
authorizer that gets every image. What must hold: merges end, the overlay stays below twice the size that starts one,
and the readers hardly notice.
"""

import gc
import threading
import time
from collections.abc import Iterator
from itertools import islice
from uuid import UUID

from attrs import define, field

from aclog.authorizer.acl import ResourcePattern, StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.records import MetadataRecord, RemoveAccessControlEntryRecord
from aclog.snapshots.compaction import MERGE_AT, Folder, FoldInProcess, FoldInThread
from aclog.snapshots.image import Image, Provenance
from aclog.snapshots.publisher import Merger, Publisher
from benchmarks import shapes
from benchmarks.measurement import percentile
from benchmarks.report import Row

READERS = 2
P50_TARGET_US, P99_TARGET_US, WAIT_TARGET_MS = 20.0, 100.0, 20.0
_NAMES = 1_000


@define
class _Reader:
    """A thread that authorizes in a loop, and how long it ever waited for an answer."""

    authorizer: StandardAuthorizer
    names: list[str]
    stop: threading.Event
    longest_ms: float = 0.0
    decided: int = 0

    def read(self) -> None:
        """Authorize until stopped."""
        context = RequestContext(principal="User:service-7", host="10.0.0.1")
        asked = [
            [
                Action(
                    operation=AclOperation.READ,
                    resource_pattern=ResourcePattern(
                        resource_type=ResourceType.TOPIC, name=name, pattern_type=PatternType.LITERAL
                    ),
                )
            ]
            for name in self.names
        ]
        authorize, watch, stopped = self.authorizer.authorize, time.perf_counter_ns, self.stop.is_set
        longest, last = 0, watch()
        while not stopped():
            for actions in asked:
                authorize(context, actions)
                now = watch()
                longest = max(longest, now - last)
                last = now
            self.decided += len(asked)
        self.longest_ms = longest / 1e6


@define
class _Seen:
    """What a subscriber sees of the images: merges, and the greatest overlay."""

    merges: int = -1  # the first base is no merge's
    greatest: int = 0
    _base: object = None

    def see(self, image: Image) -> None:
        """Note one image."""
        index = image.acls.index
        if index.base is not self._base:
            self.merges, self._base = self.merges + 1, index.base
        self.greatest = max(self.greatest, index.overlay.changes)


@define(kw_only=True)
class Run:
    """One run: what the writer and the readers saw."""

    cpu_us: list[float] = field(repr=False)
    seconds: float
    merges: int
    greatest: int
    longest_ms: float
    decided: int


def batches(count: int, rules: int) -> list[bytes]:
    """Return batches of one change each: two of three add a rule, to new topics and old ones; the third removes one."""
    names = [acl.resource_name for acl in islice(shapes.million(rules), min(rules, count))]
    made: list[bytes] = []
    for n in range(count):
        if n % 3 == 2:
            # From the middle on: rules that no added one is about.
            number = (rules // 2 + n) % rules
            record: MetadataRecord = RemoveAccessControlEntryRecord(id=_uuid(number))
        else:
            name = f"new.{n}" if n % 3 else names[n % len(names)]
            acl = StandardAcl(
                resource_type=ResourceType.TOPIC,
                resource_name=name,
                pattern_type=PatternType.PREFIXED if n % 10 == 0 else PatternType.LITERAL,
                principal=f"User:new-{n % 20_000}",
                host="*",
                operation=AclOperation.READ,
                permission_type=AclPermissionType.ALLOW,
            )
            record = shapes.record(shapes.with_id(10_000_000 + n, acl))
        made.append(build_batch([encode_record(record)], base_offset=rules + n, leader_epoch=1, timestamp=2))
    return made


def _uuid(number: int) -> UUID:
    """Return the id of the rule of this number."""
    return shapes.with_id(number, next(shapes.million(1))).id or UUID(int=0)


def run_once(acls: AclsImage, chunks: list[bytes], *, folder: Folder | None, readers: int = READERS) -> Run:
    """Apply all batches as fast as possible while the readers read."""
    publisher, authorizer, seen = Publisher(), StandardAuthorizer(), _Seen()
    authorizer.configure({})
    publisher.subscribe(lambda image: authorizer.load(image.acls))
    publisher.subscribe(seen.see)
    publisher.replace(Image(acls=acls, provenance=Provenance(end_offset=len(acls), epoch=1, timestamp=1)))
    authorizer.complete_initial_load()
    merger = None if folder is None else Merger(publisher=publisher, folder=folder)
    names = [f"orders.{n}" for n in range(_NAMES)]
    stop = threading.Event()
    reading = [_Reader(authorizer, names, stop) for _ in range(readers)]
    threads = [threading.Thread(target=reader.read) for reader in reading]
    for thread in threads:
        thread.start()
    cpu, advance, clock, begun = [], publisher.advance, time.thread_time_ns, time.perf_counter()
    for chunk in chunks:
        start = clock()
        advance(chunk)
        cpu.append((clock() - start) / 1000)
    seconds = time.perf_counter() - begun
    stop.set()
    for thread in threads:
        thread.join()
    if merger is not None:
        merger.close()
    return Run(
        cpu_us=cpu,
        seconds=seconds,
        merges=seen.merges,
        greatest=seen.greatest,
        longest_ms=max((reader.longest_ms for reader in reading), default=0.0),
        decided=sum(reader.decided for reader in reading),
    )


def run(rules: int, updates: int) -> Iterator[Row]:
    """Yield rows for a run with a merger, beside the same one without."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 2, 10_000)  # as commands and nodes do
    chunks = batches(updates, rules)
    acls = AclsImage.from_columns(shapes.columns(shapes.million(rules)))
    without = run_once(acls, chunks, folder=None)
    found = run_once(acls, chunks, folder=FoldInProcess())
    yield from _merge_rows(f"{rules:,} rules, a writer flat out ({updates:,} updates), {READERS} readers", found)
    yield Row(
        what="a reader's longest wait, beyond that of the same run without a merger",
        ours=max(found.longest_ms - without.longest_ms, 0.0),
        unit="ms",
        target=WAIT_TARGET_MS,
    )
    yield Row(what="a reader's longest wait in that run", ours=without.longest_ms, unit="ms")
    for name, share, target in (("p50", 0.5, P50_TARGET_US), ("p99", 0.99, P99_TARGET_US), ("p99.9", 0.999, None)):
        yield Row(what=f"one update: CPU {name}", ours=percentile(found.cpu_us, share), unit="us", target=target)
        yield Row(what=f"the same without a merger: CPU {name}", ours=percentile(without.cpu_us, share), unit="us")
    yield from _rates(found, without)
    in_thread = run_once(acls, chunks, folder=FoldInThread())
    yield Row(
        what="the same, merged in a thread: merges that ended", ours=in_thread.merges, unit="", more_is_better=True
    )
    yield Row(what="the same, merged in a thread: the greatest overlay", ours=in_thread.greatest, unit="changes")
    yield Row(what="the same, a reader's longest wait", ours=in_thread.longest_ms, unit="ms", theirs=without.longest_ms)


def _merge_rows(what: str, run: Run) -> Iterator[Row]:
    yield Row(what=f"{what}: merges that ended", ours=run.merges, unit="", target=1, more_is_better=True)
    yield Row(what=f"{what}: the greatest overlay", ours=run.greatest, unit="changes", target=2 * MERGE_AT)


def _rates(found: Run, without: Run) -> Iterator[Row]:
    for what, one, other in (
        ("updates a second", len(found.cpu_us) / found.seconds, len(without.cpu_us) / without.seconds),
        ("decisions a second", found.decided / found.seconds, without.decided / without.seconds),
    ):
        yield Row(what=what, ours=one, unit="/s", theirs=other, more_is_better=True)
