"""The pages of a draft and of its plan."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from attrs import frozen

from aclog.analysis.comparison import turning_same
from aclog.analysis.lint_report import LocatedFinding
from aclog.analysis.regions import Direction
from aclog.analysis.review.review import risk
from aclog.analysis.rows.report import TITLES, ReportRow, row_cells
from aclog.analysis.who_can import Intent
from aclog.authorizer.acl import (
    AclOperation,
    ResourcePattern,
    ResourceType,
    acl_text,
    code_name,
    object_of_rule,
    reasons_unmatched,
)
from aclog.authorizer.acls_image import Action, RuleChange
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.settings import Settings
from aclog.console.draft import (
    INTENTS,
    MOST_BYTES,
    MOST_CHANGES,
    MOST_RULES,
    Applied,
    DraftEffect,
    DraftPlan,
    DraftText,
    Editing,
    Ownership,
    Problem,
    StatedCases,
    TestedCase,
    TestsEffect,
    effect_on_tests,
    lint_effect,
    read_draft,
)
from aclog.console.pages.page import (
    PAGE_ROWS,
    PRINCIPALS,
    RULE_COLUMNS,
    Asked,
    BadAskedError,
    Button,
    Cell,
    Column,
    Facts,
    Field,
    File,
    Form,
    Kind,
    Lines,
    Links,
    Mark,
    Notice,
    Page,
    Part,
    Row,
    Table,
    name_parameters,
    rule_cells,
    url,
)
from aclog.console.pages.states import Console, pattern_text
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.planning.granting import Shared
from aclog.planning.plan import plan_lines, stage_of
from aclog.sources.acl_lines import change_line

# The tables of a draft: what it changes for people, tests and lint, and its rules.


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


# The page of a draft: rules typed or opened, and what they would change for people, tests and lint.


DRAFT_PATH = "/draft"
OWNERSHIP = ("adopt", "max_deletes")
"""The fields that say what a plan may do."""
_EXAMPLE = "+ ALLOW User:shop READ on TOPIC PREFIXED 'ord' from *"


@frozen(eq=False, slots=False, kw_only=True)
class Draft:
    """A draft that was asked for, read."""

    text: str
    read: DraftText
    effect: DraftEffect
    premises: Premises
    """What decides and is unknown."""
    asked: dict[str, str]
    """The parameters that lead to it."""

    @cached_property
    def turning(self) -> Premises:
        """What is unknown and could make a difference of an effect without any; nothing if no rule changes."""
        return turning_same(self.premises, self.effect.comparison) if self.effect.changes else ALL_KNOWN

    def url(self, **more: object) -> str:
        """Return its address, with more parameters."""
        return url(DRAFT_PATH, **self.asked, **more)


def draft_of(console: Console, asked: Asked) -> Draft:
    """Return the draft that an address names, beside the newest state.

    Raises:
        BadAskedError: it is too large, or forgotten.

    """
    known = asked.word("id")
    text = asked.text("rules")
    if known:
        kept = console.drafts.texts.get(known)
        if kept is None:
            raise ForgottenError(
                "this draft is forgotten: the console keeps a few large ones, and none when it ends: open its file, or "
                "type it, again"
            )
        text = kept
    return drafted(console, text, {"id": known} if known else {"rules": text})


class ForgottenError(BadAskedError):
    """A draft that is no longer kept."""


def drafted(console: Console, text: str, asked: dict[str, str]) -> Draft:
    """Return a draft. Raises BadAskedError: it is too large, or no text."""
    state = console.states.now()
    try:
        text.encode()
        read = read_draft(text, cidr=state.policy.settings.cidr)
    except UnicodeEncodeError as error:
        raise BadAskedError(f"character {error.start + 1} of the draft is no Unicode character") from error
    except ConfigError as error:
        raise BadAskedError(str(error)) from error
    ground = console.drafts.grounds.of(state.policy)
    effect = DraftEffect(ground=ground, asked=read.changes, origins=console.origins)
    return Draft(text=text, read=read, effect=effect, premises=state.premises, asked=asked)


def draft_page(console: Console, asked: Asked) -> Page:
    """Return what a draft would change. Raises BadAskedError: it is too large."""
    offset = console.states.now().offset
    trouble: tuple[Notice, ...] = ()
    try:
        draft = draft_of(console, asked)
    except ForgottenError as error:
        draft, trouble = drafted(console, "", {}), (Notice(text=str(error), mark=Mark.ERROR),)
    form = _form(console, draft, asked)
    if not draft.read.changes and not draft.read.problems:
        answer = "" if trouble else f"What would a change give? Type rules, one a line, such as {_EXAMPLE}"
        return Page(
            path=DRAFT_PATH,
            title="A draft",
            answer=answer,
            parts=(form,),
            notices=trouble,
            offset=offset,
            is_settled=not trouble,  # what is forgotten may be sent again
        )
    effect = draft.effect
    return Page(
        path=DRAFT_PATH,
        title="A draft",
        answer=_answer(draft),
        mark=None if effect.comparison.differences else Mark.QUIET,
        command=console.command.of("diff", "--change", "CHANGE"),
        parts=(form, *_parts(console, draft, asked)),
        notices=(*trouble, *_notices(draft)),
        offset=offset,
        data=tuple(effect.comparison.json_lines()) if asked.word("format") == "json" else (),
    )


def change_file(console: Console, asked: Asked) -> File:
    """Return a draft as the file of a change. Raises BadAskedError: a line cannot be read, or nothing changes."""
    draft = whole(draft_of(console, asked))
    ordered = sorted(draft.effect.changes, key=lambda each: stage_of(each.acl, added=each.added))
    lines = (change_line(Action.ADD if each.added else Action.REMOVE, object_of_rule(each.acl)) for each in ordered)
    return File(name="change.jsonl", content="".join(f"{line}\n" for line in lines))


def plan_file(console: Console, asked: Asked) -> File:
    """Return a draft as a PLAN. Raises BadAskedError: nothing can be planned here; RefusedError: as Editing.plan."""
    return file_of(planned(console, draft_of(console, asked), asked))


def file_of(found: DraftPlan) -> File:
    """Return a plan as its file."""
    return File(name="PLAN", content="".join(f"{line}\n" for line in plan_lines(found.plan)))


def planned(console: Console, draft: Draft, asked: Asked) -> DraftPlan:
    """Return the plan of a draft, which is kept. Raises as plan_file."""
    if console.editing is None:
        raise BadAskedError(
            "a PLAN needs a place and a journal, and you may have to be allowed to ALTER the cluster: "
            "aclog console --edit --journal FILE"
        )
    _check_read(draft)
    ownership = Ownership(adopt=asked.flag("adopt"), max_deletes=asked.word("max_deletes"))
    return console.editing.plan(draft.read.changes, ownership, console.viewer)


def whole(draft: Draft) -> Draft:
    """Return a draft that may be saved. Raises BadAskedError: a line cannot be read, or it changes no rule."""
    _check_read(draft)
    if not draft.effect.changes:
        raise BadAskedError("the draft changes no rule, so there is nothing to save")
    return draft


def _check_read(draft: Draft) -> None:
    if draft.read.problems:
        first = draft.read.problems[0]
        raise BadAskedError(f"line {first.line} cannot be read, so nothing is saved: {first.text}")


def _answer(draft: Draft) -> str:
    effect = draft.effect
    adds = sum(each.added for each in effect.changes)
    what = f"{_rules(adds)} to add, {len(effect.changes) - adds:,} to remove"
    if not effect.asked:
        return "No line can be read yet"
    if not effect.changes:
        return "Nothing changes for anybody: the rules stay as they are"
    directions = {each.direction for each in effect.comparison.differences}
    if not directions:
        return f"{what}. {draft.turning.decided('Nothing changes for anybody: every request is decided the same')}"
    verbs = {Direction.GAINED: "somebody gains access", Direction.LOST: "somebody loses access"}
    return f"{what}: {' and '.join(text for each, text in verbs.items() if each in directions)}"


def _notices(draft: Draft) -> Iterator[Notice]:
    read, effect = draft.read, draft.effect
    if read.problems:
        count = len(read.problems)
        lines = "1 line" if count == 1 else f"{count:,} lines"
        yield Notice(text=f"{lines} cannot be read: what follows is without them", mark=Mark.ERROR)
    for text in read.notes:
        yield Notice(text=text)
    if effect.repeated:
        yield Notice(text=f"{effect.repeated:,} lines do not count: a later one is of the same rule")


def _parts(console: Console, draft: Draft, asked: Asked) -> Iterator[Part]:
    effect, read = draft.effect, draft.read
    if read.problems:
        yield problems_table(draft.read.problems)
    if not read.changes:
        return
    if console.drafts.tests is not None and effect.changes:
        yield tests_table(effect, console.drafts.tests, draft.premises)
    if effect.changes:
        yield effective_table(effect, draft.turning)
        yield from sharing_tables(effect)
        yield lint_table(effect, draft.premises)
    yield changes_table(effect)
    if effect.changes and not read.problems:
        yield _saving(console, draft, asked)


def _saving(console: Console, draft: Draft, asked: Asked) -> Links:
    links = [Cell("the change, for `aclog diff --change` and `aclog plan --change`", draft.url(format="change"))]
    if console.editing is not None:
        ownership = {name: asked.word(name) for name in OWNERSHIP}
        links.append(Cell("the PLAN, for aclog apply", draft.url(**ownership, format="plan")))
    return Links(key="saving", title="Save", links=tuple(links))


def _form(console: Console, draft: Draft, asked: Asked) -> Form:
    fields = (
        Field(
            name="rules",
            label="Rules to add and to remove",
            value=draft.text,
            kind=Kind.AREA,
            hint=f"{_EXAMPLE}; - removes; or a PLAN, a change file, rules as JSON lines; at most {MOST_CHANGES:,} and "
            f"{MOST_BYTES // 1_000_000} MB",
        ),
        Field(
            name="intent",
            label="Append what a client needs to",
            value=asked.word("intent"),
            kind=Kind.CHOICE,
            choices=tuple((each.value, each.value) for each in INTENTS),
        ),
        Field(name="principal", label="Principal", value=asked.text("principal"), hint=PRINCIPALS),
        Field(
            name="topic",
            label="Topic",
            value=asked.text("topic"),
            hint="ord* for a prefix; several with commas",
        ),
        Field(name="group", label="Group", value=asked.text("group"), hint="of a stream its application id"),
        Field(name="transactional_id", label="Transactional id", value=asked.text("transactional_id")),
        Field(name="output", label="Output topic", value=asked.text("output"), hint="of a stream"),
    )
    return Form(
        key="draft",
        title="A draft: nothing is written" if console.editing is None else "A draft: a plan of it can be applied",
        path=DRAFT_PATH,
        fields=fields if console.editing is None else (*fields, *_ownership(asked)),
        submit="Show",
        posts=True,
        takes_file="rules",
        buttons=(
            Button(name="do", value="append", title="Append"),
            *(() if console.editing is None else (Button(name="do", value="plan", title="Plan it"),)),
        ),
    )


def _ownership(asked: Asked) -> tuple[Field, ...]:
    return (
        Field(
            name="adopt",
            label="Adopt: own rules that are there, and remove rules that are not owned",
            value="1" if asked.flag("adopt") else "",
            kind=Kind.CHECK,
        ),
        Field(
            name="max_deletes",
            label="Deletes at most",
            value=asked.text("max_deletes"),
            hint="such as 50 or 25%; by default 20, or 10% of what is owned",
        ),
    )


def _rules(count: int) -> str:
    return f"{count:,} rule{'' if count == 1 else 's'}"


def names_of(text: str) -> tuple[str, ...]:
    """Return what is between commas, without blanks around it."""
    return tuple(part for each in text.split(",") if (part := each.strip()))


def intent_of(text: str) -> Intent:
    """Return the intent with this name. Raises BadAskedError: there is none that is offered."""
    for each in INTENTS:
        if each.value == text.strip():
            return each
    raise BadAskedError(f"intent {text[:40]!r}: expected one of {', '.join(INTENTS)}")


# The page of a plan: what it does, the question whether it is meant, and what was done.


PLAN_PATH = "/draft/plan"
APPLY = "/draft/apply"
"""Where it is applied."""


def plan_page(console: Console, asked: Asked) -> Page:
    """Return a plan, to be applied, or with what was done. Raises NotReadyError: there is no state yet."""
    digest, editing = asked.word("plan"), console.editing
    console.states.now()  # nothing is decided before there is a state
    if editing is None:
        why = "Nothing is written here: `aclog console --edit --journal FILE` applies plans"
        who = "" if console.viewer is None else ", and only to who may ALTER the cluster"
        return _without(f"{why}{who}.")
    found = editing.get(digest)
    if found is None:
        return _without("There is no such plan: the console keeps a few, and none when it ends: make it again.")
    applied = found.applied
    return Page(
        path=PLAN_PATH,
        title="A plan",
        answer="Nothing is written yet: read it, then apply it below." if applied is None else applied.text,
        mark=None if applied is None else Mark.GOOD if found.is_done else Mark.ERROR,
        command=console.command.of("plan", "--change", "CHANGE", "--journal", str(editing.journal), "--out", "PLAN"),
        parts=tuple(_plan_parts(console, editing, found)),
        notices=() if applied is None or found.is_done else (Notice(text="It is not done.", mark=Mark.ERROR),),
        offset=found.plan.base.end_offset,
        is_settled=False,
    )


def kept_plan_file(console: Console, asked: Asked) -> File:
    """Return a kept plan as its file. Raises BadAskedError: there is no such one."""
    found = None if console.editing is None else console.editing.get(asked.word("plan"))
    if found is None:
        raise BadAskedError("there is no such plan: make it again")
    return file_of(found)


def _without(text: str) -> Page:
    return Page(
        path=PLAN_PATH,
        title="A plan",
        answer=text,
        parts=(Links(key="ways", title="Further", links=(Cell("a draft", DRAFT_PATH),)),),
        is_settled=False,
    )


def _plan_parts(console: Console, editing: Editing, found: DraftPlan) -> Iterator[Part]:
    applied = found.applied
    if applied is not None and applied.apply is not None:
        yield _done(console, editing, applied, applied.apply)
    yield Lines(key="plan", title="The plan", lines=found.lines)
    address = f"{PLAN_PATH}?plan={found.digest}&format=plan"
    links = (Cell("the PLAN, for aclog apply", address), Cell("a draft", DRAFT_PATH))
    yield Links(key="ways", title="Further", links=links)
    if not found.is_done:
        yield _question(found)


def _done(console: Console, editing: Editing, applied: Applied, apply: str) -> Facts:
    back = console.command.of("rollback", "--journal", str(editing.journal), "--apply", apply, "--out", "BACK")
    items = (
        ("What was done", Cell(applied.text)),
        ("Apply", Cell(apply)),
        ("The way back", Cell("" if back is None else f"{back} && aclog apply BACK")),
    )
    return Facts(key="done", title="Done", items=items)


def _question(found: DraftPlan) -> Form:
    fields = [Field(name="plan", label="Plan", value=found.digest, kind=Kind.HIDDEN)]
    if found.plan.transient:
        label = "Accept what the plan lists as denied for a moment"
        fields.append(Field(name="accept_transient", label=label, kind=Kind.CHECK))
    return Form(
        key="apply",
        title=f"Apply this plan to {found.plan.place.address.value}?",
        path=APPLY,
        fields=tuple(fields),
        submit="Apply",
        is_live=False,
        writes=True,
        is_below=True,
    )
