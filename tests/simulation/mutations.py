"""Planted mutations: each breaks one promise of aclog, and its world must find it within minutes.

A mutation is a function that patches aclog's code through `patch(target, name, value)`, which the runner undoes.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from attrs import evolve

from aclog.authorizer.standard import StandardAuthorizer
from aclog.client import fetching, follower, quorum_log
from aclog.client.errors import retriable
from aclog.client.fetching import FetchAgain, FetchBuffer, LogIdentity, ObserverState, Progress
from aclog.client.follower import Follower
from aclog.metalog import batches
from aclog.metalog.batches import BatchRun
from aclog.metalog.errors import LogError
from aclog.metalog.filelog import committed_mark, file_log, files, segments
from aclog.metalog.filelog.committed_mark import CommittedMark, Mark
from aclog.metalog.filelog.file_log import Appender, FileLog
from aclog.metalog.filelog.files import NamedFile
from aclog.metalog.machine import clock, disk, threads
from aclog.metalog.topiclog import partition, topic, topic_log
from aclog.metalog.topiclog.reader import HistoricalReads
from aclog.metalog.topiclog.topic_log import Election, ReadBack
from aclog.server.broker import apis as broker_apis
from aclog.server.broker import lifecycle
from aclog.server.broker.apis import EnvelopeForwarder
from aclog.server.controller import activation, controller_server
from aclog.server.controller.leadership import LeadershipTerm
from aclog.server.controller.quorum_controller import QuorumController, WriteEvent
from aclog.server.controller.snapshot_generator import SnapshotGenerator
from aclog.snapshots import applier, checkpoints
from aclog.snapshots.checkpoints import read_checkpoint
from aclog.snapshots.publisher import Publisher
from tests.simulation import (
    admin_mutations,  # noqa: F401 - lists those of two more worlds
    quorum_world,
)
from tests.simulation.planting import MUTATIONS, WORLD_OF, Patch, mutation_of, planted

mutation, of_topic_world, of_quorum_world = mutation_of("files"), mutation_of("topic"), mutation_of("quorum")


@mutation
def acknowledged_before_the_commit(patch: Patch) -> None:
    """A response is sent once the records are appended."""
    patch(QuorumController, "_respond_when_committed", lambda _self, event: event.reply.set_result(event.response))


@mutation
def an_answer_without_records_does_not_wait(patch: Patch) -> None:
    """A request that changes nothing is answered at once, although it was decided on uncommitted records."""
    real = QuorumController._respond_when_committed

    def respond(self: QuorumController, event: Any) -> None:
        if event.appended:
            real(self, event)
        else:
            event.reply.set_result(event.response)

    patch(QuorumController, "_respond_when_committed", respond)


@mutation
def published_when_staged(patch: Patch) -> None:
    """Readers see an image before its records are committed."""
    real = Publisher.stage

    def stage(self: Publisher, chunk: bytes) -> Any:
        image = real(self, chunk)
        self.current = image
        self._notify(image)
        return image

    patch(Publisher, "stage", stage)


@mutation
def published_after_a_failed_commit(patch: Patch) -> None:
    """A controller that stops shows what it could not commit."""
    real = QuorumController._end_with

    def end_with(self: QuorumController, error: BaseException) -> bool:
        self.publisher.commit(1 << 60)
        return real(self, error)

    patch(QuorumController, "_end_with", end_with)


@mutation
def decided_on_the_published_image(patch: Patch) -> None:
    """A request is decided without the records that are appended, but not committed."""
    patch(Publisher, "latest", property(lambda self: self.current))


def _sync_by(patch: Patch, sync: Callable[[int], None]) -> None:
    """Let the log of a controller make its segments durable by another function."""
    patch(activation, "open_log", partial(activation.open_log, fsync=sync))


@mutation
def no_fsync_of_the_segment(patch: Patch) -> None:
    """Appends stay in the page cache."""
    _sync_by(patch, lambda _fd: None)


@mutation
def a_failed_fsync_counts_as_done(patch: Patch) -> None:
    """EIO is ignored."""

    def sync(fd: int) -> None:
        with suppress(OSError):
            disk.fsync(fd)

    _sync_by(patch, sync)


@mutation
def a_failed_fsync_is_tried_again(patch: Patch) -> None:
    """The second fsync reports success for pages that the kernel has dropped."""

    def sync(fd: int) -> None:
        try:
            disk.fsync(fd)
        except OSError:
            disk.fsync(fd)

    _sync_by(patch, sync)


@mutation
def a_failed_append_is_not_truncated(patch: Patch) -> None:
    """Recovery takes records for committed that were reported as failed."""

    def write_durably(self: Appender, data: bytes) -> None:
        files.write_all(self._fd, data)
        self._fsync(self._fd)
        self.file.check()

    patch(Appender, "_write_durably", write_durably)


@mutation
def the_mark_before_the_append(patch: Patch) -> None:
    """The high-water mark moves before the records are durable."""

    def commit(self: FileLog, batches: Any, ends: Any) -> int:
        count = self._appender.fits(batches)
        if not count:
            self._marks.sync()
            self._segments.add(self._appender.roll(self._high_watermark))
            count = self._appender.fits(batches)
        self._publish(ends[count - 1])
        self._marks.sync()
        self._appender.write(batches[:count])
        with self._published:
            self._high_watermark = ends[count - 1]
            self._last_crc = segments.read_header(batches[count - 1]).crc
            self._published.notify_all()
        return count

    patch(FileLog, "_commit", commit)


@mutation
def the_rest_of_a_full_segment_is_acknowledged(patch: Patch) -> None:
    """All waiting requests are answered, also those whose records did not fit into the segment."""
    real = FileLog._commit

    def commit(self: FileLog, batches: Any, ends: Any) -> int:
        real(self, batches, ends)
        return len(batches)

    patch(FileLog, "_commit", commit)


@mutation
def the_log_is_trimmed_before_its_checkpoint(patch: Patch) -> None:
    """Retention removes segments before the checkpoint has its name that replaces them, and does not look for it."""
    patch(file_log, "_is_covered", lambda *_: True)
    real = SnapshotGenerator._write

    async def write(self: SnapshotGenerator) -> bool:
        await asyncio.to_thread(self.trim, self.image().end_offset)
        return await real(self)

    patch(SnapshotGenerator, "_write", write)


@mutation
def a_torn_mark_is_read(patch: Patch) -> None:
    """A slot of the mark counts without its checksum."""

    def decode(data: bytes) -> Mark | None:
        magic, _version, epoch, offset = committed_mark._SLOT.unpack_from(data)
        return Mark(epoch=epoch, offset=offset) if magic == b"AHWM" else None

    patch(committed_mark, "decode_slot", decode)


@mutation
def the_committed_mark_runs_ahead(patch: Patch) -> None:
    """aclog.committed promises records that are appended, but not committed."""
    real = CommittedMark.moved

    def moved(self: CommittedMark, end_offset: int, epoch: int, batch_crc: int | None = None) -> CommittedMark:
        return real(self, end_offset + 1, epoch, batch_crc)

    patch(CommittedMark, "moved", moved)


@mutation
def whole_batches_above_the_mark_are_dropped(patch: Patch) -> None:
    """Recovery truncates to the published mark, which a power loss may have left behind."""
    real = file_log.find_tail

    def find_tail(listed: Any, mark: int | None, epochs: Any) -> Any:
        tail = real(listed, mark, epochs)
        if mark is None or tail.end_offset <= mark:
            return tail
        last = listed[-1]
        position, offset = 0, last.base_offset
        fd = disk.open(last.path, 0)
        for at, header in segments.walk_batches(fd, last.path, position=0, offset=offset, epochs=epochs):
            if header.end_offset > mark:
                break
            position, offset = at + header.size, header.end_offset
        disk.close(fd)
        return evolve(tail, position=position, end_offset=offset, last_crc=None)

    patch(file_log, "find_tail", find_tail)


@mutation
def a_torn_tail_stays(patch: Patch) -> None:
    """The tail is not truncated before the first append."""
    real = Appender.open.__func__  # type: ignore[attr-defined]

    def open_(cls: Any, path: Any, size: int, **options: Any) -> Appender:
        return real(cls, path, max(size, path.stat().st_size), **options)  # type: ignore[no-any-return]

    patch(Appender, "open", classmethod(open_))


@mutation
def names_are_not_synced(patch: Patch) -> None:
    """A new or renamed file may lose its name."""
    patch(files, "fsync_directory", lambda _directory: None)


@mutation
def replaced_before_its_fsync(patch: Patch) -> None:
    """A small file gets its name before its content is durable."""

    def replace(path: Any, data: bytes) -> None:
        partial = path.with_name(path.name + files.TEMPORARY_SUFFIX)
        with partial.open("wb") as file:
            file.write(data)
        partial.replace(path)
        files.fsync_directory(path.parent)

    patch(files, "replace_durably", replace)


@mutation
def a_checkpoint_before_its_fsync(patch: Patch) -> None:
    """A checkpoint gets its name before its content is durable; then the log below it goes."""

    @contextmanager
    def written(path: Any) -> Iterator[int]:
        fd, partial = files._open_partial(path)
        yield fd
        disk.close(fd)
        partial.replace(path)
        files.fsync_directory(path.parent)

    patch(files, "written_whole", written)


@mutation
def a_checkpoint_of_uncommitted_records(patch: Patch) -> None:
    """A checkpoint has the newest image instead of the published one."""
    real = controller_server.SnapshotGenerator

    def generator(**options: Any) -> Any:
        server = options["image"].__closure__[0].cell_contents
        return real(**{**options, "image": lambda: server.publisher.latest})

    patch(controller_server, "SnapshotGenerator", generator)


@mutation
def an_older_copy_is_accepted(patch: Patch) -> None:
    """The committed mark is not compared with the end of the log."""
    patch(CommittedMark, "check_end", lambda *_: None)
    patch(file_log, "_check_batch", lambda *_: None)  # which also needs the batch to be there


@mutation
def a_replaced_directory_goes_unnoticed(patch: Patch) -> None:
    """A running node does not compare its open files with their names."""
    patch(NamedFile, "check", lambda _self: None)


@mutation
def checksums_are_not_compared(patch: Patch) -> None:
    """A damaged batch is read, by all readers."""
    for module in (batches, segments, applier, checkpoints):
        patch(module, "check_crc", lambda *_: None)
    patch(batches, "_first_wrong_crc", lambda _buffer, at, *_: len(at))


@mutation
def a_stale_authorizer_after_a_swap(patch: Patch) -> None:
    """The authorizer continues with the rules of before for one image in four."""
    real = StandardAuthorizer.load

    def load(self: StandardAuthorizer, acls: Any) -> None:
        if len(acls) % 4 != 3:
            real(self, acls)

    patch(StandardAuthorizer, "load", load)


@of_topic_world
def ready_before_the_mark(patch: Patch) -> None:
    """A node is ready with its first image."""

    def check(self: Publisher) -> None:
        if self._notified > 0:
            self._ready.set()

    patch(Publisher, "_check_ready", check)


@mutation
def a_batch_is_skipped(patch: Patch) -> None:
    """An observer loses a batch between the fetch and the replay."""
    real = FetchBuffer.add

    def add(self: FetchBuffer, committed: Any, high_watermark: int, confirmed: Any = None) -> None:
        runs: list[BatchRun] = list(committed)
        real(self, runs[1:] if len(runs) == 1 and high_watermark % 16 == 0 else runs, high_watermark, confirmed)

    patch(FetchBuffer, "add", add)


@mutation
def forwarded_again_after_a_lost_response(patch: Patch) -> None:
    """A broker sends a request a second time though its outcome is unknown."""
    real = EnvelopeForwarder._exchange

    async def exchange(self: EnvelopeForwarder, connection: Any, request: Any) -> Any:
        try:
            return await real(self, connection, request)
        except broker_apis.OutcomeUnknownError as error:
            raise broker_apis._NotSentError(str(error)) from None

    patch(EnvelopeForwarder, "_exchange", exchange)


@mutation
def a_silent_controller_is_waited_for(patch: Patch) -> None:
    """An observer has no timeout: a connection to a host without power is kept."""
    real = lifecycle.ObserverOptions
    patch(lifecycle, "ObserverOptions", lambda **options: real(**{**options, "response_seconds": 1e6}))


@mutation
def a_descriptor_leaks(patch: Patch) -> None:
    """A segment that was read stays open."""

    @contextmanager
    def opened(path: Any) -> Iterator[int]:
        yield disk.open(path, 0)

    patch(segments, "_opened", opened)


@mutation
def deny_is_overlooked(patch: Patch) -> None:
    """The authorizer drops the DENY rules of one principal."""
    real = StandardAuthorizer.load

    def load(self: StandardAuthorizer, acls: Any) -> None:
        dropped = [each.id for each in acls if each.acl.permission_type == 2 and each.acl.principal == "User:bob"]
        real(self, acls.from_acls([each for each in acls if each.id not in dropped]))

    patch(StandardAuthorizer, "load", load)


def _deposed_late(patch: Patch) -> None:
    """Have a candidate learn late that it is deposed, as one whose thread waits: by itself no fault, as fences remain.

    Without it, clocks end a deposed leader before a new one is elected, and hide what fencing lacks.
    """
    real = Election._depose

    def depose(election: Election) -> None:
        if election.elected:
            clock.sleep(15.0)
        real(election)

    patch(Election, "_depose", depose)


@of_topic_world
def a_forgotten_fence(patch: Patch) -> None:
    """Each writer has a transactional id of its own, so that Kafka fences no other one."""
    _deposed_late(patch)
    real = topic_log.fence_previous_writer

    def fence(settings: Any, timeout: float, abandoned: Any) -> Any:
        return real(evolve(settings, transactional_id=f"{settings.topic}-{threads.getpid()}"), timeout, abandoned)

    patch(topic_log, "fence_previous_writer", fence)


@of_topic_world
def a_lost_epoch_check(patch: Patch) -> None:
    """A new leader continues the epoch of the one before."""
    patch(topic.Survey, "epoch", property(lambda self: 0 if self.last is None else max(self.last.place.epoch - 1, 0)))


@of_topic_world
def surveyed_before_the_fence(patch: Patch) -> None:
    """A new leader takes the end of the log from before it has fenced the previous one."""
    _deposed_late(patch)
    real, surveyed = topic_log.fence_previous_writer, HistoricalReads.survey_stable

    def fence(settings: Any, timeout: float, abandoned: Any) -> Any:
        reads = HistoricalReads(settings, threads.Event())
        ends[settings.topic] = surveyed(reads, timeout)
        reads.close()
        clock.sleep(0.05)
        return real(settings, timeout, abandoned)

    ends: dict[str, Any] = {}
    patch(topic_log, "fence_previous_writer", fence)
    patch(HistoricalReads, "survey_stable", lambda self, _timeout: ends[self.settings.topic])


@of_topic_world
def a_commit_that_is_not_read_back(patch: Patch) -> None:
    """A writer shows and acknowledges what no reader of the topic can see yet."""
    patch(ReadBack, "check", lambda *_: None)


@of_topic_world
def acknowledged_before_the_transaction(patch: Patch) -> None:
    """A response is sent once the records are appended."""
    acknowledged_before_the_commit(patch)


@of_topic_world
def beyond_the_last_stable_offset(patch: Patch) -> None:
    """Readers of the topic get records of open and aborted transactions."""
    patch(partition, "FIXED", {**partition.FIXED, "isolation.level": "read_uncommitted"})


@of_topic_world
def an_answer_of_a_deposed_controller(patch: Patch) -> None:
    """A response without records does not wait for a commit that proves the controller active."""

    def confirm(self: QuorumController, event: Any) -> None:
        if self._end <= self._committed:
            event.reply.set_result(event.response)
        else:
            self._respond_when_committed(event)

    patch(QuorumController, "_confirm", confirm)


@of_topic_world
def refused_though_appended(patch: Patch) -> None:
    """A deposed controller reports NOT_CONTROLLER for a request whose commit it may have sent."""
    real = WriteEvent.failure

    def failure(self: WriteEvent, stopped: Any, *, contested: bool) -> Any:
        return real(evolve(self, appended=False), stopped, contested=contested)

    patch(WriteEvent, "failure", failure)


@of_topic_world
def staged_images_survive_the_term(patch: Patch) -> None:
    """A deposed controller shows what it could not commit."""
    real = LeadershipTerm.end

    async def end(self: LeadershipTerm) -> None:
        self.publisher.commit(1 << 60)
        await real(self)

    patch(LeadershipTerm, "end", end)


@of_quorum_world
def a_diverging_epoch_is_ignored(patch: Patch) -> None:
    """A leader's report that the logs differ is taken for an empty response: nothing is truncated."""
    patch(ObserverState, "_handle_divergence", lambda self, _diverging: Progress(committed=self._commit()))


