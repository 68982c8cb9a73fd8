"""Consoles on states that a test holds in its hands."""

from aclog.authorizer.settings import Settings
from aclog.console.live import LiveState
from aclog.console.pages.page import Cell, CommandLine, Page, Parameters, Table, url
from aclog.console.pages.states import Console, States
from aclog.console.pages.views import VIEWS
from aclog.snapshots.image import StateSource
from tests.support.web.points import HeldSource


def console_of(source: HeldSource | StateSource, *, settings: Settings | None = None, name: str = "held") -> Console:
    """A console that has read its source once; `look` reads it again."""
    live = LiveState(source=source, seconds=60, tell=lambda why: None)
    live._look()
    return Console(
        name=name,
        states=States(live=live, settings=settings or Settings()),
        command=CommandLine(source=("--log", "a dir")),
    )


def look(console: Console) -> None:
    """Let it read its source again."""
    console.states.live._look()


def view(console: Console, path: str, **fields: object) -> Page:
    """What a view shows, asked as by its address."""
    return VIEWS[path](console, Parameters.of(url("", **fields).removeprefix("?")))


def table(page: Page, key: str) -> Table:
    """One of its tables."""
    [match] = [each for each in page.tables() if each.key == key]
    return match


def column(page: Page, key: str, title: str) -> list[str]:
    """The texts of a column."""
    rows = table(page, key)
    place = [each.key for each in rows.columns].index(title)
    return [row.cells[place].text for row in rows.rows]


def cells(page: Page) -> list[Cell]:
    """All cells of its tables."""
    return [cell for each in page.tables() for row in each.rows for cell in row.cells]
