"""The pages of a draft and of its plan."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice, starmap

from aclog.analysis.comparison import turning_same
from aclog.analysis.intents import Intent
from aclog.analysis.lint_report import LocatedFinding
from aclog.analysis.regions import Direction
from aclog.analysis.review.comment import Judgement, Risk, by_risk
from aclog.analysis.rows.report import TITLES, ReportRow, row_cells
from aclog.authorizer.acl import ResourcePattern, StandardAcl, acl_text, code_name, object_of_rule, reasons_unmatched
from aclog.authorizer.acls_image import Action, RuleChange
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import ALL_KNOWN, Premises
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
from aclog.console.listing import pattern_text
from aclog.console.pages.page import (
    PAGE_ROWS,
    PRINCIPALS,
    RULE_COLUMNS,
    BadParameterError,
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
    Parameters,
    Part,
    Row,
    Table,
    name_parameters,
    rule_cells,
    url,
)
from aclog.console.pages.states import Console
from aclog.console.patch import is_patched, patch_lines
from aclog.metalog.errors import ConfigError, MetadataError, plural
from aclog.metalog.values import frozen
from aclog.planning.granting import Shared
from aclog.planning.plan import plan_lines, stage_of
from aclog.snapshots.deciding_kafka import DecidingKafka, kafka_with
from aclog.sources.acl_lines import change_line

# The tables of a draft: its effect on access, tests and lint, and its rules.


_PROBLEMS = 50
"""Invalid lines that are listed."""


def problems_table(problems: Sequence[Problem]) -> Table:
    """Return the invalid lines."""
    return Table(
        key="problems",
        title="Invalid lines",
        columns=(Column(key="line", title="Line", is_number=True), Column(key="problem", title="Problem")),
        rows=tuple(
            Row(key=f"{each.line} {each.text}", mark=Mark.ERROR, cells=(Cell(f"{each.line:,}"), Cell(each.text)))
            for each in problems[:_PROBLEMS]
        ),
        none="",
        total=len(problems),
        note=_cut(_PROBLEMS, len(problems)),
    )


_EFFECT_KEYS = ("risk", "change", "who", "what", "from", "before", "after", "example")


def effective_table(effect: DraftEffect, unknown: Premises) -> Table:
    """Return access gained and lost, the riskiest first; `unknown`: premises that could turn "no change"."""
    reports = by_risk(effect.comparison.rows())
    return Table(
        key="effect",
        title="Access gained and lost",
        columns=tuple(
            Column(key=key, title=title.capitalize())
            for key, title in zip(_EFFECT_KEYS, ("risk", *TITLES), strict=True)
        ),
        rows=tuple(starmap(_effect_row, reports[:PAGE_ROWS])),
        none=f"{unknown.decided('No access changes: every request is decided the same')}.",
        total=len(reports),
        note=_cut(PAGE_ROWS, len(reports)),
    )


RISK_MARKS = {Risk.HIGH: Mark.HIGH, Risk.MEDIUM: Mark.MEDIUM, Risk.LOW: Mark.LOW}
"""The emphasis of the risks that a review's comment has."""


def _effect_row(report: ReportRow, judgement: Judgement) -> Row:
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
    look = RISK_MARKS[judgement.risk]
    risk = Cell(judgement.risk.name.lower(), mark=look)
    cells = (risk, Cell(change), *map(Cell, middle), Cell(example, why))
    return Row(key="\n".join((change, *middle)), cells=cells, mark=mark, look=look)


def sharing_tables(effect: DraftEffect) -> Iterator[Table]:
    """Yield other principals with rules on names of the draft's prefixes, if there are any."""
    sharing = effect.sharing
    if sharing == ():
        return
    rows = () if sharing is None else tuple(map(_sharing_row, sharing[:PAGE_ROWS]))
    yield Table(
        key="sharing",
        title="Other principals with rules on these prefixes",
        columns=(
            Column(key="prefix", title="The draft's"),
            Column(key="principal", title="Principal"),
            Column(key="patterns", title="Rules on"),
        ),
        rows=rows,
        none="Not computed: too many rules nearby." if sharing is None else "",
        total=None if sharing is None else len(sharing),
        note=_cut(PAGE_ROWS, len(sharing or ())),
    )


