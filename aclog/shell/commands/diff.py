"""`diff`: the changes between two moments."""

from collections import Counter
from collections.abc import Iterator

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy
from aclog.analysis.side_premises import turning_same
from aclog.metalog.errors import ConfigError
from aclog.metalog.printable import printable
from aclog.shell.arguments import Argument, Arguments, Count, Option, Signature
from aclog.shell.command import Command, Line
from aclog.shell.differences import Sign, differences
from aclog.shell.line_format import FORMAT, is_json
from aclog.shell.settings import SETTINGS, given_settings, settings_of
from aclog.shell.state import ShellState
from aclog.snapshots.image import Image
from aclog.snapshots.moments import LATEST
from aclog.terminal.json_text import json_text
from aclog.terminal.moment import take_moment

_OF = Option(
    flag="--of", value="WHAT", help="rules (the default): what is in the tree; access: who gained and lost what by it."
)
_RULES, _ACCESS = "rules", "access"


def _diff(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    start, end = (arguments.one(name) for name in ("from", "to"))
    what = arguments.text(_OF.flag) or _RULES
    if what not in (_RULES, _ACCESS):
        raise ConfigError(f"--of {what}: expected {_RULES} or {_ACCESS}")
    as_json = is_json(arguments)
    before = state.image_at(take_moment(start.text)) if start else state.image()
    after = state.image_at(take_moment(end.text)) if end else state.image()
    if what == _ACCESS:
        policies = [Policy(image.acls, settings_of(arguments, image)) for image in (before, after)]
        found = Comparison.of(*policies)
        if not found.differences:
            found.premises = turning_same(state.premises(given_settings(arguments)), found)
        lines = map(json_text, found.json_lines()) if as_json else map(printable, found.text_lines())
        yield from map(Line, lines)
    elif as_json:
        yield from (Line(json_text(difference.to_dict())) for difference in differences(before, after))
    else:
        yield from _of_objects(before, after)


def _of_objects(before: Image, after: Image) -> Iterator[Line]:
    counts: Counter[Sign] = Counter()
    for difference in differences(before, after):
        counts[difference.sign] += 1
        yield Line(str(difference))
    yield Line(f"{counts[Sign.ADDED]} added, {counts[Sign.REMOVED]} removed, {counts[Sign.CHANGED]} changed")


_MOMENT = "An end offset, a time such as 2026-11-20T10:00:00Z, -3d or 'yesterday 18:00', or latest"

DIFF = Command(
    name="diff",
    description="Print what was added (+), removed (-) and changed (~) between two moments.",
    signature=Signature(
        arguments=(
            Argument(name="from", count=Count.ONE, help=f"{_MOMENT}."),
            Argument(name="to", count=Count.OPTIONAL, help=f"{_MOMENT}; by default the current position."),
        ),
        options=(_OF, FORMAT, *SETTINGS),
    ),
    run=_diff,
    suggestions=lambda _, __: (LATEST,),
    notes=(
        "An ACL that was removed and added again has a new id and counts as one change.",
        "`diff --of access` says who gained and lost what, as `aclog diff` does; the other options are for it.",
    ),
)
