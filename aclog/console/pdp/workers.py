"""The memory that the worker processes of a decision point share: answered offsets, readiness and metrics.

Each word and each text has one process that writes it, so no lock is needed, and a process that is killed at any moment
leaves what it wrote before.
"""

import mmap
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from time import monotonic_ns, sleep

from attrs import field
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from aclog.metalog.errors import MetadataError
from aclog.metalog.values import define

# The sum of the metrics of several processes.


_GREATEST = {"aclog_age_seconds", "python_info"}
_LEAST = {"process_start_time_seconds", "process_max_fds"}
_LASTING = ("counter", "histogram")
"""Kinds of metrics that never decrease: those of a process that has ended still count."""


class _Collected(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        return iter(self._metrics)


def summed_metrics(texts: Iterable[str], *, only_lasting: bool = False) -> bytes:
    """Return the sum of metrics in Prometheus's text format; of an age the greatest, of a time the earliest.

    `only_lasting`: leave out what is true of the present only.
    """
    families: dict[str, Metric] = {}
    values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
    for text in texts:
        for family in text_string_to_metric_families(text):
            if only_lasting and family.type not in _LASTING:
                continue
            families.setdefault(family.name, family)
            own = values.setdefault(family.name, {})
            for sample in family.samples:
                key = sample.name, tuple(sorted(sample.labels.items()))
                own[key] = _combined(family.name, own[key], sample.value) if key in own else sample.value
    registry = CollectorRegistry()
    registry.register(_Collected(_metric(family, values[name]) for name, family in families.items()))
    return generate_latest(registry)


def _combined(name: str, one: float, other: float) -> float:
    if name in _GREATEST:
        return max(one, other)
    return min(one, other) if name in _LEAST or name.endswith("_created") else one + other


def _metric(family: Metric, values: dict[tuple[str, tuple[tuple[str, str], ...]], float]) -> Metric:
    metric = Metric(family.name, family.documentation, family.type)
    for (name, labels), value in values.items():
        metric.add_sample(name, dict(labels), value)
    return metric


# The shared memory: words of 8 bytes, each written at once, and then texts, two for each writer.


_WORD = 8
_TEXT_BYTES = 64 << 10
_GENERATION, _RETIRING, _OFFSETS = 0, 1, 2
_SILENT_S = 10
"""The time after which a worker that gives no sign does not respond."""
_TRIES = 1000


@define(eq=False)
class WorkerBoard:
    """Made before the workers, which are forks; numbered from 0. Worker N writes what has the number N.

    The number after the last worker is that of the process that started them: its text has the counters of workers that
    have ended; its sign of life is that of health checks.
    """

    count: int
    _memory: mmap.mmap = field(init=False, repr=False)
    _words: "memoryview[int]" = field(init=False, repr=False)
    _beats: int = field(init=False)
    """Where the signs of life begin, in words."""
    _versions: int = field(init=False)
    """Where the versions of the texts begin, in words."""
    _texts: int = field(init=False)
    """Where the texts begin, in bytes."""

    def __attrs_post_init__(self) -> None:
        self._beats = _OFFSETS + 4 * self.count
        self._versions = self._beats + self.count + 1
        words = self._versions + self.count + 1
        self._texts = -(-words * _WORD // mmap.PAGESIZE) * mmap.PAGESIZE
        self._memory = mmap.mmap(-1, self._texts + 2 * (self.count + 1) * _TEXT_BYTES)
        self._words = memoryview(self._memory)[: self._texts].cast("q")

    # Files that are read again.

    @property
    def generation(self) -> int:
        """How often files were to be read again."""
        return self._words[_GENERATION]

    def read_again(self) -> None:
        """Have every worker read its files again."""
        self._words[_GENERATION] += 1

    # Offsets of states that were answered from: two entries for each worker, of which it overwrites the lower one.

    @property
    def offsets(self) -> "memoryview[int]":
        """The offsets: two for each worker."""
        return self._words[_OFFSETS : _OFFSETS + 2 * self.count]

    @property
    def digests(self) -> "memoryview[int]":
        """The digests of the log before these offsets."""
        return self._words[_OFFSETS + 2 * self.count : _OFFSETS + 4 * self.count]

    # Signs of life, and what workers report.

    def beat(self, number: int) -> None:
        """Note that a process runs."""
        self._words[self._beats + number] = monotonic_ns()

    def has_begun(self, number: int) -> bool:
        """Return whether a process has begun to serve, and has not ended since."""
        return self._beat(number) != 0

    def publish(self, number: int, why_not_ready: str | None, metrics: bytes) -> None:
        """Write the readiness and the metrics of a worker."""
        self._write(number, (why_not_ready or "").encode("utf-8", "backslashreplace") + b"\0" + metrics)

    def retire(self, number: int) -> None:
        """Keep the counters of a process that has ended: the sums never decrease. For the process that started it."""
        if number == self.count:
            self._words[self._beats + number] = 0
            return
        kept = self._read(self.count), self._read(number).partition(b"\0")[2]
        lasting = summed_metrics((text.decode() for text in kept), only_lasting=True)
        self._words[_RETIRING] += 1
        self._write(self.count, lasting)
        self._write(number, b"")
        self._words[self._beats + number] = 0
        self._words[_RETIRING] += 1

    def why_not_ready(self) -> str | None:
        """Return why a worker does not serve; None if every one does."""
        now = monotonic_ns()
        for number in range(self.count):
            beat = self._beat(number)
            if not beat:
                return f"worker {number + 1} is not running"
            if now - beat > _SILENT_S * 1_000_000_000:
                return f"worker {number + 1} does not respond"
            if why := self._read(number).partition(b"\0")[0]:
                return f"worker {number + 1}: {why.decode()}"
        return None

    def metrics(self) -> bytes:
        """Return the sum of the metrics of all workers, those included that have ended."""
        texts: list[bytes] = []
        for _ in range(_TRIES):
            before = self._words[_RETIRING]
            texts = [self._read(self.count), *(self._read(each).partition(b"\0")[2] for each in range(self.count))]
            if before % 2 == 0 and before == self._words[_RETIRING]:
                break
            sleep(0.001)
        return summed_metrics(text.decode() for text in texts)

    def _beat(self, number: int) -> int:
        return self._words[self._beats + number]

    def _write(self, number: int, text: bytes) -> None:
        """Write a text beside the one that is read, and have it read from then on."""
        if len(text) > _TEXT_BYTES - _WORD:  # never: the labels of all metrics are bounded
            text = text[: text.find(b"\0") + 1]
        place = self._versions + number
        version = self._words[place] + 1
        at = self._at(number, version)
        self._memory[at : at + _WORD] = len(text).to_bytes(_WORD, "little")
        self._memory[at + _WORD : at + _WORD + len(text)] = text
        self._words[place] = version

    def _read(self, number: int) -> bytes:
        place = self._versions + number
        for _ in range(_TRIES):
            version = self._words[place]
            at = self._at(number, version)
            length = int.from_bytes(self._memory[at : at + _WORD], "little")
            text = self._memory[at + _WORD : at + _WORD + min(length, _TEXT_BYTES)]
            if version == self._words[place]:
                return text
        return b""

    def _at(self, number: int, version: int) -> int:
        return self._texts + (2 * number + version % 2) * _TEXT_BYTES


# What one worker knows of the answers of the others.


@define(eq=False, kw_only=True)
class AnsweredOffsets:
    """The offsets that workers have answered from, of which none may be followed by an older one. Thread-safe."""

    board: WorkerBoard
    number: int
    digest: Callable[[int], int]
    """Returns a digest of the log before an offset, 0 if it is unknown. Raises MetadataError, OSError: unreadable."""
    _offsets: "memoryview[int]" = field(init=False)
    _has_joined: bool = field(default=False, init=False)
    """Whether this worker has had a state as new as all answers, of the same log."""
    _writing: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._offsets = self.board.offsets

    @property
    def newest(self) -> int:
        """The highest offset that a worker has answered from; 0 before the first answer."""
        return max(self._offsets)

    def why_not_joined(self, offset: int) -> str | None:
        """Return why a worker whose newest state ends at this offset may not begin to answer; None if it may.

        Once it may, a lag is no reason: a request that finds one has the source read.
        """
        if self._has_joined:
            return None
        offsets, newest = list(self._offsets), self.newest
        if offset < newest:
            return f"the state ends at offset {offset}: another worker has answered from offset {newest}"
        known, own = self.board.digests[offsets.index(newest)], 0
        if known:
            with suppress(MetadataError, OSError):
                own = self.digest(newest)
        if known and own and known != own:
            return f"another log is here than the one that other workers have answered from: offset {newest} differs"
        self._has_joined = True
        return None

    def admit(self, offset: int) -> bool:
        """Note that an answer from a state is about to be sent; False: it is older than another answer."""
        if offset < max(self._offsets) or self.why_not_joined(offset) is not None:
            return False
        first = 2 * self.number
        if offset > max(self._offsets[first], self._offsets[first + 1]):
            with self._writing:
                self._note(offset)
        return True

    def _note(self, offset: int) -> None:
        first = 2 * self.number
        place = first if self._offsets[first] <= self._offsets[first + 1] else first + 1
        if offset <= max(self._offsets[first], self._offsets[first + 1]):  # another thread was faster
            return
        digest = 0
        with suppress(MetadataError, OSError):
            digest = self.digest(offset)
        self._offsets[place] = 0
        self.board.digests[place] = digest
        self._offsets[place] = offset
