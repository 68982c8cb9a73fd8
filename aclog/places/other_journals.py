"""The journals of other sources when a plan is applied: what they own stays, and none may have gone on."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aclog.authorizer.acl import acl_text
from aclog.authorizer.rule_content import content_of
from aclog.planning.applying import Ready
from aclog.planning.errors import JournalError
from aclog.planning.journal.journal import Journal
from aclog.planning.journal.journal_file import read_journal
from aclog.planning.journal.settling import settle
from aclog.planning.place import WritablePlace
from aclog.planning.plan import JournalMark, Plan


def check_others(
    plan: Plan, ready: Ready, place: WritablePlace, given: Sequence[Path], notify: Callable[[str], None]
) -> None:
    """Check that other sources own none of the rules that are still to be removed, and applied nothing meanwhile.

    An apply that goes on asks only what they own: a later plan would have to end it. `given` are their journals, if
    they are not where they were when the plan was made.

    Raises:
        JournalError: one has gone on, owns such a rule, is gone, or is another one.
        LogError: one cannot be read.

    """
    if ready.is_done:
        return
    elsewhere = {found.id: found for found in (_read(path, notify) for path in given)}
    removed = {content_of(step.acl): step.acl for step in ready.remaining.steps if not step.adds}
    for mark in plan.others:
        found = _journal_of(mark, elsewhere, notify)
        owned = settle(found, ready.state.contents, place.made).journal.owned
        for content in sorted(removed.keys() & owned):
            raise JournalError(
                f"{acl_text(removed[content])}: {found.path} owns it by now: nothing was changed; make the plan again"
            )
        if (len(found.entries), found.checksum) != (mark.entries, mark.checksum) and ready.begun is None:
            raise JournalError(
                f"{found.path}: has {len(found.entries):,} entries, and had {mark.entries:,} when the plan was made, "
                "or others: its source has applied something, or it is another copy: make the plan again"
            )


def _journal_of(mark: JournalMark, elsewhere: Mapping[str, Journal], notify: Callable[[str], None]) -> Journal:
    found = elsewhere.get(mark.id)
    if found is None:
        found = _read(Path(mark.path), notify)
    if found.is_new or found.id != mark.id:
        what = "no such journal" if found.is_new else "another journal than the one that the plan was made with"
        raise JournalError(f"{found.path}: {what}: expected that of another source: --other-journal says where it is")
    return found


def _read(path: Path, notify: Callable[[str], None]) -> Journal:
    return read_journal(path, str, notify)
