"""What `aclog drift` prints."""

from collections import Counter
from collections.abc import Iterator, Sequence

from aclog.authorizer.acl import acl_text, object_of_rule
from aclog.authorizer.acls_image import acl_of_content
from aclog.cli.flags.commands import DriftFlags
from aclog.cli.flags.common import Output
from aclog.cli.flags.plans import WantFlags
from aclog.cli.flags.target import TargetFlags, place_address
from aclog.cli.images import ACL_COLUMNS
from aclog.cli.plan import wanted_of
from aclog.metalog.errors import plural, printable
from aclog.metalog.values import frozen
from aclog.ops.plan import read_wanted_rules
from aclog.planning.planner import Drift, DriftKind, drift_of
from aclog.targets.opening import FoundPlace, find_place
from aclog.terminal.columns import Column, Row
from aclog.terminal.output import note, say

NONE, SOME = 0, 1
"""Exit codes."""

DRIFT_COLUMNS = (Column(key="kind"), Column(key="owned"), *ACL_COLUMNS)

_HEADS = {
    DriftKind.MISSING: ("desired rule", "missing"),
    DriftKind.LEFTOVER: ("managed rule", "no longer desired"),
}


@frozen(eq=False, kw_only=True)
class Look:
    """One check of a target: the drift, and the rules of other owners."""

    place: FoundPlace
    drift: Sequence[Drift]
    foreign: int


def look(target: TargetFlags, rules: frozenset[bytes], flags: DriftFlags) -> Look:
    """Look at the place. Raises as find_place."""
    journal, others = flags.journals()
    place = find_place(place_address(target), None, journal, note, others)
    ownership = place.holdings
    return Look(place=place, drift=drift_of(ownership, rules), foreign=len(ownership.there - rules - ownership.owned))


def print_drift(target: TargetFlags, want: WantFlags, flags: DriftFlags, output: Output) -> int:
    """Print what drifts; return the exit code.

    Raises:
        ConfigError: flags that do not go together, or files that hold something else.
        MetadataError, OSError: the place, a journal or a file cannot be read, so that the drift is unknown.

    """
    rules = read_wanted_rules(wanted_of(want)).rules
    report = look(target, rules, flags)
    journal = report.place.journal
    if journal is not None and journal.is_new and report.place.state.contents:
        note(
            f"{journal.path} does not exist yet, so no rule is managed (recorded as applied or adopted), and no rule "
            "is a leftover (managed, but no longer desired)"
        )
    if output.is_rows:
        output.print_rows(DRIFT_COLUMNS, map(drift_row, report.drift))
    else:
        for line in _text(report):
            say(printable(line))
    return SOME if report.drift or report.place.premises else NONE


def drift_row(drift: Drift) -> Row:
    """Return the JSON object of a rule that drifts."""
    return {"kind": drift.kind.value, "owned": drift.owned, **object_of_rule(acl_of_content(drift.content))}


def drift_text(drift: Drift) -> str:
    """Return a rule that drifts as a line."""
    why = "" if drift.kind is DriftKind.LEFTOVER else ("; it was applied" if drift.owned else "; it was never applied")
    return f"{drift.kind}  {acl_text(acl_of_content(drift.content))}{why}"


def _text(report: Look) -> Iterator[str]:
    yield from map(drift_text, report.drift)
    kinds = Counter(each.kind for each in report.drift)
    counts = [f"{plural(kinds[kind], rule)} {what}" for kind, (rule, what) in _HEADS.items()]
    none = report.place.premises.decided("no drift")
    rules = "rule is" if report.foreign == 1 else "rules are"
    others = f"; {report.foreign:,} {rules} neither desired nor managed" if report.foreign else ""
    yield f"{report.place.name}: {', '.join(counts) if report.drift else none}{others}"
