"""A progress bar in the last line of a terminal, drawn by rich in a thread of its own."""

import sys
from collections.abc import Callable, Iterable

from rich.console import Console, RenderableType
from rich.file_proxy import FileProxy
from rich.filesize import decimal
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text

_PER_SECOND = 5
_MINUTE, _HOUR = 60, 3600


def is_shown() -> bool:
    """Return whether a bar is on the screen: output to stderr then goes above it."""
    return isinstance(sys.stderr, FileProxy)


class Bar(Progress):
    """One task, whose amounts are read at each redraw; prints of other threads appear above it."""

    def __init__(self, what: str, unit: str, amounts: Callable[[], tuple[int, int | None]]) -> None:
        """Take the text, and a function that returns the amount done and the total."""
        self._amounts = amounts
        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            _KnownBar(bar_width=30),
            _Amount(unit),
            _Time(),
            console=_Console(stderr=True),
            transient=True,
            refresh_per_second=_PER_SECOND,
            redirect_stdout=sys.stdout.isatty(),
        )
        self._task = self.add_task(what, total=None)

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the current line."""
        if self.task_ids:
            done, total = self._amounts()
            self.update(self._task, completed=done, total=total)
        return super().get_renderables()


class _Console(Console):
    """A console that leaves the cursor as it is: a process that is killed could not show it again."""

    def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002 - rich's signature
        """Do nothing."""
        return False


class _KnownBar(BarColumn):
    """The bar; nothing while the total is unknown, as the spinner turns already."""

    def render(self, task: Task) -> RenderableType:  # type: ignore[override]
        """Return the bar."""
        return super().render(task) if task.total else Text("")


class _Amount(ProgressColumn):
    """How much is done, of how much."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        """Return the amount; nothing before there is one."""
        if not task.completed and not task.total:
            return Text("")
        amounts = [task.completed] if task.total is None else [task.completed, task.total]
        if self._unit == "bytes":
            return Text(" of ".join(decimal(int(each)) for each in amounts))
        return Text(f"{' of '.join(f'{int(each):,}' for each in amounts)} {self._unit}".rstrip())


class _Time(ProgressColumn):
    """The estimated remaining time if known, otherwise the elapsed time."""

    def render(self, task: Task) -> Text:
        """Return the time."""
        if task.total and task.time_remaining is not None:
            return Text(f"{_clock(task.time_remaining)} left", style="dim")
        return Text(_clock(task.elapsed or 0), style="dim")


def _clock(seconds: float) -> str:
    whole = round(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE}:{whole % _MINUTE:02d}"
    return f"{whole // _HOUR}:{whole % _HOUR // _MINUTE:02d}:{whole % _MINUTE:02d}"