@of_quorum_world
def the_end_of_the_log_is_the_mark(patch: Patch) -> None:
    """All records that a leader sends count as committed."""
    real = ObserverState.handle

    def handle(self: ObserverState, response: Any, *, keep: bool = True) -> Any:
        if response.records:
            ends = BatchRun.of(response.records).end_offset
            response = evolve(response, high_watermark=max(response.high_watermark, ends))
        return real(self, response, keep=keep)

    patch(ObserverState, "handle", handle)


@of_quorum_world
def a_snapshot_below_the_image_is_loaded(patch: Patch) -> None:
    """Every snapshot that a leader names replaces the image, also an older one."""
    real, loaded = Follower._step, dict[Follower, Any]()

    def step(self: Follower) -> None:
        snapshot = self.log._buffer.snapshot  # type: ignore[attr-defined]
        if snapshot is None or loaded.get(self) == snapshot:
            real(self)
            return
        loaded[self] = snapshot
        self.publisher.replace(read_checkpoint(retriable(self.log.checkpoints)[-1].path))

    patch(Follower, "_step", step)


@of_quorum_world
def a_diverging_tail_is_not_truncated(patch: Patch) -> None:
    """The uncommitted tail of a deposed leader is kept, and the next fetch continues after it."""
    real = ObserverState.__dict__["position"].fget

    def position(self: ObserverState) -> Any:
        place = real(self)
        return evolve(place, last_fetched_epoch=self.leader_epoch) if self._pending else place

    patch(ObserverState, "_handle_divergence", lambda *_: FetchAgain())
    patch(ObserverState, "position", property(position))