def _sharing_row(shared: Shared) -> Row:
    kind = code_name(ResourceType, shared.pattern.resource_type)
    names = [pattern_text(each.name, each.pattern_type) for each in shared.patterns]
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    cells = (
        Cell(f"{kind} {pattern_text(shared.pattern.name, shared.pattern.pattern_type)}"),
        Cell(shared.principal, url("/principal", name=shared.principal)),
        Cell(", ".join(names[:3]) + more),
    )
    return Row(key=repr((shared.pattern, shared.principal)), cells=cells)


def lint_table(effect: DraftEffect, premises: Premises) -> Table:
    """Return the findings of one side only; `premises`: unknown premises of the decisions."""
    findings = lint_effect(effect, premises)
    introduced, fixed = ((), ()) if findings is None else (findings.introduced, findings.fixed)
    added = {each.acl for each in effect.changes if each.added}
    rows = [
        *(_finding(each, _fix(each, added), is_new=True) for each in introduced),
        *(_finding(each, "", is_new=False) for each in fixed),
    ]
    return Table(
        key="lint",
        title="Lint findings added or fixed",
        columns=(
            Column(key="change", title="Change"),
            Column(key="lint", title="Lint"),
            Column(key="rule", title="Rule"),
            Column(key="finding", title="Finding"),
            Column(key="mend", title="Fix"),
        ),
        rows=tuple(rows[:PAGE_ROWS]),
        none="No findings added or fixed."
        if findings is not None
        else f"Not linted: more than {MOST_RULES:,} rules nearby; `aclog lint` checks all rules.",
        total=len(rows),
        note=_cut(PAGE_ROWS, len(rows)),
    )


_REMOVE = "Remove the rule."


def _fix(located: LocatedFinding, added: Collection[StandardAcl]) -> str:
    """Return the fix of a finding that the draft adds; `added`: its new rules. An existing rule is still needed."""
    advice = located.finding.advice
    if located.finding.rules[0] in added:
        return "Leave the rule out of the draft." if advice == _REMOVE else advice
    if advice == _REMOVE:
        return "It would be redundant with the draft: remove it only after the draft is applied."
    return f"With the draft: {advice}" if advice else ""


def _finding(located: LocatedFinding, fix: str, *, is_new: bool) -> Row:
    first, *others = located.finding.rules
    rule = acl_text(first) + (f" and {len(others):,} more" if others else "")
    cells = (
        Cell("new" if is_new else "fixed", mark=Mark.ERROR if is_new else Mark.GOOD),
        Cell(f"{located.lint.id} {located.lint.name}"),
        Cell(rule),
        Cell(located.finding.lost),
        Cell(fix),
    )
    return Row(key=f"{is_new} {located.lint.id} {rule}", cells=cells, mark=Mark.ERROR if is_new else Mark.GOOD)


def tests_table(effect: DraftEffect, tests: Callable[[Settings], Sequence[StatedCases]], premises: Premises) -> Table:
    """Return the tests that depend on the changes, those that turn first; or why they cannot be run."""
    none = "No test depends on the changes."
    try:
        result = effect_on_tests(effect, tests(effect.ground.policy.settings), premises)
    except (MetadataError, OSError) as error:
        result, none = TestsEffect(), f"Tests cannot be run: {error}"
    about = len(result.cases)
    rest = f"{plural(result.others, 'other test')} independent of the changes" if result.others else ""
    return Table(
        key="tests",
        title="Tests that depend on the changes",
        columns=(
            Column(key="outcome", title="Outcome"),
            Column(key="test", title="Test"),
            Column(key="expects", title="Expects"),
            Column(key="found", title="Instead"),
            Column(key="place", title="Location"),
        ),
        rows=tuple(map(_tested, result.cases[:PAGE_ROWS])),
        none=none,
        total=about,
        note="; ".join(part for part in (_cut(PAGE_ROWS, about), rest) if part),
    )


def _tested(tested: TestedCase) -> Row:
    case, passes = tested.after.case, tested.after.passed
    colour = "green" if passes else "red"
    text = f"turns {colour}" if tested.has_turned else f"stays {colour}"
    failure = "" if passes else tested.after.failures[0].actual
    mark = Mark.GOOD if passes else Mark.ERROR
    cells = (
        Cell(text, mark=mark),
        Cell(case.test),
        Cell(case.text),
        Cell(failure),
        Cell(f"{case.origin.file}:{case.origin.line}"),
    )
    return Row(key=f"{case.test} {case.text}", cells=cells, mark=mark if tested.has_turned or not passes else None)


