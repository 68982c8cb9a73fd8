"""The page of a plan: what it does, the question whether it is meant, and what was done."""

from collections.abc import Iterator

from aclog.console.draft.editing import Applied, DraftPlan, Editing
from aclog.console.pages.asked import Asked, BadAskedError
from aclog.console.pages.console import Console
from aclog.console.pages.draft import PATH as DRAFT
from aclog.console.pages.draft import file_of
from aclog.console.pages.page import Cell, Facts, Field, File, Form, Kind, Lines, Links, Mark, Notice, Page, Part

PATH = "/draft/plan"
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
        path=PATH,
        title="A plan",
        answer="Nothing is written yet: read it, then apply it below." if applied is None else applied.text,
        mark=None if applied is None else Mark.GOOD if found.is_done else Mark.ERROR,
        command=console.command.of("plan", "--change", "CHANGE", "--journal", str(editing.journal), "--out", "PLAN"),
        parts=tuple(_parts(console, editing, found)),
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
        path=PATH,
        title="A plan",
        answer=text,
        parts=(Links(key="ways", title="Further", links=(Cell("a draft", DRAFT),)),),
        is_settled=False,
    )


def _parts(console: Console, editing: Editing, found: DraftPlan) -> Iterator[Part]:
    applied = found.applied
    if applied is not None and applied.apply is not None:
        yield _done(console, editing, applied, applied.apply)
    yield Lines(key="plan", title="The plan", lines=found.lines)
    address = f"{PATH}?plan={found.digest}&format=plan"
    links = (Cell("the PLAN, for aclog apply", address), Cell("a draft", DRAFT))
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
