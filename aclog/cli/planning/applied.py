"""Applies a plan to its place, and says what was done."""

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from aclog.cli.flags.apply import ApplyFlags
from aclog.cli.planning.origin import origin_now
from aclog.metalog.uuids import random_uuid, uuid_text
from aclog.places.applied_journal import check_applied
from aclog.places.choice import open_place
from aclog.planning.applying import Applying, ApplyOptions, Outcome
from aclog.planning.base_check import Remaining
from aclog.planning.errors import JournalError, RefusedError
from aclog.planning.journal.journal_file import JournalWriter, open_journal
from aclog.planning.plan import PlaceAddress, PlaceKind, Plan
from aclog.terminal.confirmation import confirms_on_terminal
from aclog.terminal.notices import note
from aclog.terminal.output import say
from aclog.terminal.progress import progress


def apply_to_place(plan: Plan, address: PlaceAddress, flags: ApplyFlags, tell: Callable[[str], None] = say) -> None:
    """Apply a plan to the place at an address; what was done is told.

    Raises:
        RefusedError, JournalError: nothing was changed.
        StoppedError: it ended on its way.
        MetadataError, OSError: the place or the journal cannot be read or written.

    """
    origin = origin_now()
    options = ApplyOptions(
        apply=uuid_text(random_uuid(secrets.token_bytes)),
        at=origin.at,
        who=origin.who,
        accept_transient=flags.accept_transient,
        resume=flags.resume,
    )
    with (
        _opened_journal(plan, flags.journal) as journal,
        open_place(address, note, write=True, force=flags.force) as place,
    ):
        applying = Applying(plan=plan, place=place, journal=journal, options=options)
        ready = applying.check()
        if journal is not None and address.kind is PlaceKind.LOG:
            check_applied(Path(address.value), place.identity(), journal.journal)
        if not flags.yes and not ready.is_done:
            _confirm(plan, place.name, ready.remaining)
            ready = applying.check()  # the question may have waited for long
        with progress(f"applying to {place.name}", "steps") as advance:
            outcome = applying.make(ready, advance)
    _tell(plan, outcome, place.name, tell)


def _confirm(plan: Plan, name: str, remaining: Remaining) -> None:
    adds = sum(step.adds for step in remaining.steps)
    what = f"{adds:,} {_rules(adds)} to add, {len(remaining.steps) - adds:,} to delete"
    owned = f", {len(plan.adopt):,} to adopt" if plan.adopt else ""
    if not confirms_on_terminal(f"{name}: {what}{owned}. Apply? (y/n)", "stdin is no terminal to ask: expected --yes"):
        raise RefusedError(f"{name}: not confirmed: nothing was changed")


def _opened_journal(plan: Plan, given: Path | None) -> AbstractContextManager[JournalWriter | None]:
    path, mark = _journal_path(plan, given), plan.journal
    if path is None or mark is None:
        return nullcontext()
    return open_journal(path, mark.id, note, is_new=mark.entries == 0)


def _journal_path(plan: Plan, given: Path | None) -> Path | None:
    """Return the file of the journal. Raises JournalError: one is given, and the plan was made without."""
    if plan.journal is None:
        if given is not None:
            raise JournalError(f"{given}: the plan was made without a journal: make it again with --journal")
        return None
    return given or Path(plan.journal.path)


def _tell(plan: Plan, outcome: Outcome, name: str, tell: Callable[[str], None]) -> None:
    if outcome.was_done:
        note(f"{name}: apply {outcome.apply} of this plan was done before; nothing was changed")
        return
    added = sum(step.adds for step in plan.steps)
    before = f" ({outcome.made_before:,} of these steps were made before)" if outcome.made_before else ""
    adopted = f", {len(plan.adopt):,} adopted" if plan.adopt else ""
    deleted = len(plan.steps) - added
    tell(f"{name}: {added:,} {_rules(added)} added, {deleted:,} deleted{adopted}{before}; apply {outcome.apply}")


def _rules(count: int) -> str:
    return "rule" if count == 1 else "rules"
