"""What the pages of the past say of a history that is not whole, or is not there."""

from aclog.console.live_history import KnownHistory
from aclog.console.pages.console import Console
from aclog.console.pages.page import Mark, Notice, Page
from aclog.console.pages.span import begin_text


def no_history(console: Console, path: str, title: str, offset: int) -> Page:
    """Return the page of a source that is a single state."""
    return Page(
        path=path,
        title=title,
        answer="This source has no history: it is a single state, and nobody knows what was before.",
        mark=Mark.WARNING,
        notices=(
            Notice(
                text=f"{console.name}: what changed, when, and by whom is known of a metadata log: "
                "--log DIR or --bootstrap-controller HOST:PORT"
            ),
        ),
        offset=offset,
    )


def history_notices(known: KnownHistory, offset: int) -> tuple[Notice, ...]:
    """Return what must be known of a history to read a page rightly; `offset` is the newest state's."""
    found = []
    begin = begin_text(known)
    if begin:
        found.append(Notice(text=begin))
    if known.trouble is not None:
        text = f"Nothing after offset {known.timeline.end:,} is known of the history: {known.trouble}"
        found.append(Notice(text=text, mark=Mark.ERROR))
    elif known.timeline.end < offset:
        text = f"The history is known up to offset {known.timeline.end:,}; the newest state is at {offset:,}."
        found.append(Notice(text=text))
    return tuple(found)