def changes_table(effect: DraftEffect) -> Table:
    """Return the changes, those that change nothing first."""
    cidr = effect.ground.policy.settings.cidr
    changes: Sequence[RuleChange] = (*effect.idle, *effect.changes)
    idle = set(effect.idle[:PAGE_ROWS])
    return Table(
        key="changes",
        title="The draft, rule by rule",
        columns=(Column(key="change", title="Change"), *RULE_COLUMNS, Column(key="note", title="Note")),
        rows=tuple(_change_row(each, is_idle=each in idle, cidr=cidr) for each in changes[:PAGE_ROWS]),
        none="",
        total=len(changes),
        note=_cut(PAGE_ROWS, len(changes)),
    )


def _change_row(change: RuleChange, *, is_idle: bool, cidr: bool) -> Row:
    notes = list(reasons_unmatched(change.acl, cidr=cidr)) if change.added else []
    if is_idle:
        notes.insert(0, "already present" if change.added else "no such rule")
    mark = Mark.ADDED if change.added else Mark.REMOVED
    cells = (
        Cell("add" if change.added else "remove", mark=mark),
        *rule_cells(change.acl),
        Cell("; ".join(notes), mark=Mark.WARNING if notes else None),
    )
    return Row(key=f"{change.added} {change.acl!r}", cells=cells, mark=Mark.WARNING if notes else mark)


def _cut(limit: int, of: int) -> str:
    return f"the first {limit:,} of {of:,}" if of > limit else ""


# The page of a draft: rules typed or opened, and their effect on access, tests and lint.


DRAFT_PATH = "/draft"
OWNERSHIP = ("adopt", "max_deletes")
"""The fields that limit a plan."""
_EXAMPLE = "+ ALLOW User:shop READ on TOPIC PREFIXED 'ord' from *"


@frozen(eq=False, slots=False, kw_only=True)
class Draft:
    """The draft of a request, parsed."""

    text: str
    read: DraftText
    effect: DraftEffect
    premises: Premises
    """Unknown premises of the decisions."""
    parameters: dict[str, str]
    """The parameters that lead to it."""
    kafka: DecidingKafka
    """The generations of Kafka that may decide on the state with the draft."""

    @cached_property
    def turning(self) -> Premises:
        """Unknown premises that could give an effect to a draft without one; nothing if no rule changes."""
        return turning_same(self.premises, self.effect.comparison) if self.effect.changes else ALL_KNOWN

    def url(self, **more: object) -> str:
        """Return its address, with more parameters."""
        return url(DRAFT_PATH, **self.parameters, **more)


def draft_of(console: Console, parameters: Parameters) -> Draft:
    """Return the draft that an address names, beside the newest state.

    Raises:
        BadParameterError: it is too large, or forgotten.

    """
    draft_id = parameters.word("id")
    text = parameters.text("rules")
    if draft_id:
        stored = console.drafts.texts.get(draft_id)
        if stored is None:
            raise ForgottenError(
                "draft not found: the console keeps only a few large drafts, and none across a restart: "
                "open its file or type it again"
            )
        text = stored
    return drafted(console, text, {"id": draft_id} if draft_id else {"rules": text})


class ForgottenError(BadParameterError):
    """A draft that is no longer kept."""


def drafted(console: Console, text: str, parameters: dict[str, str]) -> Draft:
    """Return a draft. Raises BadParameterError: it is too large, or no text."""
    state = console.states.now()
    try:
        text.encode()
        read = read_draft(text, cidr=state.policy.settings.cidr)
    except UnicodeEncodeError as error:
        raise BadParameterError(f"character {error.start + 1} of the draft is not a Unicode character") from error
    except ConfigError as error:
        raise BadParameterError(str(error)) from error
    ground = console.drafts.grounds.of(state.policy)
    added = [each.acl for each in read.changes if each.added]
    kafka = kafka_with(state.image, added) if len(state.by_kafka) > 1 else state.kafka
    effect = DraftEffect(
        ground=ground,
        draft=read.changes,
        origins=console.origins,
        generations=() if kafka.is_known else kafka.generations,
    )
    return Draft(text=text, read=read, effect=effect, premises=state.premises, parameters=parameters, kafka=kafka)


def asked_now(console: Console, parameters: Parameters) -> DecidingKafka:
    """Return the generations of Kafka that may decide on the newest state with a draft. Raises as draft_of."""
    try:
        return draft_of(console, parameters).kafka
    except ForgottenError:
        return console.states.now().kafka


