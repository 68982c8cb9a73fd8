"""Progress bars on stderr; none if it is not a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from aclog.metalog.printable import printable

Advance: TypeAlias = Callable[[int, int | None], None]
"""Called with the amount done and the total, if it is known."""


@contextmanager
def progress(what: str) -> Iterator[Advance]:
    """Show a bar during the `with`; it is removed at the end."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(printable(what), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
