"""`watch`: print changes as they are committed."""

from collections.abc import Callable, Iterator, Sequence

from attrs import frozen

from aclog.metalog.batches import iter_batches
from aclog.metalog.errors import LogError
from aclog.metalog.log import LogReader
from aclog.shell.arguments import Argument, Arguments, Count, Signature
from aclog.shell.command import Command, Line, complaint
from aclog.shell.differences import Difference, differences
from aclog.shell.glob import Glob
from aclog.shell.kafka_text import zoned_time
from aclog.shell.path_names import encode_name
from aclog.shell.state import ShellState
from aclog.shell.walk import HERE, path_globs
from aclog.snapshots.applier import Applier
from aclog.snapshots.image import Image
from aclog.snapshots.newer_kafka import NewerKafka
from aclog.snapshots.state_source import StateSource
from aclog.terminal.age import AgeWatch

WAIT_S = 1.0
"""How long one poll of the log waits, in seconds; Ctrl-C takes effect within this time."""


def _watch(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    log = state.source.log
    if log is None:
        yield complaint(f"watch: {state.source.name} is a single state: expected a log")
        return
    target = arguments.one("path") or HERE
    globs = path_globs(state.working_directory, target.glob)
    image = state.image()
    yield Line(f"watching {target.text} from offset {image.end_offset}; stop with Ctrl-C", flush=True)
    age = AgeWatch()
    for step in steps(state.source, log, image, lambda: age.tell(state.source.freshness())):
        where = f"offset {step.before.end_offset}..{step.after.end_offset - 1} {zoned_time(step.after.timestamp)}"
        if step.resynchronised:
            why = "the log no longer has all of these offsets: what they changed as a whole"
            yield Line(f"{where} {why}", flush=True)
        for difference in step.found:
            if is_under(globs, difference):
                yield Line(f"{where} {difference}", flush=True)


@frozen(kw_only=True)
class Step:
    """A visible state, the one that was seen before, and the differences.

    `resynchronised`: states in between were not seen, because a snapshot has replaced the records that made them.
    """

    before: Image
    after: Image
    found: tuple[Difference, ...]
    resynchronised: bool = False


def steps(source: StateSource, log: LogReader, image: Image, idle: Callable[[], None] = lambda: None) -> Iterator[Step]:
    """Yield each visible state after `image`; never ends.

    If retention has removed the records that follow, the source's newest state is next.

    `idle` is called whenever WAIT_S has passed without a record.

    Raises:
        MetadataError: the log is damaged or deleted, or can never be followed again.

    """
    applier = _applier(image)
    while True:
        chunk = _next_batches(log, applier.next_offset)
        if chunk is None:
            before = applier.image
            applier = _applier(source.image())
            found = tuple(differences(before, applier.image))
            yield Step(before=before, after=applier.image, found=found, resynchronised=True)
            continue
        if not chunk:
            idle()
        for position, header in iter_batches(chunk):
            # One batch at a time, so that each difference is printed with its own offsets and time.
            before, applier.journal = applier.image, []
            after = applier.apply(chunk[position : position + header.size])
            touched = {change.id for change in applier.journal}
            if after is not before:  # within a transaction the image does not change
                yield Step(before=before, after=after, found=tuple(differences(before, after, touched)))


def _applier(image: Image) -> Applier:
    return Applier(image=image, newer=NewerKafka(strict=False))


def _next_batches(log: LogReader, offset: int) -> bytes | None:
    """Return the batches from an offset; none if none is committed in time, None if the log begins above it."""
    if offset < log.start_offset():
        return None
    try:
        return log.read(offset) if log.wait(offset, WAIT_S) else b""
    except LogError:
        if offset < log.start_offset():  # it has begun to in the meantime
            return None
        raise


def is_under(globs: Sequence[Glob], difference: Difference) -> bool:
    """Return whether one of the difference's paths is at or below the watched path."""
    return any(
        len(path) >= len(globs)
        and all(glob.matches(encode_name(name)) for glob, name in zip(globs, path, strict=False))
        for path in difference.paths
    )


WATCH = Command(
    name="watch",
    description="Print changes as they are committed, until Ctrl-C.",
    signature=Signature(
        arguments=(
            Argument(
                name="path",
                count=Count.OPTIONAL,
                help="Print only changes at or below this path; by default the working directory.",
            ),
        )
    ),
    run=_watch,
    path_arguments=True,
    notes=(
        "It starts at the current position: after `at OFFSET`, with the changes after that offset.",
        "Where the log no longer has the next records, it prints what they changed as a whole, and goes on.",
    ),
)
