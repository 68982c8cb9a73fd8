"""The report of `aclog denied`."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final

import numpy as np
from attrs import evolve, frozen

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import Action
from aclog.authorizer.premises import Premises
from aclog.authorizer.settings import Settings
from aclog.cli.answers import rule_text, rules_text
from aclog.cli.flags.commands import DeniedFlags
from aclog.cli.flags.common import AccessesFlags, Output
from aclog.cli.flags.source import SourceFlags
from aclog.cli.transfer.output import write_change_file
from aclog.metalog.errors import ConfigError, plural, printable
from aclog.ops.policies import read_premises
from aclog.ops.usage import AccessLog, Judging, warn_of_rejects, warn_of_unread
from aclog.sources.acl_lines import change_line
from aclog.terminal.columns import Column, Row
from aclog.terminal.output import note, say, time_text, warn
from aclog.terminal.tables import aligned
from aclog.usage.decisions.intervals import Rules
from aclog.usage.denied import Attempt, Refusals, attempts_of, refusals
from aclog.usage.window import UnreadAccesses

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


def text_lines(tally: Refusals, attempts: Sequence[Attempt], rules: Rules, unknown: Premises) -> Iterator[str]:
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
        for line in text_lines(tally, attempts, rules, unknown):
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