def draft_page(console: Console, parameters: Parameters) -> Page:
    """Return the effect of a draft. Raises BadParameterError: it is too large."""
    offset = console.states.now().offset
    trouble: tuple[Notice, ...] = ()
    try:
        draft = draft_of(console, parameters)
    except ForgottenError as error:
        draft, trouble = drafted(console, "", {}), (Notice(text=str(error), mark=Mark.ERROR),)
    form = _form(console, draft, parameters)
    if not draft.read.changes and not draft.read.problems:
        answer = "" if trouble else "What would a change grant or revoke? Type rules, one per line."
        return Page(
            path=DRAFT_PATH,
            title="A draft",
            answer=answer,
            parts=(
                form,
                Links(key="examples", title="Example", links=(Cell(_EXAMPLE, url(DRAFT_PATH, rules=_EXAMPLE)),)),
            ),
            notices=trouble,
            offset=offset,
            is_settled=not trouble,  # an evicted draft may be sent again
        )
    effect = draft.effect
    return Page(
        path=DRAFT_PATH,
        title="A draft",
        answer=_answer(draft),
        mark=None if effect.comparison.differences else Mark.QUIET,
        command=console.command.of("diff", "--change", "CHANGE"),
        parts=(form, *_parts(console, draft, parameters)),
        notices=(*trouble, *_notices(draft)),
        offset=offset,
        data=tuple(effect.comparison.json_lines()) if parameters.word("format") == "json" else (),
    )


def change_file(console: Console, parameters: Parameters) -> File:
    """Return a draft as the file of a change. Raises BadParameterError: a line cannot be read, or nothing changes."""
    draft = whole(draft_of(console, parameters))
    ordered = sorted(draft.effect.changes, key=lambda each: stage_of(each.acl, added=each.added))
    lines = (change_line(Action.ADD if each.added else Action.REMOVE, object_of_rule(each.acl)) for each in ordered)
    return File(name="change.jsonl", content="".join(f"{line}\n" for line in lines))


def patch_file(console: Console, parameters: Parameters) -> File:
    """Return a draft as a patch of the files of the source. Raises BadParameterError, OSError: as patch_lines."""
    changes = whole(draft_of(console, parameters)).effect.changes
    if console.files is None:
        raise BadParameterError("a patch needs rules in files: aclog console --acls PATH")
    try:
        content = "".join(patch_lines(changes, console.files, (rule.acl for rule in console.states.now().listing)))
    except ConfigError as error:
        raise BadParameterError(str(error)) from error
    return File(name="draft.patch", content=content, media_type="text/x-diff")


def plan_file(console: Console, parameters: Parameters) -> File:
    """Return it as a PLAN. Raises BadParameterError: nothing can be planned here; RefusedError: as Editing.plan."""
    return file_of(planned(console, draft_of(console, parameters), parameters))


def file_of(draft_plan: DraftPlan) -> File:
    """Return a plan as its file."""
    return File(name="PLAN", content="".join(f"{line}\n" for line in plan_lines(draft_plan.plan)))


def planned(console: Console, draft: Draft, parameters: Parameters) -> DraftPlan:
    """Return the plan of a draft, which is kept. Raises as plan_file."""
    if console.editing is None:
        raise BadParameterError(
            "a PLAN needs a target and a journal, and may need ALTER on the cluster: "
            "aclog console --edit --journal FILE"
        )
    _check_read(draft)
    ownership = Ownership(adopt=parameters.flag("adopt"), max_deletes=parameters.word("max_deletes"))
    return console.editing.plan(draft.read.changes, ownership, console.viewer)


def whole(draft: Draft) -> Draft:
    """Return a draft that may be saved. Raises BadParameterError: a line cannot be read, or it changes no rule."""
    _check_read(draft)
    if not draft.effect.changes:
        raise BadParameterError("the draft changes no rule, so there is nothing to save")
    return draft


def _check_read(draft: Draft) -> None:
    if draft.read.problems:
        first = draft.read.problems[0]
        raise BadParameterError(f"line {first.line} is invalid, so nothing is saved: {first.text}")