@of_quorum_world
def the_mark_of_another_leader(patch: Patch) -> None:
    """A new leader's mark counts for what the previous leader has sent, before both logs are compared."""
    real = ObserverState.handle

    def handle(self: ObserverState, response: Any, *, keep: bool = True) -> Any:
        if response.diverging is not None and not response.error:
            self.high_watermark = max(self.high_watermark, response.high_watermark)
            committed = self._commit()
            if committed:
                return Progress(committed=committed)
        return real(self, response, keep=keep)

    patch(ObserverState, "handle", handle)


@of_quorum_world
def another_log_is_followed(patch: Patch) -> None:
    """The batches of a leader are not compared with those that were followed before."""

    async def check(*_: Any, **__: Any) -> bool:
        return True

    patch(LogIdentity, "check", check)


@of_quorum_world
def another_cluster_is_followed(patch: Patch) -> None:
    """Requests leave out the cluster id."""
    real = fetching.fetch_request

    def request(*arguments: Any, **options: Any) -> Any:
        return real(*arguments, **{**options, "cluster_id": None})

    patch(fetching, "fetch_request", request)


@of_quorum_world
def historical_reads_are_not_cut(patch: Patch) -> None:
    """Batches that are fetched again for a reader may be above the mark."""

    def committed(name: str, records: bytes, _offset: int, _mark: int) -> BatchRun:
        if not records:
            raise LogError(f"{name}: no batch")
        return BatchRun.of(records)

    patch(quorum_log, "_committed", committed)


