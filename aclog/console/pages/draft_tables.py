"""The tables of a draft: what it changes for people, tests and lint, and its rules."""

from collections.abc import Callable, Iterator, Sequence

from aclog.analysis.lint_report.located_finding import LocatedFinding
from aclog.analysis.regions.region import Direction
from aclog.analysis.review.risk import risk
from aclog.analysis.rows.row_report import TITLES, ReportRow, row_cells
from aclog.authorizer.acl import AclOperation, ResourcePattern, ResourceType, acl_text, code_name
from aclog.authorizer.premises import Premises
from aclog.authorizer.rule_change import RuleChange
from aclog.authorizer.settings import Settings
from aclog.authorizer.unmatched import reasons_unmatched
from aclog.console.draft.draft_text import Problem
from aclog.console.draft.effect import DraftEffect
from aclog.console.draft.lint_effect import MOST_RULES, lint_effect
from aclog.console.draft.tests_effect import StatedCases, TestedCase, TestsEffect, effect_on_tests
from aclog.console.pages.asked import name_parameters, url
from aclog.console.pages.cells import PAGE_ROWS, RULE_COLUMNS, rule_cells
from aclog.console.pages.listing import pattern_text
from aclog.console.pages.page import Cell, Column, Mark, Row, Table
from aclog.metalog.errors import MetadataError
from aclog.planning.granting.sharing import Shared

_PROBLEMS = 50
"""Lines that cannot be read, of which each is told."""


def problems_table(problems: Sequence[Problem]) -> Table:
    """Return the lines that say no change."""
    return Table(
        key="problems",
        title="Lines that cannot be read",
        columns=(Column(key="line", title="Line", is_number=True), Column(key="problem", title="What is wrong")),
        rows=tuple(
            Row(key=f"{each.line} {each.text}", mark=Mark.ERROR, cells=(Cell(f"{each.line:,}"), Cell(each.text)))
            for each in problems[:_PROBLEMS]
        ),
        none="",
        total=len(problems),
        note=_cut(_PROBLEMS, len(problems)),
    )


_EFFECT_KEYS = ("change", "who", "what", "from", "before", "after", "example")


def effective_table(effect: DraftEffect, unknown: Premises) -> Table:
    """Return who gains and loses what, the riskiest first; `unknown`: what could make a difference of none."""
    reports = sorted(effect.comparison.rows(), key=risk)
    return Table(
        key="effect",
        title="Who gains and loses what",
        columns=tuple(
            Column(key=key, title=title.capitalize()) for key, title in zip(_EFFECT_KEYS, TITLES, strict=True)
        ),
        rows=tuple(map(_effect_row, reports[:PAGE_ROWS])),
        none=f"{unknown.decided('Nothing changes for anybody: every request is decided the same')}.",
        total=len(reports),
        note=_cut(PAGE_ROWS, len(reports)),
    )


def _effect_row(report: ReportRow) -> Row:
    row = report.row
    mark = Mark.GAINED if row.directions[0] is Direction.GAINED else Mark.LOST
    change, *middle, example = row_cells(report)
    asks = row.witness
    why = url(
        "/why",
        principal=asks.principal,
        operation=code_name(AclOperation, asks.operation),
        **name_parameters(ResourcePattern(resource_type=asks.resource_type, name=asks.resource_name)),
        host=asks.host,
    )
    cells = (Cell(change, mark=mark), *map(Cell, middle), Cell(example, why))
    return Row(key="\n".join((change, *middle)), cells=cells, mark=mark)


def sharing_tables(effect: DraftEffect) -> Iterator[Table]:
    """Yield who else has rules on names of the draft's prefixes, if there is anybody."""
    found = effect.sharing
    if found == ():
        return
    rows = () if found is None else tuple(map(_sharing_row, found[:PAGE_ROWS]))
    yield Table(
        key="sharing",
        title="Who else has rules on these prefixes",
        columns=(
            Column(key="prefix", title="The draft's"),
            Column(key="principal", title="Principal"),
            Column(key="patterns", title="Has rules on"),
        ),
        rows=rows,
        none="Too many rules are near to tell." if found is None else "",
        total=None if found is None else len(found),
        note=_cut(PAGE_ROWS, len(found or ())),
    )


def _sharing_row(found: Shared) -> Row:
    kind = code_name(ResourceType, found.pattern.resource_type)
    names = [pattern_text(each.name, each.pattern_type) for each in found.patterns]
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    cells = (
        Cell(f"{kind} {pattern_text(found.pattern.name, found.pattern.pattern_type)}"),
        Cell(found.principal, url("/principal", name=found.principal)),
        Cell(", ".join(names[:3]) + more),
    )
    return Row(key=repr((found.pattern, found.principal)), cells=cells)


