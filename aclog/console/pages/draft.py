"""The page of a draft: rules typed or opened, and what they would change for people, tests and lint."""

from collections.abc import Iterator
from functools import cached_property

from attrs import frozen

from aclog.analysis.answers.intents import Intent
from aclog.analysis.regions.region import Direction
from aclog.analysis.side_premises import turning_same
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.rule_change import Action
from aclog.authorizer.rule_object import object_of_rule
from aclog.console.draft.draft_text import MOST_BYTES, MOST_CHANGES, DraftText, read_draft
from aclog.console.draft.editing import DraftPlan, Ownership
from aclog.console.draft.effect import DraftEffect
from aclog.console.draft.presets import INTENTS
from aclog.console.pages.asked import Asked, BadAskedError, url
from aclog.console.pages.cells import PRINCIPALS
from aclog.console.pages.console import Console
from aclog.console.pages.draft_tables import (
    changes_table,
    effective_table,
    lint_table,
    problems_table,
    sharing_tables,
    tests_table,
)
from aclog.console.pages.page import Button, Cell, Field, File, Form, Kind, Links, Mark, Notice, Page, Part
from aclog.metalog.errors import ConfigError
from aclog.planning.plan_file import plan_lines
from aclog.planning.step import stage_of
from aclog.sources.change_lines import change_line

PATH = "/draft"
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
        return url(PATH, **self.asked, **more)


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
            path=PATH,
            title="A draft",
            answer=answer,
            parts=(form,),
            notices=trouble,
            offset=offset,
            is_settled=not trouble,  # what is forgotten may be sent again
        )
    effect = draft.effect
    return Page(
        path=PATH,
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
        path=PATH,
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
