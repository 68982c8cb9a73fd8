"""Cells of the pages of the past: moments, changes, and who made them."""

from aclog.authorizer.acl import acl_text
from aclog.console.pages.asked import url
from aclog.console.pages.page import Cell, Mark
from aclog.console.rule_timeline import RuleTimeline
from aclog.planning.place import ApplyNote
from aclog.snapshots.moments import timestamp_text
from aclog.snapshots.rule_history import Change, ChangeKind

CHANGES = "/changes"


def time_of(timestamp: int) -> str:
    """Return a time in ms since 1970 as text; empty if it is unknown."""
    return timestamp_text(timestamp) if timestamp >= 0 else ""


def change_url(timeline: RuleTimeline, end_offset: int) -> str:
    """Return the way to what became visible with the state at an offset."""
    before = timeline.offset(timeline.before(timeline.position(end_offset)))
    return url(CHANGES, since=before, until=end_offset)


def kind_cell(change: Change) -> Cell:
    """Return whether a rule was added or removed."""
    added = change.kind is ChangeKind.ADDED
    text = "added" if added else "removed"
    return Cell(f"{text}, at this offset or before" if change.gap else text, mark=Mark.ADDED if added else Mark.REMOVED)


def who_cells(note: ApplyNote | None) -> tuple[Cell, ...]:
    """Return the apply, who made it, and the commit that it was made from."""
    if note is None:
        return (Cell(""), Cell(""), Cell(""))
    return (Cell(note.apply), Cell(note.who), Cell(note.git or ""))


def change_text(change: Change) -> str:
    """Return a change in words."""
    return f"{'added' if change.kind is ChangeKind.ADDED else 'removed'} {acl_text(change.rule.acl)}"
