"""`at`: time travel."""

from collections.abc import Iterator

from aclog.shell.arguments import Argument, Arguments, Count, Signature
from aclog.shell.command import Command, Line
from aclog.shell.kafka_text import provenance_text
from aclog.shell.state import ShellState
from aclog.snapshots.image import Image
from aclog.snapshots.moments import LATEST, moment_text
from aclog.terminal.moment import take_moment


def _at(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    words = arguments.all("moment")
    if words:
        state.go_to(take_moment(" ".join(word.text for word in words)))
    yield Line(f"at {moment_text(state.moment)}: {_summary(state.image())}")


def _summary(image: Image) -> str:
    """Return the position of a state and the number of its objects."""
    provenance = provenance_text(image.end_offset - 1, image.epoch, image.timestamp)
    return (
        f"{provenance}; {len(image.acls)} ACLs, {len(image.scram)} SCRAM credentials, "
        f"{len(image.tokens)} delegation tokens"
    )


AT = Command(
    name="at",
    description="Go to the state at an offset or a time, or print the current position.",
    signature=Signature(
        arguments=(
            Argument(
                name="moment",
                count=Count.ANY,
                help="An end offset (the state after the record before it), a time such as 2026-11-20T10:00:00Z, "
                "yesterday 18:00 or 3d ago, or latest, which follows the log.",
            ),
        )
    ),
    run=_at,
    suggestions=lambda _, __: (LATEST,),
    at_prompt_only=True,
)
