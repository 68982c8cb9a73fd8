"""Applying a plan to its place: both are opened, checked, and written only if that is still meant."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from attrs import frozen

from aclog.places.applied_journal import check_applied
from aclog.places.choice import open_place
from aclog.places.other_journals import check_others
from aclog.planning.applying import Applying, ApplyOptions, Outcome, Progress
from aclog.planning.base_check import Remaining
from aclog.planning.errors import JournalError
from aclog.planning.journal.journal_file import JournalWriter, open_journal
from aclog.planning.plan import PlaceAddress, PlaceKind, Plan


@frozen(eq=False, kw_only=True)
class PlanApply:
    """How a plan is applied."""

    plan: Plan
    address: PlaceAddress
    """Where its place is found from here."""
    options: ApplyOptions
    notify: Callable[[str], None]
    journal: Path | None = None
    """Where its journal is; None: where it was when the plan was made."""
    other_journals: Sequence[Path] = ()
    """Where those of other sources are, if not where they were then."""
    force: bool = False
    """Whether a log may be written that belongs to a Kafka node."""

    def run(
        self,
        confirm: Callable[[str, Remaining], None] | None,
        progress: Callable[[str], AbstractContextManager[Progress]],
    ) -> tuple[str, Outcome]:
        """Apply it; return the place's name, and what was done.

        `confirm` is called before anything is written, with the place's name and what is to be done, and raises if
        that is not meant; None: it is. `progress` shows the steps in the place of a name.

        Raises:
            RefusedError, JournalError: nothing was changed.
            StoppedError: it ended on its way.
            MetadataError, OSError: the place or the journal cannot be read or written.

        """
        with (
            self._opened_journal() as journal,
            open_place(self.address, self.notify, write=True, force=self.force) as place,
        ):
            applying = Applying(plan=self.plan, place=place, journal=journal, options=self.options, notify=self.notify)
            ready = applying.check()
            if journal is not None and self.address.kind is PlaceKind.LOG:
                check_applied(Path(self.address.value), place.identity(), journal.journal)
            check_others(self.plan, ready, place, self.other_journals, self.notify)
            if confirm is not None and not ready.is_done:
                confirm(place.name, ready.remaining)
                ready = applying.check()  # the question may have waited for long
                check_others(self.plan, ready, place, self.other_journals, self.notify)
            with progress(place.name) as advance:
                return place.name, applying.make(ready, advance)

    def _opened_journal(self) -> AbstractContextManager[JournalWriter | None]:
        path, mark = self._journal_path(), self.plan.journal
        if path is None or mark is None:
            return nullcontext()
        return open_journal(path, mark.id, self.notify, is_new=mark.entries == 0)

    def _journal_path(self) -> Path | None:
        """Return the file of the journal. Raises JournalError: one is given, and the plan was made without."""
        if self.plan.journal is None:
            if self.journal is not None:
                raise JournalError(f"{self.journal}: the plan was made without a journal: make it again with --journal")
            return None
        return self.journal or Path(self.plan.journal.path)


def told_outcome(plan: Plan, outcome: Outcome, name: str) -> str:
    """Return what was done, in a line."""
    if outcome.was_done:
        return f"{name}: apply {outcome.apply} of this plan was done before; nothing was changed"
    added = sum(step.adds for step in plan.steps)
    before = f" ({outcome.made_before:,} of these steps were made before)" if outcome.made_before else ""
    adopted = f", {len(plan.adopt):,} adopted" if plan.adopt else ""
    deleted = len(plan.steps) - added
    return f"{name}: {counted_rules(added)} added, {deleted:,} deleted{adopted}{before}; apply {outcome.apply}"


def counted_rules(count: int) -> str:
    """Return such as `1 rule` or `3 rules`."""
    return f"{count:,} rule{'' if count == 1 else 's'}"
