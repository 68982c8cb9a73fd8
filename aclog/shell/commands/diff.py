"""`diff`: the changes between two moments."""

from collections import Counter
from collections.abc import Iterator

from aclog.shell.arguments import Argument, Arguments, Count, Signature
from aclog.shell.command import Command, Line
from aclog.shell.differences import Sign, differences
from aclog.shell.state import ShellState
from aclog.snapshots.moments import LATEST, parse_moment


def _diff(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    start, end = (arguments.one(name) for name in ("from", "to"))
    before = state.image_at(parse_moment(start.text)) if start else state.image()
    after = state.image_at(parse_moment(end.text)) if end else state.image()
    counts: Counter[Sign] = Counter()
    for difference in differences(before, after):
        counts[difference.sign] += 1
        yield Line(str(difference))
    yield Line(f"{counts[Sign.ADDED]} added, {counts[Sign.REMOVED]} removed, {counts[Sign.CHANGED]} changed")


_MOMENT = "An end offset, a time such as 2026-11-20T10:00:00Z, or latest"

DIFF = Command(
    name="diff",
    description="Print what was added (+), removed (-) and changed (~) between two moments.",
    signature=Signature(
        arguments=(
            Argument(name="from", count=Count.ONE, help=f"{_MOMENT}."),
            Argument(name="to", count=Count.OPTIONAL, help=f"{_MOMENT}; by default the current position."),
        )
    ),
    run=_diff,
    suggestions=lambda _, __: (LATEST,),
    notes=("An ACL that was removed and added again has a new id and counts as one change.",),
)