def _answer(draft: Draft) -> str:
    effect = draft.effect
    adds = sum(each.added for each in effect.changes)
    what = f"{_rules(adds)} to add, {len(effect.changes) - adds:,} to remove"
    if not effect.draft:
        return "No valid line yet"
    if not effect.changes:
        return "No access changes: the rules stay the same"
    directions = {each.direction for each in effect.comparison.differences}
    if not directions:
        return f"{what}. {draft.turning.decided('No access changes: every request is decided the same')}"
    verbs = {Direction.GAINED: "access is gained", Direction.LOST: "access is lost"}
    return f"{what}: {' and '.join(text for each, text in verbs.items() if each in directions)}"


def _notices(draft: Draft) -> Iterator[Notice]:
    read, effect = draft.read, draft.effect
    if read.problems:
        count = len(read.problems)
        lines = "1 invalid line" if count == 1 else f"{count:,} invalid lines"
        yield Notice(text=f"{lines}, left out of the results below", mark=Mark.ERROR)
    for text in read.notes:
        yield Notice(text=text)
    if effect.repeated:
        yield Notice(text=f"{plural(effect.repeated, 'line')} superseded by a later line of the same rule")


def _parts(console: Console, draft: Draft, parameters: Parameters) -> Iterator[Part]:
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
        yield _saving(console, draft, parameters)


def _saving(console: Console, draft: Draft, parameters: Parameters) -> Links:
    links = [Cell("the change, for `aclog diff --change` and `aclog plan --change`", draft.url(format="change"))]
    if console.editing is not None:
        ownership = {name: parameters.word(name) for name in OWNERSHIP}
        links.append(Cell("the PLAN, for aclog apply", draft.url(**ownership, format="plan")))
    removed = (each.acl for each in draft.effect.changes if not each.added)
    some = chain(removed, (rule.acl for rule in islice(console.states.now().listing, _TRIED)))
    if console.files is not None:
        is_shown = any(is_patched(each, console.origins) for each in some)
        words = "a patch of the files with the rules, for `git apply --unidiff-zero` and a pull request"
        links.append(
            Cell(words, draft.url(format="patch"))
            if is_shown
            else Cell("no patch: the rules are in files of a format that is not edited")
        )
    return Links(key="saving", title="Save", links=tuple(links))


_TRIED = 10
"""Rules whose files show whether there can be a patch."""


_PREVIEW = "Draft: type rules to see their effect; nothing is applied"


def _form(console: Console, draft: Draft, parameters: Parameters) -> Form:
    fields = (
        Field(
            name="rules",
            label="Rules to add and to remove",
            value=draft.text,
            kind=Kind.AREA,
            hint=f"{_EXAMPLE}; - removes; or a PLAN, a change file, rules as JSON lines; up to {MOST_CHANGES:,} and "
            f"{MOST_BYTES // 1_000_000} MB",
        ),
        Field(
            name="intent",
            label="Append the ACLs that a client needs to",
            value=parameters.word("intent"),
            kind=Kind.CHOICE,
            choices=tuple((each.value, each.value) for each in INTENTS),
            is_more=True,
        ),
        Field(name="principal", label="Principal", value=parameters.text("principal"), hint=PRINCIPALS, is_more=True),
        Field(
            name="topic",
            label="Topic",
            value=parameters.text("topic"),
            hint="orders, ord*",
            is_more=True,
        ),
        Field(
            name="group",
            label="Group",
            value=parameters.text("group"),
            hint="or application id",
            is_more=True,
        ),
        Field(
            name="transactional_id",
            label="Transactional id",
            value=parameters.text("transactional_id"),
            is_more=True,
        ),
        Field(name="output", label="Output topic", value=parameters.text("output"), hint="of a stream", is_more=True),
    )
    return Form(
        key="draft",
        title=_PREVIEW if console.editing is None else "Draft (can be planned and applied)",
        path=DRAFT_PATH,
        fields=fields if console.editing is None else (*fields, *_ownership(parameters)),
        submit="Show",
        posts=True,
        takes_file="rules",
        more="Append the ACLs of a client"
        if console.editing is None
        else "Append the ACLs of a client; options of a plan",
        buttons=(
            Button(name="do", value="append", title="Append"),
            *(() if console.editing is None else (Button(name="do", value="plan", title="Plan it"),)),
        ),
    )


def _ownership(parameters: Parameters) -> tuple[Field, ...]:
    return (
        Field(
            name="adopt",
            label="Adopt: manage rules that exist already, and remove unmanaged rules",
            value="1" if parameters.flag("adopt") else "",
            kind=Kind.CHECK,
            is_more=True,
        ),
        Field(
            name="max_deletes",
            label="Maximum deletes (by default 20, or 10% of managed ACLs)",
            is_more=True,
            value=parameters.text("max_deletes"),
            hint="50 or 25%",
        ),
    )


