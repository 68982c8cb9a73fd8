"""Reports of `aclog usage`, `denied`, `suggest` and `simulate`."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, timedelta
from itertools import compress, groupby
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, frozen

from aclog.analysis.policy import generation_object, merged
from aclog.authorizer.acl import AclPermissionType, PatternType, StandardAcl, StandardAclWithId, acl_text
from aclog.authorizer.acls_image import Action
from aclog.authorizer.settings import SUPER_USERS_CONFIG, Generation, GenerationPair, Settings
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.cli.answers import rule_text, rules_text, with_generation
from aclog.cli.diff_report import SideFlags
from aclog.cli.flags.commands import DeniedFlags, SuggestFlags
from aclog.cli.flags.common import AccessesFlags, Output, SourceFlags, WindowFlags
from aclog.cli.images import ACL_COLUMNS, RULE_COLUMNS
from aclog.cli.transfer.output import write_change_file
from aclog.metalog.errors import ConfigError, plural, printable
from aclog.ops.policies import Sides, existing_topics, read_premises, refuse_unless_known
from aclog.ops.usage import AccessLog, Judging, warn_of_rejects, warn_of_unread
from aclog.snapshots.image import Image
from aclog.sources.acl_lines import change_line
from aclog.terminal.columns import Column, Row, json_text
from aclog.terminal.notices import progress
from aclog.terminal.output import note, say, shown_zone, time_text, warn
from aclog.terminal.tables import aligned
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.decisions.intervals import Rules
from aclog.usage.denied import Attempt, Refusals, attempts_of, refusals
from aclog.usage.judging import CountedLog, Each, UsageReport, report
from aclog.usage.simulation import Change, Simulation
from aclog.usage.simulation import simulate as simulate_changes
from aclog.usage.suggestion import NOT_JUDGED, Needs, Question, SuggestedRule, Suggestion, prove
from aclog.usage.suggestion import suggest as suggest_acls
from aclog.usage.unused import Answer
from aclog.usage.window import Counts, UnreadAccesses, Window, of_micros, unread_text

# The report of `aclog usage`.


# The summary of a usage report, as `aclog usage` and `aclog spark usage` print it.


SHOWN_DENIED: Final = 10
_SHOWN_HOLES: Final = 5


def summary_lines(usage_report: UsageReport, after: Iterable[str]) -> Iterator[str]:
    """Yield the summary for people: what was read, how many ACLs have which answer, `after`, and what was denied."""
    days = (usage_report.window.until - usage_report.window.start).days
    yield f"window of {days} days: {as_of_text(usage_report.window.start)} to {as_of_text(usage_report.window.until)}"
    yield ""
    yield from aligned(("accesses", "status"), _counted(usage_report.counts))
    yield ""
    yield from aligned(("ACLs", "removable", "verdict", "meaning"), _answers(usage_report.rules))
    yield ""
    if usage_report.unread:
        yield f"{unread_text(usage_report.unread)}: {unjudged_text(usage_report)}"
        yield ""
    yield from after
    denied = usage_report.denied.slice(0, SHOWN_DENIED).to_pylist()
    if denied:
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
                    row["rule_id"] or row["rule"],
                )
                for row in denied
            ),
        )


def unjudged_text(usage_report: UsageReport) -> str:
    """Return how many ACLs are not judged for accesses that could not be read or decided."""
    rows = zip(
        usage_report.rules.column("unread").to_pylist(), usage_report.rules.column("answer").to_pylist(), strict=True
    )
    unjudged = sum(bool(unread) and answer == Answer.NOT_JUDGED for unread, answer in rows)
    return f"{unjudged:,} ACLs that they may need are {Answer.NOT_JUDGED}"


def _counted(counts: Counts) -> list[tuple[str, str]]:
    rows = [
        (counts.decided, "evaluated against the ACLs, for the verdicts below"),
        (counts.super_users, "by super users"),
        *((count, f"not decided: {text}") for text, count in counts.errors.items()),
        (counts.before_log, "not judged: the log does not reach back to the time of the access"),
        (counts.outside, "outside the window"),
        (counts.without_time, "without a timestamp"),
    ]
    first, *others = [(f"{count:,}", what) for count, what in rows if count or what.startswith("decided")]
    return [first, *others, (f"{counts.total:,}", "total")]


_MEANINGS: Final = {
    Answer.NEVER_MATCHED: "no access matched the ACL",
    Answer.NEVER_NEEDED: "every access would be decided the same without it",
    Answer.NEEDED: "an access would be decided differently without it",
    Answer.NOT_JUDGED: "in force for only a part of the window, or an unreadable access may need it",
}


def _answers(rules: pa.Table) -> list[tuple[str, str, str, str]]:
    answers = rules.column("answer").to_pylist()
    rows, removable = Counter(answers), Counter(compress(answers, rules.column("removable").to_pylist()))
    return [(f"{rows[each]:,}", f"{removable[each]:,}", each.value, _MEANINGS[each]) for each in Answer]


def warn_of_gaps(usage_report: UsageReport) -> None:
    """Warn of what the report does not know: when the ACLs were in force, and days without any access."""
    if not usage_report.has_times:
        note("the source has no times: all of its ACLs are assumed to be in force in the whole window")
    holes = [day for day in usage_report.holes.column("day").to_pylist() if day is not None]
    if holes:
        ranges = list(_ranges(holes))
        more = f" and {len(ranges) - _SHOWN_HOLES:,} more ranges" if len(ranges) > _SHOWN_HOLES else ""
        text = ", ".join(ranges[:_SHOWN_HOLES]) + more
        warn(
            f"no accesses on {len(holes):,} of {len(usage_report.window.days):,} calendar days ({text}): "
            "the cluster was idle, or the log is incomplete"
        )


def _ranges(days: list[date]) -> Iterator[str]:
    # consecutive days minus their place in the list are all the same day
    for _, together in groupby(enumerate(days), lambda pair: pair[1] - timedelta(days=pair[0])):
        run = [day for _, day in together]
        yield str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}"


def as_of_text(time: datetime) -> str:
    """Return a time in the form that --as-of accepts, in the zone that is shown."""
    local = time.astimezone(shown_zone())
    return local.isoformat(timespec="seconds").replace("+00:00", "Z")


# What `aclog usage` prints: a summary for people, or a row for each ACL.


_SHOWN_RULES: Final = 20

USAGE_COLUMNS: Final = (
    *RULE_COLUMNS,
    Column(key="answer"),
    Column(key="matched"),
    Column(key="needed"),
    Column(key="removable"),
)
UNREAD_COLUMN: Final = Column(key="unread", spare=True)
"""If there is anything that could not be read or decided."""


def report_usage(
    source: SourceFlags,
    flags: AccessesFlags,
    window: WindowFlags,
    settings: Settings,
    output: Output,
    *,
    configs: AbstractSet[str] = frozenset(),
) -> None:
    """Print the usage of the ACLs of a source.

    `configs`: the properties of brokers whose values `settings` has.

    Raises:
        MetadataError, OSError: the log or the source cannot be read.

    """
    until = window.end()
    log = AccessLog.of(flags)
    choice = source.choose()
    judging = Judging.of(choice, settings)
    unknown = read_premises(choice, configs).without({SUPER_USERS_CONFIG})
    counted, judged = log.count_window(judging, window.days, until)
    usage_report = report(counted.accesses, judged, counted.rows, counted.days, top=SHOWN_DENIED, unread=counted.unread)
    if unknown:
        usage_report = usage_report.without_proof()
    if output.is_rows:
        columns = (*USAGE_COLUMNS, UNREAD_COLUMN) if usage_report.unread else USAGE_COLUMNS
        output.print_rows(columns, _rows(usage_report, [column.key for column in columns]))
        warn_of_unread(usage_report.unread, unjudged_text(usage_report))
    else:
        for line in summary_lines(usage_report, _removable(usage_report)):
            say(printable(line))
    warn_of_gaps(usage_report)
    warn_of_rejects(counted.rejects)


def _removable(usage_report: UsageReport) -> Iterator[str]:
    """Yield the ACLs that can be removed, at most the first few."""
    rules = usage_report.rules.filter(usage_report.rules.column("removable"))
    if len(rules):
        yield f"{len(rules):,} ACLs can be removed together:"
        for row in rules.slice(0, _SHOWN_RULES).to_pylist():
            yield f"  {row['answer']:<14}  {_rule_text(row)}"
        if len(rules) > _SHOWN_RULES:
            yield f"  ... and {len(rules) - _SHOWN_RULES:,} more (--format table or jsonl)"
    else:
        yield "no ACL is known to be removable"


def _rule_text(row: dict[str, Any]) -> str:
    what = f"{row['permissionType']} {row['principal']} {row['operation']}"
    return f"{what} on {row['resourceType']} {row['patternType']} '{row['resourceName']}' from {row['host']}"


def _rows(usage_report: UsageReport, keys: list[str]) -> Iterator[Row]:
    for batch in usage_report.rules.select(keys).to_batches(max_chunksize=1 << 14):
        yield from batch.to_pylist()


# The report of `aclog denied`.


# A row for each attempt that is refused.


_FEW: Final = 3


def few(texts: Sequence[str]) -> str:
    """Return the first of some texts, and how many more there are."""
    more = f" and {len(texts) - _FEW:,} more" if len(texts) > _FEW else ""
    return ", ".join(texts[:_FEW]) + more


DENIED_COLUMNS: Final = (
    Column(key="principal", cut=True),
    Column(key="intent"),
    Column(key="operations", text=few),
    Column(key="resourceType", title="TYPE"),
    Column(key="resourceName", title="NAME", cut=True),
    Column(key="hosts", text=few, spare=True),
    Column(key="attempts"),
    Column(key="accesses", spare=True),
    Column(key="firstAt", title="FIRST", spare=True, text=lambda time: "" if time is None else time_text(time)),
    Column(key="lastAt", title="LAST", spare=True, text=lambda time: "" if time is None else time_text(time)),
    Column(key="missing", text=lambda rules: rules_text(rules[:_FEW])),
    Column(key="denies", flows=True, text=lambda rules: rules_text(rules[:_FEW])),
)


def denied_row(attempt: Attempt, rules: Rules) -> Row:
    """Return the row; times are in ms since 1970."""
    return {
        "principal": attempt.principal,
        "intent": None if attempt.intent is None else attempt.intent.value,
        "operations": [operation.name for operation in attempt.operations],
        "resourceType": attempt.resource_type.name,
        "resourceName": attempt.resource_name,
        "hosts": list(attempt.hosts),
        "attempts": attempt.attempts,
        "accesses": attempt.accesses,
        "firstAt": None if attempt.first is None else attempt.first // 1000,
        "lastAt": None if attempt.last is None else attempt.last // 1000,
        "missing": [missing_row(rule) for rule in attempt.missing],
        "denies": deny_rows(attempt, rules),
    }


def missing_row(rule: StandardAcl) -> dict[str, Any]:
    """Return a rule that is not there yet, so that it has no id."""
    row: dict[str, Any] = {**StandardAclWithId(id=None, acl=rule).to_dict()}
    del row["id"]
    return row


def deny_rows(attempt: Attempt, rules: Rules) -> list[dict[str, Any]]:
    """Return the DENY rules that block an attempt."""
    rows: list[dict[str, Any]] = rules.table.take(np.array(attempt.denies, np.int64)).to_pylist()
    return rows


# Denials for people: by principal and what it was for, names and hosts folded, the most frequent first.


_MAX_LINES: Final = 25
_HEADER: Final = ("attempts", "principal", "for", "denied", "from", "first", "last", "allowed by")


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
    yield unknown.decided(f"{tally.refused:,} accesses denied ({distinct:,} distinct), {tally.allowed:,} allowed")
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
    yield ""
    added = len({rule for attempt in attempts for rule in attempt.missing})
    yield f"{plural(added, 'rule')} would allow everything not blocked by a DENY; `--out FILE` writes the change"


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
        _mend(line, own, rules),
    )


def _mend(line: _Line, own: Sequence[Attempt], rules: Rules) -> str:
    parts = []
    if line.denies:
        denies = deny_rows(own[0], rules)
        more = f" and {len(denies) - 1:,} more" if len(denies) > 1 else ""
        parts.append(f"blocked by: {rule_text(denies[0])}{more}")
    missing = {rule for attempt in own for rule in attempt.missing}
    if missing:
        names = sorted({rule.operation for rule in missing})
        operations = ", ".join(operation.name for operation in own[0].operations if operation in names)
        parts.append(f"ALLOW {operations}: {len(missing):,} rule{'s' if len(missing) > 1 else ''}")
    return "; ".join(parts) or "no rule for this resource alone"


# What `aclog denied` prints, and the change that it writes.


NONE, DENIALS = 0, 1
"""Exit codes."""
_NO_ACCESS: Final = "--accesses: no line is an access: expected one at least"


def print_denied(
    source: SourceFlags,
    accesses: AccessesFlags,
    settings: Settings,
    flags: DeniedFlags,
    output: Output,
    *,
    configs: AbstractSet[str] = frozenset(),
) -> int:
    """Print the denied requests, and return the exit code.

    `configs`: the properties of brokers whose values `settings` has. Reports unknown settings that could refuse more.

    Raises:
        ConfigError: no line of the log is an access; `--out` names a file with other content.
        MetadataError, OSError: the log or the source cannot be read.

    """
    log = AccessLog.of(accesses)
    choice = source.choose()
    image = choice.image()
    judging = Judging.of_state(image, settings)
    rules, settings = judging.rules, judging.settings
    unknown = read_premises(choice, configs).turning(allowed=True)
    counted = log.count(judging.how(None, timeless=True))
    warn_of_rejects(counted.rejects)
    if not len(counted.accesses):
        raise ConfigError(_NO_ACCESS)
    unread = counted.unread.but_of(settings.super_users).may_be_refusals()
    tally = _of_principals(refusals(counted.accesses, rules, settings), flags.principal)
    attempts = attempts_of(tally.refusals, any_host=flags.any_host)
    if flags.out is not None:
        _write_change(flags.out, attempts)
    if output.is_rows:
        output.print_rows(DENIED_COLUMNS, (denied_row(attempt, rules) for attempt in attempts))
    else:
        for line in refusal_lines(tally, attempts, rules, unknown):
            say(printable(line))
    if tally.undecided:
        warn(f"{tally.undecided:,} accesses cannot be decided, such as those whose host is no address")
    unread = UnreadAccesses.sum_of((unread, tally.unread))
    if flags.principal:
        unread = unread.of_principals(flags.principal)
    warn_of_unread(unread, "more may be refused than is listed")
    return DENIALS if attempts or unread or unknown else NONE


def _of_principals(tally: Refusals, principals: Sequence[str]) -> Refusals:
    if not principals:
        return tally
    entries = tuple(each for each in tally.refusals if each.access.principal in principals)
    return evolve(tally, refusals=entries, refused=sum(each.count for each in entries))


def _write_change(path: Path, attempts: Sequence[Attempt]) -> None:
    rules = sorted({rule for attempt in attempts for rule in attempt.missing}, key=_order)
    lines = (change_line(Action.ADD, missing_row(rule)) for rule in rules)
    state = write_change_file(path, lines, "--out")
    note(f"{path}: {state}: {len(rules):,} additions, for --change")


def _order(rule: StandardAcl) -> tuple[str, ...]:
    return tuple(map(str, missing_row(rule).values()))


# The report of `aclog suggest`: suggested ACLs, proved, printed or written.


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


def suggested_rows(suggestion: Suggestion) -> Iterator[Row]:
    """Return the rows."""
    return map(_row, suggestion.rules)


def _row(rule: SuggestedRule) -> Row:
    evidence = rule.evidence
    plain = StandardAclWithId(id=None, acl=rule.acl).to_dict()
    return {
        **{column.key: plain[column.key] for column in ACL_COLUMNS},
        "accesses": evidence.accesses,
        "names": rule.names,
        "firstAt": shown_time(evidence.first),
        "lastAt": shown_time(evidence.last),
        "intents": [intent.value for intent in rule.intents],
        "replaces": [_plain(StandardAclWithId(id=None, acl=acl)) for acl in rule.replaces],
        "why": rule.why or None,
    }


def _plain(rule: StandardAclWithId) -> dict[str, str | None]:
    row = rule.to_dict()
    return {column.key: row[column.key] for column in ACL_COLUMNS}


def shown_time(micros: int | None) -> str | None:
    """Return a time in us since 1970 as text."""
    return None if micros is None else as_of_text(of_micros(micros))


# The suggestion for people: by principal, the first rules, and how many more there are.


_MAX_SUGGESTIONS: Final = 40
"""Rules; and refused prefixes."""


def suggestion_lines(suggestion: Suggestion, *, now: int, explain: bool) -> Iterator[str]:
    """Yield the lines; `now` is the number of present rules."""
    rules, staying = suggestion.rules, len(suggestion.staying)
    allows = [rule for rule in rules if rule.evidence.accesses]
    prefixes = sum(rule.acl.pattern_type == PatternType.PREFIXED for rule in allows)
    stays = f", and {staying:,} unchanged rules of other principals" if staying else ""
    yield f"{len(rules) + staying:,} rules instead of {now:,}: {len(rules):,} suggested{stays}"
    unjudged = sum(rule.why.startswith(NOT_JUDGED) for rule in rules)
    others = f"; {unjudged:,} could not be judged" if unjudged else ""
    yield (
        f"{len(allows):,} suggested rules allow logged accesses, {prefixes:,} of them PREFIXED; "
        f"{len(rules) - len(allows) - unjudged:,} are kept because they deny, or as the last ACL of a resource{others}"
    )
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
        intents = f"{', '.join(rule.intents)}: " if rule.intents else ""
        names = f" on {rule.names:,} names" if rule.names > 1 else ""
        when = f", {shown_time(evidence.first)} to {shown_time(evidence.last)}" if evidence.first is not None else ""
        yield f"    {intents}{evidence.accesses:,} accesses{names}{when}; {_replaced(rule)}"
    if rule.why and (explain or rule.acl.permission_type != AclPermissionType.ALLOW or not evidence.accesses):
        yield f"    {rule.why}"


def _replaced(rule: SuggestedRule) -> str:
    if rule.replaces == (rule.acl,):
        return "the rule exists already"
    first, *others = (acl_text(acl) for acl in rule.replaces)
    return f"currently granted by {first}" + (f" and {len(others):,} more" if others else "")


# Suggests rules, proves them, and prints or writes them.


@frozen(eq=False, kw_only=True)
class SuggestReport:
    """A suggestion, and what it was made of."""

    suggestion: Suggestion
    now: int
    """The number of present rules."""
    needs: Needs
    replayed: int
    """Accesses that were decided again, as often as they were made."""
    window: Window
    unread: UnreadAccesses
    """Of the window: not in the proof."""


def print_suggestion(
    source: SourceFlags,
    log: tuple[AccessesFlags, WindowFlags],
    settings: Settings,
    flags: SuggestFlags,
    output: Output,
    each: Each | None = None,
    *,
    configs: AbstractSet[str] = frozenset(),
) -> None:
    """Print the least rules that keep what was used, once they are proved.

    `each` reads and counts the log, by default processes of this machine. `configs`: the properties of brokers whose
    values `settings` has.

    Raises:
        SuggestionError: they are not sound; nothing is printed.
        ConfigError: flags that are not valid, a malformed file, or what decides is unknown, so that nothing is proved.
        MetadataError, OSError: the log or the source cannot be read.

    """
    least, until, topics = flags.least(), log[1].end(), source.topics()
    access_log = AccessLog.of(log[0], each)
    choice = source.choose(topics=topics)
    image = choice.image()
    refuse_unless_known(read_premises(choice, configs), "no rule can be proved to be enough")
    judging = Judging.of_state(image, settings)
    kafka = judging.rules.intervals.kafka
    settings = judging.settings if kafka is None else judging.settings.of_generation(Generation.V4_4)
    acls = image.acls.with_options(documented=settings.documented, cidr=settings.cidr)
    counted, judged = access_log.count_window(judging, log[1].days, until)
    exist = existing_topics(topics, (image,), (choice,))
    principals = frozenset(flags.principal)
    _check_principals(principals, image)
    with progress("suggesting"):
        needs = Needs.of(counted.accesses, judging.rules, judging.settings)
        unread = UnreadAccesses.sum_of((judged.unread(counted.unread), needs.undecided))
        question = Question(
            settings=settings,
            fold=least,
            principals=principals,
            topics=frozenset() if exist is None else frozenset(exist),
            unread=unread,
            ranges_allow=kafka is None,
        )
        suggestion = suggest_acls(needs, [rule.acl for rule in acls], question)
    with progress("proving"):
        deciding = (settings,) if kafka is None else tuple(map(settings.of_generation, Generation))
        proof, *_ = [prove(image.acls, suggestion.acls, counted.accesses, one) for one in deciding]
    report = SuggestReport(
        suggestion=suggestion, now=len(acls), needs=needs, replayed=proof.replayed, window=judged.window, unread=unread
    )
    if flags.out is not None:
        _write(flags.out, suggestion)
    _print(report, flags, output)
    _warn(counted)


def _check_principals(principals: frozenset[str], image: Image) -> None:
    for principal in sorted(principals - image.acls.principals()):
        warn(f"--principal {principal}: no rule is for it")


def _print(report: SuggestReport, flags: SuggestFlags, output: Output) -> None:
    if output.is_rows:
        output.print_rows(SUGGESTED_COLUMNS, suggested_rows(report.suggestion))
    else:
        for line in suggestion_lines(report.suggestion, now=report.now, explain=flags.explain):
            say(printable(line))
    denied = report.needs.denied
    if report.unread:
        decided = report.replayed - report.needs.undecided.total
        warn(
            f"{unread_text(report.unread)}: the rules that they may need stay, not judged; of the other {decided:,} "
            f"accesses {decided - denied:,} stay allowed and {denied:,} stay denied; no request that is denied now "
            "becomes allowed"
        )
        return
    note(
        f"proved: of all {report.replayed:,} accesses {report.replayed - denied:,} stay allowed and {denied:,} stay "
        "denied; no request that is denied now becomes allowed"
    )


def _warn(counted: CountedLog) -> None:
    if counted.rows.without_time:
        warn(f"{counted.rows.without_time:,} accesses have no timestamp: the suggestion does not count them")
    warn_of_rejects(counted.rejects)


def _write(path: Path, suggestion: Suggestion) -> None:
    rules = [StandardAclWithId(id=None, acl=acl) for acl in suggestion.acls]
    state = write_change_file(path, (json_text(rule.to_dict()) for rule in rules), "--out")
    note(f"{path}: {state}: {len(rules):,} rules, all that are wanted")


# What `aclog simulate` prints: how many accesses change, and which.


_MAX_ROWS: Final = 10

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


def report_simulation(flags: SideFlags, accesses: AccessesFlags, output: Output) -> int:
    """Print the accesses that two policies decide differently, and return the exit code: 1 if there are any, or may be.

    Raises:
        MetadataError, OSError: the log or a source cannot be read.

    """
    flags.check({})
    log = AccessLog.of(accesses)
    each = flags.states().read_each()
    one = next(iter(each.values()))
    judging = Judging(rules=Rules.of_image(one.old.acls), settings=one.old.settings, own_time=False)
    counted = log.count(judging.how(None, timeless=True))
    simulations = {generation: _simulated(counted, sides) for generation, sides in each.items()}
    flips = any(len(own.flips) for own in simulations.values())

    def differs_when_open() -> bool:
        """Decide the accesses once more."""
        return any(len(_simulated(counted, sides, is_open=True).flips) for sides in each.values())

    turning = ALL_KNOWN if flips else one.premises.turning(None, differs_when_open)
    ordered = {generation: _ordered(own) for generation, own in simulations.items()}
    if output.is_rows:
        output.print_rows(with_generation(FLIP_COLUMNS, simulations), _change_rows(ordered))
    else:
        for number, (generation, own) in enumerate(simulations.items()):
            if generation is not None:
                say("\n" * (number > 0) + f"On {generation}:")
            for line in _summary(own, ordered[generation], is_sure=not turning):
                say(printable(line))
    warn_of_rejects(counted.rejects)
    unread = next((own.unread for own in simulations.values() if own.unread), UnreadAccesses())
    warn_of_unread(unread, "rules change that they may need, so that they may be decided differently")
    if turning:
        warn(turning.decided("every access is decided the same"))
    return int(bool(flips or unread or turning))


def _simulated(counted: CountedLog, sides: Sides, *, is_open: bool = False) -> Simulation:
    """Decide the accesses by both sides; `is_open`: as if what no rule covers were open to everyone."""
    before, after = (
        (Rules.of_image(policy.acls), evolve(policy.settings, allow_everyone=is_open or policy.settings.allow_everyone))
        for policy in (sides.old, sides.new)
    )
    simulation = simulate_changes(counted.accesses, before, after, counted.unread)
    return simulation.by_controllers() if sides.only_controllers else simulation


def _ordered(simulation: Simulation) -> Any:
    return simulation.flips.sort_by([("count", "descending"), *((name, "ascending") for name in REQUEST_COLUMNS)])


def _change_rows(ordered: Mapping[Generation | GenerationPair | None, Any]) -> Iterator[Row]:
    """Yield the rows of all generations of Kafka that may decide; what only one decides so is marked."""
    rows = {generation: map(_change_row, flips.to_pylist()) for generation, flips in ordered.items()}
    for row, only in merged(rows, json_text):
        yield {**row, **generation_object(only)}


def _change_row(flip: dict[str, Any]) -> Row:
    row = {name: flip[name] for name in ("change", *REQUEST_COLUMNS, "count")}
    for key, name in (("firstAt", "first_at"), ("lastAt", "last_at")):
        row[key] = None if flip[name] is None else as_of_text(flip[name])
    for side in ("Before", "After"):
        for key, name in (("decision", "decision"), ("rule", "rule"), ("ruleId", "rule_id")):
            row[f"{key}{side}"] = flip[f"{name}_{side.lower()}"]
    return row


def _summary(simulation: Simulation, ordered: Any, *, is_sure: bool) -> Iterator[str]:
    """Yield the lines; `is_sure`: whether nothing that is unknown could change an access that is the same."""
    changes = ordered.column("change")
    rows = []
    for change in Change:
        flips = ordered.filter(pc.equal(changes, pa.scalar(change.value)))
        if len(flips) or change in {Change.GAINED, Change.LOST}:
            rows.append((f"{pc.sum(flips.column('count')).as_py() or 0:,}", f"{len(flips):,}", change.value))
    rows.append((f"{simulation.same if is_sure else 0:,}", "", "SAME"))
    unjudged = simulation.unread.total + (0 if is_sure else simulation.same)
    if simulation.unread or not is_sure:
        rows.append((f"{unjudged:,}", "", Answer.NOT_JUDGED.value))
    yield from aligned(("accesses", "distinct requests", "change"), rows)
    for change in Change:
        flips = ordered.filter(pc.equal(changes, pa.scalar(change.value)))
        if len(flips):
            yield ""
            yield from _most(flips, change)


def _most(flips: Any, change: Change) -> Iterator[str]:
    header = (change.value.lower(), "principal", "host", "operation", "resource", "before", "after")
    rows = (
        (
            f"{row['count']:,}",
            *(str(row[name]) for name in ("principal", "host", "operation")),
            f"{row['resourceType']}:{row['resourceName']}",
            row["rule_id_before"] or row["rule_before"],
            row["rule_id_after"] or row["rule_after"],
        )
        for row in flips.slice(0, _MAX_ROWS).to_pylist()
    )
    yield from aligned(header, rows)
    if len(flips) > _MAX_ROWS:
        yield f"... and {len(flips) - _MAX_ROWS:,} more"