def lint_table(effect: DraftEffect, premises: Premises) -> Table:
    """Return the findings that only one side has; `premises`: what is unknown of what decides."""
    found = lint_effect(effect, premises)
    brought, mended = ((), ()) if found is None else (found.brought, found.mended)
    rows = [*(_finding(each, is_new=True) for each in brought), *(_finding(each, is_new=False) for each in mended)]
    return Table(
        key="lint",
        title="Findings of lint that it brings or mends",
        columns=(
            Column(key="change", title="Change"),
            Column(key="lint", title="Lint"),
            Column(key="rule", title="Rule"),
            Column(key="finding", title="Finding"),
            Column(key="mend", title="Mend"),
        ),
        rows=tuple(rows[:PAGE_ROWS]),
        none="It brings none, and mends none."
        if found is not None
        else f"Not looked at: there are more than {MOST_RULES:,} rules near it; `aclog lint` looks at all.",
        total=len(rows),
        note=_cut(PAGE_ROWS, len(rows)),
    )


def _finding(found: LocatedFinding, *, is_new: bool) -> Row:
    first, *others = found.finding.rules
    rule = acl_text(first) + (f" and {len(others):,} more" if others else "")
    cells = (
        Cell("brought" if is_new else "mended", mark=Mark.ERROR if is_new else Mark.GOOD),
        Cell(f"{found.lint.id} {found.lint.name}"),
        Cell(rule),
        Cell(found.finding.lost),
        Cell(found.finding.advice if is_new else ""),
    )
    return Row(key=f"{is_new} {found.lint.id} {rule}", cells=cells, mark=Mark.ERROR if is_new else Mark.GOOD)


def tests_table(effect: DraftEffect, tests: Callable[[Settings], Sequence[StatedCases]], premises: Premises) -> Table:
    """Return the tests that are about what changes, those that turn first; or why they cannot be run."""
    none = "No test decides on anything that changes."
    try:
        found = effect_on_tests(effect, tests(effect.ground.policy.settings), premises)
    except (MetadataError, OSError) as error:
        found, none = TestsEffect(), f"The tests cannot be run: {error}"
    about = len(found.cases)
    others = "1 other decides" if found.others == 1 else f"{found.others:,} others decide"
    rest = f"{others} on nothing that changes" if found.others else ""
    return Table(
        key="tests",
        title="Tests that are about what changes",
        columns=(
            Column(key="outcome", title="Outcome"),
            Column(key="test", title="Test"),
            Column(key="expects", title="Expects"),
            Column(key="found", title="Instead"),
            Column(key="place", title="Stands in"),
        ),
        rows=tuple(map(_tested, found.cases[:PAGE_ROWS])),
        none=none,
        total=about,
        note="; ".join(part for part in (_cut(PAGE_ROWS, about), rest) if part),
    )


def _tested(found: TestedCase) -> Row:
    case, passes = found.after.case, found.after.passed
    colour = "green" if passes else "red"
    text = f"turns {colour}" if found.has_turned else f"stays {colour}"
    failure = "" if passes else found.after.failures[0].found
    mark = Mark.GOOD if passes else Mark.ERROR
    cells = (
        Cell(text, mark=mark),
        Cell(case.test),
        Cell(case.text),
        Cell(failure),
        Cell(f"{case.origin.file}:{case.origin.line}"),
    )
    return Row(key=f"{case.test} {case.text}", cells=cells, mark=mark if found.has_turned or not passes else None)


def changes_table(effect: DraftEffect) -> Table:
    """Return the changes, those that change nothing first."""
    cidr = effect.ground.policy.settings.cidr
    shown: Sequence[RuleChange] = (*effect.idle, *effect.changes)
    idle = set(effect.idle[:PAGE_ROWS])
    return Table(
        key="changes",
        title="The draft, rule by rule",
        columns=(Column(key="change", title="Change"), *RULE_COLUMNS, Column(key="note", title="Note")),
        rows=tuple(_change_row(each, is_idle=each in idle, cidr=cidr) for each in shown[:PAGE_ROWS]),
        none="",
        total=len(shown),
        note=_cut(PAGE_ROWS, len(shown)),
    )


def _change_row(change: RuleChange, *, is_idle: bool, cidr: bool) -> Row:
    notes = list(reasons_unmatched(change.acl, cidr=cidr)) if change.added else []
    if is_idle:
        notes.insert(0, "it is there already" if change.added else "there is no such rule")
    mark = Mark.ADDED if change.added else Mark.REMOVED
    cells = (
        Cell("add" if change.added else "remove", mark=mark),
        *rule_cells(change.acl),
        Cell("; ".join(notes), mark=Mark.WARNING if notes else None),
    )
    return Row(key=f"{change.added} {change.acl!r}", cells=cells, mark=Mark.WARNING if notes else mark)


def _cut(shown: int, of: int) -> str:
    return f"the first {shown:,} of {of:,}" if of > shown else ""
