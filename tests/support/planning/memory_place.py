"""A place in memory that keeps every state that was visible in it, and can be killed at any point."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from random import Random

from attrs import define, field

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import content_of
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.planning.plan import ApplyNote, Batching, Completion, PlaceState, Step
from aclog.snapshots.deciding_kafka import DecidingKafka, kafka_of_levels
from aclog.targets.cluster import independent_runs


class Killed(BaseException):
    """What a process that is killed does not survive: nothing catches it."""


@define(eq=False)
class Fuse:
    """Counts points, and ends what runs at one of them."""

    at: int | None = None
    """From 0; None: never."""
    error: type[BaseException] = Killed
    """What is raised there: Killed, or an error that the product knows."""
    passed: int = 0

    def point(self) -> None:
        """Pass a point, or raise."""
        self.passed += 1
        if self.passed - 1 == self.at:
            raise self.error(f"at point {self.at}")


@define(eq=False, kw_only=True)
class MemoryPlace:
    """A place as WritablePlace has it; what it shows rule by rule comes in any order that ServerPlace admits."""

    batching: Batching
    rules: frozenset[StandardAcl]
    allow_everyone: bool
    point: Callable[[], None]
    random: Random
    """For the sizes of requests, and the order within one."""
    name: str = "memory"
    visible: list[frozenset[StandardAcl]] = field(factory=list)
    """What was to be seen, one after another."""
    levels: Mapping[int, int] = field(factory=lambda: {1: 30})
    """Of metadata.version, by broker: what Kafka they run."""
    applied: set[str] = field(factory=set)
    """The applies that made something, of which a log keeps a record."""
    _noted: str = ""

    def __attrs_post_init__(self) -> None:
        self.visible.append(self.rules)

    def identity(self) -> str:
        return "memory-1"

    def fingerprint(self, end_offset: int) -> str | None:
        return None

    def premises(self, configs) -> Premises:
        """Return none."""
        return ALL_KNOWN

    def settings(self) -> Settings | None:
        return None

    def kafka(self, ranges: Collection[StandardAcl]) -> DecidingKafka:
        return kafka_of_levels(self.levels, ranges)

    def read(self) -> PlaceState:
        self.point()
        return PlaceState(contents=frozenset(map(content_of, self.rules)))

    def note_begin(self, note: ApplyNote) -> None:
        self.point()
        self._noted = note.apply

    def note_done(self, note: ApplyNote) -> None:
        self.point()

    def noted(self, plan: str) -> ApplyNote | None:
        return None

    def was_noted(self, apply: str) -> bool:
        return False

    def completion(self, apply: str) -> Completion | None:
        if self.batching is not Batching.ALL:
            return None
        return Completion.ALL if apply in self.applied else Completion.NONE

    def check(self, steps: Sequence[Step]) -> None:
        pass

    def pieces(self, steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
        if self.batching is Batching.ALL:
            yield steps
            return
        if self.batching is Batching.RESOURCE:
            yield from (list(batch) for _, batch in groupby(steps, key=lambda step: step.batch))
            return
        for _, stage in groupby(steps, key=lambda step: step.stage):
            run = list(stage)
            size = self.random.randint(1, len(run))
            yield from (run[begin : begin + size] for begin in range(0, len(run), size))

    def write(self, piece: Sequence[Step]) -> None:
        """Make the steps; killed, as many batches as came before the point."""
        self.point()
        for batch in self._batches(piece):
            added = {step.acl for step in batch if step.adds}
            removed = {step.acl for step in batch if not step.adds}
            if added & self.rules or removed - self.rules:
                raise AssertionError("a step adds what is there, or removes what is not")
            self.rules = (self.rules - removed) | added
            self.applied.add(self._noted)
            self.visible.append(self.rules)
            self.point()

    def read_back(self, acls: Sequence[StandardAcl]) -> set[StandardAcl]:
        self.point()
        return {acl for acl in acls if acl in self.rules}

    def _batches(self, piece: Sequence[Step]) -> Iterator[Sequence[Step]]:
        if self.batching is not Batching.RULE:
            yield piece
        elif piece[0].adds and self.allow_everyone:
            yield from ([step] for step in piece)
        else:
            step_of = {step.acl: step for step in piece}
            for run in independent_runs(step_of) if self.allow_everyone else [list(step_of)]:
                yield from ([step_of[acl]] for acl in self.random.sample(run, len(run)))
