"""What has to change so that a place, and who owns what of it, is as it was before an apply."""

from collections.abc import Set as AbstractSet

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.rule_content import acl_of_content
from aclog.planning.errors import JournalError
from aclog.planning.journal.entry import EntryKind, JournalAction, fold, owned_after
from aclog.planning.journal.journal import Journal
from aclog.planning.planner import Held, PlannedChange

_LEAST_PREFIX = 4
"""Of an apply's id, characters that name it."""


def change_back(journal: Journal, held: Held, apply: str | None = None) -> PlannedChange:
    """Return what undoes an apply, and all later ones of this journal; by default the newest one.

    `apply` is its id, or how that begins. What others did meanwhile stays: a rule that is there again though this
    journal had removed it, or gone though it had added it, is left as it is; and so is what another journal owns, too.
    Nothing is owned again that is there without this journal: it may be somebody else's by now.

    Every apply of the journal has ended (aclog.planning.journal.settling).

    Raises:
        JournalError: there is no such apply, or several begin so.

    """
    at, there = _place_of(journal, apply), held.there
    before, undone = journal.entries[:at], [each for each in journal.entries[at:] if each.kind is EntryKind.DONE]
    owned_before, owned = owned_after(before), set(owned_after(before))
    added: dict[bytes, bool] = {}
    for entry in undone:
        fold(owned, entry.steps)
        for step in entry.steps:
            if step.action in (JournalAction.ADD, JournalAction.REMOVE):
                added.setdefault(step.content, step.action is JournalAction.ADD)
    to_add = {content for content, was_added in added.items() if not was_added} - there
    to_remove = {content for content, was_added in added.items() if was_added and content in owned} & there
    to_remove -= held.others
    own_after = ((owned | to_add) - to_remove) & owned_before
    return PlannedChange(
        added=_acls(to_add),
        removed=_acls(to_remove),
        released=_acls(((owned | to_add) - to_remove) - own_after),
        foreign=len(there - owned),
        owned=len(owned),
    )


def _place_of(journal: Journal, apply: str | None) -> int:
    """Return where the BEGIN of an apply is among the entries."""
    begun = [(at, entry.apply) for at, entry in enumerate(journal.entries) if entry.kind is EntryKind.BEGIN]
    if not begun:
        raise JournalError(f"{journal.path}: nothing was applied with this journal: there is nothing to go back from")
    if apply is None:
        return begun[-1][0]
    found = [at for at, each in begun if each == apply or (len(apply) >= _LEAST_PREFIX and each.startswith(apply))]
    if len(found) != 1:
        what = "no apply has the id" if not found else f"{len(found)} applies have ids that begin with"
        raise JournalError(f"{journal.path}: {what} {apply[:40]}: expected one of its {len(begun):,} applies")
    return found[0]


def _acls(contents: AbstractSet[bytes]) -> tuple[StandardAcl, ...]:
    return tuple(acl_of_content(content) for content in sorted(contents))
