"""Denials for people: by principal and what it was for, names and hosts folded, the most frequent first."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from attrs import frozen

from aclog.authorizer.premises import Premises
from aclog.cli.denied.rows import deny_rows, few
from aclog.cli.region_columns import rule_text
from aclog.terminal.table import aligned
from aclog.terminal.timestamps import time_text
from aclog.usage.decisions.rules import Rules
from aclog.usage.denied.attempts import Attempt
from aclog.usage.denied.refusals import Refusals

_SHOWN: Final = 25
_HEADER: Final = ("attempts", "principal", "for", "refused", "from", "first", "last", "would allow it")


@frozen(kw_only=True)
class _Line:
    """Attempts that differ in the names of resources and in hosts only are one line."""

    principal: str
    intent: str
    operations: tuple[str, ...]
    kind: str
    denies: tuple[int, ...]


def text_lines(found: Refusals, attempts: Sequence[Attempt], rules: Rules, unknown: Premises) -> Iterator[str]:
    """Yield the lines; `unknown`: what could refuse more."""
    distinct = len(found.found)
    yield unknown.decided(f"{found.refused:,} accesses refused ({distinct:,} distinct), {found.allowed:,} allowed")
    if not attempts:
        return
    folded: dict[_Line, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        folded[_line_of(attempt)].append(attempt)
    ordered = sorted(folded.items(), key=lambda each: -sum(one.attempts for one in each[1]))
    yield ""
    yield from aligned(_HEADER, (_cells(line, own, rules) for line, own in ordered[:_SHOWN]))
    if len(ordered) > _SHOWN:
        yield f"... and {len(ordered) - _SHOWN:,} more lines: --format jsonl"
    yield ""
    added = len({rule for attempt in attempts for rule in attempt.missing})
    yield f"{added:,} added rules would allow what no DENY is in the way of; `--out FILE` writes them"


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
        parts.append(f"in the way: {rule_text(denies[0])}{more}")
    missing = {rule for attempt in own for rule in attempt.missing}
    if missing:
        names = sorted({rule.operation for rule in missing})
        operations = ", ".join(operation.name for operation in own[0].operations if operation in names)
        parts.append(f"ALLOW {operations}: {len(missing):,} rule{'s' if len(missing) > 1 else ''}")
    return "; ".join(parts) or "no rule for this resource alone"
