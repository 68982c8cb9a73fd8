"""`watch`: print changes as they are committed."""

from collections.abc import Iterator, Sequence

from aclog.shell.arguments import Argument, Arguments, Count, Signature
from aclog.shell.command import Command, Line, complaint
from aclog.shell.differences import Difference, differences
from aclog.shell.glob import Glob
from aclog.shell.kafka_text import zoned_time
from aclog.shell.line_format import FORMAT, is_json
from aclog.shell.path_names import encode_name
from aclog.shell.state import ShellState
from aclog.shell.walk import HERE, path_globs
from aclog.snapshots.following import Followed, follow
from aclog.terminal.age import AgeWatch
from aclog.terminal.json_text import json_text
from aclog.terminal.notices import note


def _watch(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    log = state.source.log
    if log is None:
        yield complaint(f"watch: {state.source.name} is a single state: expected a log")
        return
    as_json = is_json(arguments)
    target = arguments.one("path") or HERE
    globs = path_globs(state.working_directory, target.glob)
    image = state.image()
    if not as_json:
        yield Line(f"watching {target.text} from offset {image.end_offset}; stop with Ctrl-C", flush=True)
    age = AgeWatch()
    for step in follow(state.source, log, image, lambda: age.tell(state.source.freshness())):
        where = f"offset {step.before.end_offset}..{step.after.end_offset - 1} {zoned_time(step.after.timestamp)}"
        if step.changes is None:
            why = "the log no longer has all of these offsets: what they changed as a whole"
            if as_json:
                note(f"{where} {why}")
            else:
                yield Line(f"{where} {why}", flush=True)
        touched = None if step.changes is None else {change.id for change in step.changes}
        for difference in differences(step.before, step.after, touched):
            if is_under(globs, difference):
                yield Line(_json(step, difference) if as_json else f"{where} {difference}", flush=True)


def _json(step: Followed, difference: Difference) -> str:
    place = {
        "offset": step.before.end_offset,
        "endOffset": step.after.end_offset,
        "timestamp": step.after.timestamp,
    }
    return json_text({**place, **difference.to_dict()})


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
        ),
        options=(FORMAT,),
    ),
    run=_watch,
    path_arguments=True,
    notes=(
        "It starts at the current position: after `at OFFSET`, with the changes after that offset.",
        "Where the log no longer has the next records, it prints what they changed as a whole, and goes on.",
    ),
)