def _rules(count: int) -> str:
    return f"{count:,} rule{'' if count == 1 else 's'}"


def intent_of(text: str) -> Intent:
    """Return the intent with this name. Raises BadParameterError: no such intent."""
    for each in INTENTS:
        if each.value == text.strip():
            return each
    raise BadParameterError(f"intent {text[:40]!r}: expected one of {', '.join(INTENTS)}")


# The page of a plan: its steps, the confirmation, and its outcome.


PLAN_PATH = "/draft/plan"
APPLY = "/draft/apply"
"""Where it is applied."""


def plan_page(console: Console, parameters: Parameters) -> Page:
    """Return the page of a plan: to be applied, or with its outcome. Raises NotReadyError: there is no state yet."""
    digest, editing = parameters.word("plan"), console.editing
    console.states.now()  # nothing is decided before there is a state
    if editing is None:
        why = "This console is read-only: `aclog console --edit --journal FILE` applies plans"
        who = "" if console.viewer is None else ", for users with ALTER on the cluster"
        return _without(f"{why}{who}.")
    draft_plan = editing.get(digest)
    if draft_plan is None:
        return _without(
            "Plan not found: the console keeps only a few plans, and none across a restart: make the plan again."
        )
    applied = draft_plan.applied
    return Page(
        path=PLAN_PATH,
        title="A plan",
        answer="Nothing is written yet: review the plan, then apply it below." if applied is None else applied.text,
        mark=None if applied is None else Mark.GOOD if draft_plan.is_done else Mark.ERROR,
        command=console.command.of("plan", "--change", "CHANGE", "--journal", str(editing.journal), "--out", "PLAN"),
        parts=tuple(_plan_parts(console, editing, draft_plan)),
        notices=()
        if applied is None or draft_plan.is_done
        else (Notice(text="The plan was not applied.", mark=Mark.ERROR),),
        offset=draft_plan.plan.base.end_offset,
        is_settled=False,
    )


def kept_plan_file(console: Console, parameters: Parameters) -> File:
    """Return a kept plan as its file. Raises BadParameterError: unknown or evicted."""
    draft_plan = None if console.editing is None else console.editing.get(parameters.word("plan"))
    if draft_plan is None:
        raise BadParameterError("plan not found: make it again")
    return file_of(draft_plan)


def _without(text: str) -> Page:
    return Page(
        path=PLAN_PATH,
        title="A plan",
        answer=text,
        parts=(Links(key="ways", title="Further", links=(Cell("a draft", DRAFT_PATH),)),),
        is_settled=False,
    )


def _plan_parts(console: Console, editing: Editing, draft_plan: DraftPlan) -> Iterator[Part]:
    applied = draft_plan.applied
    if applied is not None and applied.apply is not None:
        yield _done(console, editing, applied, applied.apply)
    yield Lines(key="plan", title="The plan", lines=draft_plan.lines)
    address = f"{PLAN_PATH}?plan={draft_plan.digest}&format=plan"
    links = (Cell("the PLAN, for aclog apply", address), Cell("a draft", DRAFT_PATH))
    yield Links(key="ways", title="Further", links=links)
    if not draft_plan.is_done:
        yield _question(draft_plan)


def _done(console: Console, editing: Editing, applied: Applied, apply: str) -> Facts:
    back = console.command.of("rollback", "--journal", str(editing.journal), "--apply", apply, "--out", "BACK")
    items = (
        ("What was done", Cell(applied.text)),
        ("Apply", Cell(apply)),
        ("The way back", Cell("" if back is None else f"{back} && aclog apply BACK")),
    )
    return Facts(key="done", title="Done", items=items)


def _question(draft_plan: DraftPlan) -> Form:
    fields = [Field(name="plan", label="Plan", value=draft_plan.digest, kind=Kind.HIDDEN)]
    if draft_plan.plan.transient:
        label = "Accept the requests that the plan denies for a moment"
        fields.append(Field(name="accept_transient", label=label, kind=Kind.CHECK))
    return Form(
        key="apply",
        title=f"Apply this plan to {draft_plan.plan.place.address.value}?",
        path=APPLY,
        fields=tuple(fields),
        submit="Apply",
        is_live=False,
        writes=True,
        is_below=True,
    )