@of_quorum_world
def a_mirror_is_not_synced(patch: Patch) -> None:
    """A mirror reports batches that are in the page cache."""
    patch(quorum_world, "open_mirror", partial(quorum_world.open_mirror, fsync=lambda _fd: None))


@of_quorum_world
def a_trimmed_log_is_waited_for(patch: Patch) -> None:
    """A follower whose next records are no longer in the log waits for them, instead of loading a snapshot."""
    real = Follower._begin

    def begin(self: Follower) -> None:
        if self.publisher.current.end_offset:
            retriable(lambda: self.log.wait(self.log.high_watermark(), 0.5))
        else:
            real(self)

    patch(Follower, "_begin", begin)


@of_quorum_world
def the_voters_of_a_snapshot_are_not_compared(patch: Patch) -> None:
    """A quorum that was formatted again, and whose log begins beyond the observers, is taken for the same one."""
    for module in (follower, quorum_log):
        patch(module, "check_same_voters", lambda *_: None)


def search(name: str, seconds: float) -> tuple[int, float, str]:
    """Return the first seed that finds a mutation, -1 if none does in so much CPU time; the time, and the failure."""
    from tests.simulation.simulate import run_seed

    begun, seed = time.process_time(), 0
    while (took := time.process_time() - begun) < seconds:
        with planted(name):
            outcome = run_seed(seed, world=WORLD_OF[name], seconds=60.0)
        if outcome.failures:
            return seed, time.process_time() - begun, outcome.failures[0]
        seed += 1
    return -1, took, "not found"


def main() -> int:
    """Search for every mutation, or those of the arguments; return 1 if one is not found within five minutes."""
    missed = 0
    for name in sys.argv[1:] or MUTATIONS:
        seed, took, failure = search(name, 300.0)
        missed += seed < 0
        print(f"{name}: seed {seed}, {took:.1f} s: {failure[:120]}", flush=True)
    print(f"{missed} mutations not found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
