"""One committed record made visible with a million ACLs: from its batch to the published image."""

import gc
import threading
import time
from collections.abc import Iterator
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
from aclog.snapshots.image import Image, Provenance
from aclog.snapshots.publisher import Publisher
from benchmarks import shapes
from benchmarks.measurement import percentile
from benchmarks.report import Row

P50_TARGET_US, P99_TARGET_US = 20.0, 100.0


@define
class _Node:
    """A publisher, an authorizer on its images, and the log offset of the next batch."""

    publisher: Publisher
    authorizer: StandardAuthorizer
    offset: int
    made: int = field(default=0)

    def batch(self, record: MetadataRecord) -> bytes:
        """Return the next batch of the log, with one record."""
        chunk = build_batch([encode_record(record)], base_offset=self.offset, leader_epoch=1, timestamp=2)
        self.offset += 1
        return chunk

    def acl(self, name: str, pattern: PatternType, principal: str) -> bytes:
        """Return the next batch, with a new ACL."""
        self.made += 1
        acl = StandardAcl(
            resource_type=ResourceType.TOPIC,
            resource_name=name,
            pattern_type=pattern,
            principal=principal,
            host="*",
            operation=AclOperation.READ,
            permission_type=AclPermissionType.ALLOW,
        )
        rule = shapes.with_id(10_000_000 + self.made, acl)
        return self.batch(shapes.record(rule))


def _node(count: int) -> _Node:
    acls = AclsImage.from_columns(shapes.columns(shapes.million(count)))
    publisher = Publisher()
    authorizer = StandardAuthorizer()
    authorizer.configure({})
    publisher.subscribe(lambda image: authorizer.load(image.acls))
    publisher.observe_high_watermark(count)
    publisher.replace(Image(acls=acls, provenance=Provenance(end_offset=count, epoch=1, timestamp=1)))
    authorizer.complete_initial_load()
    return _Node(publisher, authorizer, count)


def _changes(node: _Node, count: int, rounds: int) -> Iterator[tuple[str, list[bytes]]]:
    """Yield kinds of updates, each with `rounds` batches."""
    existing = [acl.resource_name for acl in _first(shapes.million(count), rounds)]
    yield "a new topic", [node.acl(f"new.{n}", PatternType.LITERAL, f"User:u{n}") for n in range(rounds)]
    yield "a topic with ACLs", [node.acl(n, PatternType.LITERAL, "User:new") for n in existing]
    yield "a new prefix", [node.acl(f"pre.{n}.", PatternType.PREFIXED, f"User:u{n}") for n in range(rounds)]
    prefixes = ("payments.", "orders.", "clicks.", "audit.")
    enclosing = [node.acl(prefixes[n % 4], PatternType.PREFIXED, f"User:u{n}") for n in range(rounds)]
    yield "a prefix that encloses 250,000 names", enclosing
    yield "LITERAL *", [node.acl("*", PatternType.LITERAL, f"User:u{n}") for n in range(rounds)]
    ids = [shapes.with_id(n, acl).id or UUID(int=0) for n, acl in enumerate(_first(shapes.million(count), rounds))]
    yield "a removal", [node.batch(RemoveAccessControlEntryRecord(id=i)) for i in ids]


def _first(acls: Iterator[StandardAcl], count: int) -> Iterator[StandardAcl]:
    return (acl for _, acl in zip(range(count), acls, strict=False))


def _apply(node: _Node, batches: list[bytes]) -> tuple[list[float], list[float]]:
    """Apply updates; return the CPU and wall time of each, in us."""
    cpu, wall = [], []
    advance, clock, watch = node.publisher.advance, time.thread_time_ns, time.perf_counter_ns
    for chunk in batches:
        start, seen = clock(), watch()
        advance(chunk)
        cpu.append((clock() - start) / 1000)
        wall.append((watch() - seen) / 1000)
    return cpu, wall


@define
class _Reader:
    """A thread that authorizes in a loop."""

    node: _Node
    stop: threading.Event = field(factory=threading.Event)

    def read(self) -> None:
        """Authorize until stopped."""
        context = RequestContext(principal="User:service-7", host="10.0.0.1")
        pattern = ResourcePattern(resource_type=ResourceType.TOPIC, name="orders.17", pattern_type=PatternType.LITERAL)
        actions = [Action(operation=AclOperation.READ, resource_pattern=pattern)]
        authorize = self.node.authorizer.authorize
        while not self.stop.is_set():
            authorize(context, actions)


def run(count: int, rounds: int) -> Iterator[Row]:
    """Yield rows of CPU time by kind, and of wall time with a concurrent reader. Merges: benchmarks.merge."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 2, 10_000)  # as commands and nodes do
    node = _node(count)
    for kind, batches in _changes(node, count, rounds):
        cpu, _ = _apply(node, batches)
        what = f"one update at {count:,} ACLs, {kind}"
        yield Row(what=f"{what}: CPU p50", ours=percentile(cpu, 0.5), unit="us", target=P50_TARGET_US)
        yield Row(what=f"{what}: CPU p99", ours=percentile(cpu, 0.99), unit="us", target=P99_TARGET_US)
    yield from _with_a_reader(node, rounds)


def _with_a_reader(node: _Node, rounds: int) -> Iterator[Row]:
    batches = [node.acl(f"read.{n}", PatternType.LITERAL, f"User:u{n}") for n in range(rounds)]
    reader = _Reader(node)
    thread = threading.Thread(target=reader.read)
    thread.start()
    _, wall = _apply(node, batches)
    reader.stop.set()
    thread.join()
    what = "one update with a concurrent reader in the same process: wall time"
    yield Row(what=f"{what}, p50", ours=percentile(wall, 0.5), unit="us")
    yield Row(what=f"{what}, p99", ours=percentile(wall, 0.99), unit="us")
