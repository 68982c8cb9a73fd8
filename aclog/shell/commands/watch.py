"""`watch`: print changes as they are committed."""

from collections.abc import Callable, Iterator, Sequence

from aclog.metalog.batches import iter_batches
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
    for before, after, found in changes(log, image, lambda: age.tell(state.source.freshness())):
        for difference in found:
            if is_under(globs, difference):
                where = f"offset {before.end_offset}..{after.end_offset - 1} {zoned_time(after.timestamp)}"
                yield Line(f"{where} {difference}", flush=True)


def changes(
    log: LogReader, image: Image, idle: Callable[[], None] = lambda: None
) -> Iterator[tuple[Image, Image, list[Difference]]]:
    """Yield each visible state after `image`, with the state before it and the differences; never ends.

    `idle` is called whenever WAIT_S has passed without a record.

    Raises:
        MetadataError: the log is damaged, deleted, or does not reach back to the image any more.

    """
    applier = Applier(image=image, newer=NewerKafka(strict=False))
    while True:
        if not log.wait(applier.next_offset, WAIT_S):
            idle()
            continue
        chunk = log.read(applier.next_offset)
        for position, header in iter_batches(chunk):
            # One batch at a time, so that each difference is printed with its own offsets and time.
            before, applier.journal = applier.image, []
            after = applier.apply(chunk[position : position + header.size])
            touched = {change.id for change in applier.journal}
            if after is not before:  # within a transaction the image does not change
                yield before, after, list(differences(before, after, touched))


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
    notes=("It starts at the current position: after `at OFFSET`, with the changes after that offset.",),
)
