"""Reports of `aclog accesses usage`, `unused`, `denied`, `suggest` and `simulate`."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress, groupby
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from aclog.authorizer.acl import StandardAclWithId, acl_text
from aclog.authorizer.acls_image import Action
from aclog.authorizer.codes import AclPermissionType, PatternType
from aclog.authorizer.standard import Premises
from aclog.cli.answers import rules_text, with_generation
from aclog.cli.flags.commands import SuggestFlags
from aclog.cli.flags.common import Output
from aclog.cli.images import ACL_COLUMNS, RULE_COLUMNS
from aclog.cli.transfer.output import write_change_file
from aclog.cli.unused import UNREAD_COLUMN
from aclog.metalog.errors import plural, printable
from aclog.metalog.values import frozen
from aclog.ops.tables import rule_text
from aclog.ops.usage import (
    FEW,
    DeniedRequests,
    LogSimulation,
    LogUsage,
    ProvedSuggestion,
    blocking_denies,
    days_text,
    empty_days,
    evidence_notes,
    few,
    shown_time,
    unjudged_text,
    warn_of_unread,
    why_unjudged,
)
from aclog.sources.acl_lines import change_line
from aclog.terminal.columns import Column, json_text
from aclog.terminal.output import as_of_text, note, optional_time_text, say, time_text
from aclog.terminal.tables import aligned
from aclog.usage.decisions.decisions import texts_of_rules
from aclog.usage.decisions.intervals import Rules
from aclog.usage.denied import Attempt, Refusals
from aclog.usage.evidence import totals_text
from aclog.usage.judging import UsageReport
from aclog.usage.simulation import Change, Simulation
from aclog.usage.suggestion import NOT_JUDGED, SuggestedRule, Suggestion
from aclog.usage.unused import MEANINGS, Answer
from aclog.usage.window import Counts, unread_text

# The report of `aclog accesses usage`.


# The summary of a usage report, as `aclog accesses usage` and `aclog spark usage` print it.


SHOWN_DENIED: Final = 10
_SHOWN_UNJUDGED: Final = 10


def summary_lines(usage_report: UsageReport, after: Iterable[str]) -> Iterator[str]:
    """Yield the summary for people: what was read, how many ACLs have which answer, `after`, and what was denied."""
    window = usage_report.window
    days = plural((window.until - window.start).days, "day")
    yield f"window of {days}: {as_of_text(window.start)} to {as_of_text(window.until)}"
    yield ""
    yield from aligned(("accesses", "status"), _counted(usage_report.counts))
    yield ""
    yield from aligned(("ACLs", "removable", "verdict", "meaning"), _answers(usage_report.rules))
    if text := totals_text(usage_report):
        yield text
    yield ""
    if usage_report.unread:
        yield f"{unread_text(usage_report.unread)}: {unjudged_text(usage_report)}"
        yield ""
    yield from after
    yield from _unjudged(usage_report)
    yield from evidence_notes(usage_report)
    denied = usage_report.denied.slice(0, SHOWN_DENIED).to_pylist()
    if denied:
        texts = _rule_texts(usage_report.rules, {row["rule_id"] or row["rule"] for row in denied})
        yield ""
        header = ("denied", "last", "principal", "host", "operation", "resource", "rule")
        yield from aligned(
            header,
            (
                (
                    f"{row['count']:,}",
                    as_of_text(row["last_at"]),
                    row["principal"],
                    row["host"],
                    row["operation"],
                    f"{row['resourceType']}:{row['resourceName']}",
                    texts.get(row["rule_id"] or row["rule"], row["rule"]),
                )
                for row in denied
            ),
        )


def _unjudged(usage_report: UsageReport) -> Iterator[str]:
    """Yield the ACLs that are not judged, at most the first few, each with the reason."""
    rules = usage_report.rules.filter(pc.equal(usage_report.rules.column("answer"), pa.scalar(Answer.NOT_JUDGED.value)))
    if len(rules):
        yield f"{plural(len(rules), 'ACL')} {'is' if len(rules) == 1 else 'are'} not judged:"
    for row in rules.slice(0, _SHOWN_UNJUDGED).to_pylist():
        yield f"  {Answer.NOT_JUDGED.value:<14}  {_rule_text(row)}: {why_unjudged(row, usage_report)}"
    if len(rules) > _SHOWN_UNJUDGED:
        yield f"  ... and {len(rules) - _SHOWN_UNJUDGED:,} more; --format table and --format jsonl list all"


def _counted(counts: Counts) -> list[tuple[str, str]]:
    rows = [
        (counts.decided, "evaluated against the ACLs, for the verdicts below"),
        (counts.super_users, "by super users"),
        *((count, f"not decided: {text}") for text, count in counts.errors.items()),
        (counts.before_log, "not judged: the log does not reach back to the time of the access"),
        (counts.outside, "outside the window"),
        (counts.without_time, "without a timestamp"),
    ]
    decided, *others = rows
    listed = [decided, *(row for row in others if row[0]), (counts.total, "read in total")]
    return [(f"{count:,}", what) for count, what in listed]


def _answers(rules: pa.Table) -> list[tuple[str, str, str, str]]:
    answers = rules.column("answer").to_pylist()
    rows, removable = Counter(answers), Counter(compress(answers, rules.column("removable").to_pylist()))
    return [(f"{rows[each]:,}", f"{removable[each]:,}", each.value, MEANINGS[each]) for each in Answer]


# What `aclog accesses usage` prints: a summary for people, or a row for each ACL.


_SHOWN_RULES: Final = 20

USAGE_COLUMNS: Final = (
    *RULE_COLUMNS,
    Column(key="answer"),
    Column(key="matched"),
    Column(key="needed"),
    Column(key="removable"),
)
_PREMISES_COLUMN: Final = Column(key="premises", spare=True, text=", ".join)
"""If anything is unknown that could turn an answer."""


def report_usage(usage: LogUsage, output: Output) -> None:
    """Print the use of the ACLs of a source."""
    usage_report = usage.report
    # In rows the column `unread` needs the explanation that the summary has anyway.
    if output.is_rows:
        more = [UNREAD_COLUMN] if usage_report.unread else []
        more += [_PREMISES_COLUMN] if usage.row_premises() else []
        more += [Column(key=each, spare=True) for each in usage.evidence_keys()]
        output.print_rows((*USAGE_COLUMNS, *more), usage.objects())
        warn_of_unread(usage_report.unread, unjudged_text(usage_report))
        for text in evidence_notes(usage_report):
            note(text)
    else:
        for line in summary_lines(usage_report, _removable(usage_report)):
            say(printable(line))
    usage.warn()


def _removable(usage_report: UsageReport) -> Iterator[str]:
    """Yield the ACLs that can be removed, at most the first few."""
    rules = usage_report.rules.filter(usage_report.rules.column("removable"))
    if len(rules):
        # A day without any access may be one whose log is missing: then nothing is known of its accesses.
        missing = len(empty_days(usage_report))
        days = f"no accesses on {days_text(missing, usage_report)}"
        condition = f" if the log is complete ({days})" if missing else ""
        yield f"{plural(len(rules), 'ACL')} can be removed together{condition}:"
        for row in rules.slice(0, _SHOWN_RULES).to_pylist():
            yield f"  {row['answer']:<14}  {_rule_text(row)}"
        if len(rules) > _SHOWN_RULES:
            yield f"  ... and {len(rules) - _SHOWN_RULES:,} more; --format table and --format jsonl list all"
    else:
        yield "no ACL is known to be removable"


def _rule_texts(rules: pa.Table, names: AbstractSet[str]) -> dict[str, str]:
    """Return the texts of a few rules by their ids; of those without an id, by their texts in the audit log."""
    denies = rules.filter(pc.not_equal(rules.column("permissionType"), pa.scalar("ALLOW")))
    keys = pc.coalesce(denies.column("id").cast(pa.large_string()), texts_of_rules(denies))
    is_named = pc.is_in(keys, pa.array(names, pa.large_string()))
    some = zip(keys.filter(is_named).to_pylist(), denies.filter(is_named).to_pylist(), strict=True)
    return {str(key): _rule_text(row) for key, row in some}


def _rule_text(row: dict[str, Any]) -> str:
    what = f"{row['permissionType']} {row['principal']} {row['operation']}"
    removed = "" if row["in_force_to"] is None else f" (removed {as_of_text(row['in_force_to'])})"
    return f"{what} on {row['resourceType']} {row['patternType']} '{row['resourceName']}' from {row['host']}{removed}"


# The report of `aclog accesses denied`.


# A row for each attempt that is refused.


DENIED_COLUMNS: Final = (
    Column(key="principal", cut=True),
    Column(key="intent"),
    Column(key="operations", text=few),
    Column(key="resourceType", title="TYPE"),
    Column(key="resourceName", title="NAME", cut=True),
    Column(key="hosts", text=few, spare=True),
    Column(key="attempts"),
    Column(key="accesses", spare=True),
    Column(key="firstAt", title="FIRST", spare=True, text=optional_time_text),
    Column(key="lastAt", title="LAST", spare=True, text=optional_time_text),
    Column(key="missing", text=lambda rules: rules_text(rules[:FEW])),
    Column(key="denies", flows=True, text=lambda rules: rules_text(rules[:FEW])),
)


# Denials for people: by principal and what it was for, names and hosts folded, the most frequent first.


_MAX_LINES: Final = 25
_HEADER: Final = ("attempts", "principal", "intent", "denied", "from", "first", "last", "ACL to add, or why none")


@frozen(kw_only=True)
class _Line:
    """Attempts that differ in the names of resources and in hosts only are one line."""

    principal: str
    intent: str
    operations: tuple[str, ...]
    kind: str
    denies: tuple[int, ...]


def refusal_lines(tally: Refusals, attempts: Sequence[Attempt], rules: Rules, unknown: Premises) -> Iterator[str]:
    """Yield the lines; `unknown`: what could refuse more."""
    distinct = len(tally.refusals)
    yield unknown.decided(
        f"{plural(tally.refused, 'access')} denied ({plural(distinct, 'distinct request')}), {tally.allowed:,} allowed"
    )
    if not attempts:
        return
    folded: dict[_Line, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        folded[_line_of(attempt)].append(attempt)
    ordered = sorted(folded.items(), key=lambda each: -sum(one.attempts for one in each[1]))
    yield ""
    yield from aligned(_HEADER, (_cells(line, own, rules) for line, own in ordered[:_MAX_LINES]))
    if len(ordered) > _MAX_LINES:
        yield f"... and {len(ordered) - _MAX_LINES:,} more lines: --format jsonl"
    yield "an attempt: one request, or a DESCRIBE and the READ or WRITE after it"
    yield ""
    added = len({rule for attempt in attempts for rule in attempt.missing})
    overruled, without = sum(each.overruled for each in attempts), sum(each.without_rule for each in attempts)
    allowed = sum(each.accesses for each in attempts) - overruled - without
    if overruled:
        yield f"{plural(overruled, 'denied access')}: blocked by DENY ACLs, which no new ACL overrides"
    if without:
        yield f"{plural(without, 'denied access')}: no new ACL, since it would be invalid or too broad"
    if not added:
        yield "no new ALLOW ACL would allow a denied access"
        return
    noun, these = ("ACL", "that ACL") if added == 1 else ("ACLs", "these ACLs")
    yield (
        f"{added:,} new ALLOW {noun} would allow {plural(allowed, 'denied access')}; "
        f"`--out FILE` writes {these} to a file"
    )


def _line_of(attempt: Attempt) -> _Line:
    return _Line(
        principal=attempt.principal,
        intent="" if attempt.intent is None else attempt.intent.value,
        operations=tuple(operation.name for operation in attempt.operations),
        kind=attempt.resource_type.name,
        denies=attempt.denies,
    )


def _cells(line: _Line, own: Sequence[Attempt], rules: Rules) -> tuple[str, ...]:
    names = few(sorted({attempt.resource_name for attempt in own}))
    firsts = [attempt.first for attempt in own if attempt.first is not None]
    lasts = [attempt.last for attempt in own if attempt.last is not None]
    return (
        f"{sum(attempt.attempts for attempt in own):,}",
        line.principal,
        line.intent,
        f"{', '.join(line.operations)} on {line.kind} {names}",
        few(sorted({host for attempt in own for host in attempt.hosts})),
        time_text(min(firsts) // 1000) if firsts else "",
        time_text(max(lasts) // 1000) if lasts else "",
        _remedy(line, own, rules),
    )


def _remedy(line: _Line, own: Sequence[Attempt], rules: Rules) -> str:
    parts = []
    missing = {rule for attempt in own for rule in attempt.missing}
    if missing:
        names = sorted({rule.operation for rule in missing})
        operations = ", ".join(operation.name for operation in own[0].operations if operation in names)
        one = f"ALLOW {operations}: {plural(len(missing), 'rule')}"
        parts.append(acl_text(next(iter(missing))) if len(missing) == 1 else one)
    if line.denies:
        denies = blocking_denies(own[0], rules)
        more = f" and {len(denies) - 1:,} more" if len(denies) > 1 else ""
        what = "other requests" if missing else "none"
        parts.append(f"{what}: blocked by {rule_text(denies[0])}{more}")
    return "; ".join(parts) or "none: the ACL would be invalid or too broad"


# What `aclog accesses denied` prints, and the change that it writes.


NONE, DENIALS = 0, 1
"""Exit codes."""


def print_denied(denied: DeniedRequests, out: Path | None, output: Output) -> int:
    """Print the denied requests, write the change that allows them to `out`, and return the exit code.

    Raises:
        ConfigError: `out` names a file with other content. OSError: it cannot be written.

    """
    if out is not None:
        additions = denied.additions()
        state = write_change_file(out, (change_line(Action.ADD, row) for row in additions), "--out")
        note(f"{out}: {state}: {len(additions):,} additions, for --change")
    if output.is_rows:
        output.print_rows(DENIED_COLUMNS, denied.objects())
    else:
        for line in refusal_lines(denied.tally, denied.attempts, denied.rules, denied.unknown):
            say(printable(line))
    denied.warn()
    return NONE if denied.is_empty else DENIALS


# The report of `aclog accesses suggest`: suggested ACLs, proved, printed or written.


# A row for each suggested rule: the rule, and its evidence.


def _texts(values: list[str]) -> str:
    return ", ".join(values)


SUGGESTED_COLUMNS: Final = (
    *ACL_COLUMNS,
    Column(key="accesses"),
    Column(key="names", spare=True),
    Column(key="firstAt", title="FIRST", spare=True),
    Column(key="lastAt", title="LAST"),
    Column(key="intents", spare=True, text=_texts),
    Column(key="replaces", spare=True, text=lambda rules: str(len(rules))),
    Column(key="why", flows=True),
)


# The suggestion for people: by principal, the first rules, and how many more there are.


_MAX_SUGGESTIONS: Final = 40
"""Rules; and refused prefixes."""


def suggestion_lines(suggestion: Suggestion, *, now: int, explain: bool) -> Iterator[str]:
    """Yield the lines; `now` is the number of present rules."""
    rules, staying = suggestion.rules, len(suggestion.staying)
    allows = [rule for rule in rules if rule.evidence.accesses]
    prefixes = sum(rule.acl.pattern_type == PatternType.PREFIXED for rule in allows)
    suggested = plural(len(rules), "suggested rule")
    present = "the present rule" if now == 1 else f"the {now:,} present rules"
    replaced = f"{now - staying:,} of {present}" if staying else present
    others = f"; {plural(staying, 'rule')} of other principals {'stays' if staying == 1 else 'stay'}" if staying else ""
    yield f"{suggested} would replace {replaced}{others}"
    unjudged = sum(rule.why.startswith(NOT_JUDGED) for rule in rules)
    retained = len(rules) - len(allows) - unjudged
    parts = (
        (len(allows), f"{plural(len(allows), 'rule')} for logged accesses, {prefixes or 'none'} of them PREFIXED"),
        (retained, f"{plural(retained, 'rule')} kept because they deny, or because each is the last ACL of a resource"),
        (unjudged, f"{plural(unjudged, 'rule')} kept because they could not be judged"),
    )
    if rules:
        yield f"suggested: {'; '.join(text for count, text in parts if count)}"
    for principal, group in groupby(rules[:_MAX_SUGGESTIONS], key=lambda rule: rule.acl.principal):
        yield ""
        yield f"{principal}:"
        for rule in group:
            yield from _lines(rule, explain=explain)
    if len(rules) > _MAX_SUGGESTIONS:
        yield ""
        yield f"... and {len(rules) - _MAX_SUGGESTIONS:,} more rules (--format table or jsonl, or --out FILE)"
    if explain and suggestion.refused:
        yield ""
        yield "not folded:"
        for text in suggestion.refused[:_MAX_SUGGESTIONS]:
            yield f"  {text}"
        if len(suggestion.refused) > _MAX_SUGGESTIONS:
            yield f"  ... and {len(suggestion.refused) - _MAX_SUGGESTIONS:,} more"


def _lines(rule: SuggestedRule, *, explain: bool) -> Iterator[str]:
    yield f"  {acl_text(rule.acl)}"
    evidence = rule.evidence
    if evidence.accesses:
        intents = f", to {' and '.join(rule.intents)}" if rule.intents else ""
        names = f" on {rule.names:,} names" if rule.names > 1 else ""
        when = f", {shown_time(evidence.first)} to {shown_time(evidence.last)}" if evidence.first is not None else ""
        yield f"    {evidence.accesses:,} accesses{names}{when}{intents}; {_replaced(rule)}"
    if rule.why and (explain or rule.acl.permission_type != AclPermissionType.ALLOW or not evidence.accesses):
        yield f"    {rule.why}"


def _replaced(rule: SuggestedRule) -> str:
    if rule.replaces == (rule.acl,):
        return "the rule exists already"
    first, *others = (acl_text(acl) for acl in rule.replaces)
    return f"currently granted by {first}" + (f" and {len(others):,} more" if others else "")


def print_suggestion(suggested: ProvedSuggestion, flags: SuggestFlags, output: Output) -> None:
    """Print the suggested rules, or write all desired ones to --out.

    Raises:
        ConfigError: --out names a file with other content. OSError: it cannot be written.

    """
    if flags.out is not None:
        rules = [StandardAclWithId(id=None, acl=acl) for acl in suggested.suggestion.acls]
        state = write_change_file(flags.out, (json_text(rule.to_dict()) for rule in rules), "--out")
        note(f"{flags.out}: {state}: {len(rules):,} rules, the complete suggested set")
    if output.is_rows:
        output.print_rows(SUGGESTED_COLUMNS, suggested.objects())
    else:
        for line in suggestion_lines(suggested.suggestion, now=suggested.now, explain=flags.explain):
            say(printable(line))
    suggested.warn()


# What `aclog accesses simulate` prints: how many accesses change, and which.


_MAX_ROWS: Final = 10
_UNCOUNTED: Final = "-"
_SIDES: Final = ("before", "after")

FLIP_COLUMNS: Final = (
    Column(key="change"),
    Column(key="principal", cut=True),
    Column(key="host", cut=True),
    Column(key="operation"),
    Column(key="resourceType", title="TYPE"),
    Column(key="resourceName", title="NAME", cut=True),
    Column(key="count"),
    Column(key="firstAt", title="FIRST", spare=True),
    Column(key="lastAt", title="LAST"),
    Column(key="decisionBefore", spare=True),
    Column(key="ruleBefore", cut=True),
    Column(key="ruleIdBefore", spare=True),
    Column(key="decisionAfter", spare=True),
    Column(key="ruleAfter", cut=True),
    Column(key="ruleIdAfter", spare=True),
)


def report_simulation(simulation: LogSimulation, output: Output) -> int:
    """Print the accesses that two policies decide differently; return the exit code: 1 if there may be any."""
    if output.is_rows:
        output.print_rows(with_generation(FLIP_COLUMNS, simulation.simulations), simulation.objects())
    else:
        for number, (generation, own) in enumerate(simulation.simulations.items()):
            if generation is not None:
                say("\n" * (number > 0) + f"On {generation}:")
            for line in _summary(own, simulation.flips[generation], is_sure=not simulation.turning):
                say(printable(line))
    simulation.warn()
    return int(not simulation.is_same)


def _summary(simulation: Simulation, ordered: Any, *, is_sure: bool) -> Iterator[str]:
    """Yield the lines; `is_sure`: whether nothing that is unknown could change an access that is the same."""
    changes = ordered.column("change")
    rows = []
    for change in Change:
        flips = ordered.filter(pc.equal(changes, pa.scalar(change.value)))
        if len(flips) or change in {Change.GAINED, Change.LOST}:
            rows.append((f"{pc.sum(flips.column('count')).as_py() or 0:,}", f"{len(flips):,}", change.value))
    rows.append((f"{simulation.same if is_sure else 0:,}", _UNCOUNTED, "SAME"))
    unjudged = simulation.unread.total + (0 if is_sure else simulation.same)
    if simulation.unread or not is_sure:
        rows.append((f"{unjudged:,}", _UNCOUNTED, Answer.NOT_JUDGED.value))
    yield from aligned(("accesses", "distinct requests", "change"), rows)
    if not len(ordered) and is_sure and not simulation.unread:
        yield ""
        yield "no logged access would be decided differently"
    for change in Change:
        flips = ordered.filter(pc.equal(changes, pa.scalar(change.value)))
        if len(flips):
            yield ""
            yield from _most(simulation, flips, change)


def basis_text(rules: Rules, audit_text: str) -> str:
    """Return the ACL with this text of the audit log, or the text itself, such as DefaultDeny."""
    code = rules.texts.code_of(audit_text)
    return audit_text if code < 0 else _rule_text({"in_force_to": None, **rules.table.slice(code, 1).to_pylist()[0]})


def _most(simulation: Simulation, flips: Any, change: Change) -> Iterator[str]:
    header = (change.value.lower(), "principal", "host", "operation", "resource", "before", "after")
    rows = (
        (
            f"{row['count']:,}",
            *(str(row[name]) for name in ("principal", "host", "operation")),
            f"{row['resourceType']}:{row['resourceName']}",
            *(basis_text(rules, row[f"rule_{side}"]) for rules, side in zip(simulation.states, _SIDES, strict=True)),
        )
        for row in flips.slice(0, _MAX_ROWS).to_pylist()
    )
    yield from aligned(header, rows)
    if len(flips) > _MAX_ROWS:
        yield f"... and {len(flips) - _MAX_ROWS:,} more"
