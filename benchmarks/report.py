"""Tables of results: figures, baselines, ratios and targets, printed and kept as files."""

import json
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from attrs import asdict, frozen
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


@frozen(kw_only=True)
class Row:
    """One figure, with that of the baseline if there is one, and a target for their ratio or for the figure alone."""

    what: str
    ours: float
    unit: str
    theirs: float | None = None
    target: float | None = None
    """Minimum of theirs/ours (ours/theirs if more is better); without `theirs`, a limit on ours."""
    more_is_better: bool = False

    @property
    def ratio(self) -> float | None:
        """How many times better ours is than the baseline."""
        if self.theirs is None:
            return None
        return self.ours / self.theirs if self.more_is_better else self.theirs / self.ours

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target."""
        if self.target is None:
            return None
        if self.ratio is not None:
            return self.ratio >= self.target
        return self.ours >= self.target if self.more_is_better else self.ours <= self.target

    def cells(self) -> tuple[str, ...]:
        """Return the row as text: what, ours, theirs, ratio, target, met."""
        sign = ">=" if self.theirs is not None or self.more_is_better else "<="
        times = "x" if self.theirs is not None else ""
        return (
            self.what,
            _number(self.ours, self.unit),
            "" if self.theirs is None else _number(self.theirs, self.unit),
            "" if self.ratio is None else f"{_short(self.ratio)}x",
            "" if self.target is None else f"{sign} {_short(self.target)}{times}",
            {None: "", True: "yes", False: "NO"}[self.met],
        )


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _number(value: float, unit: str) -> str:
    return f"{_short(value)} {unit}"


HEAD = ("what", "aclog", "baseline", "ratio", "target", "met")


def show(title: str, rows: Sequence[Row]) -> None:
    """Print a table."""
    table = Table(title=title, title_justify="left")
    for number, head in enumerate(HEAD):
        table.add_column(head, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*row.cells(), style="red" if row.met is False else None)
    Console(width=140).print(table)


def machine() -> str:
    """Return where and when a table was made, and of which commit."""
    stamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, {stamp}, commit {_commit()}"


def _commit() -> str:
    """Return the commit of the checkout, marked if files of the code differ from it; `unknown` without a history."""
    git = ("git", "-C", str(Path(__file__).parent))
    show = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    code = ("aclog", "native", "benchmarks/*.py", "benchmarks/**/*.py")
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", *(f":/{each}" for each in code)], check=False)
    return "unknown" if show.returncode else f"{show.stdout.strip()}{' with changes' if changed.returncode else ''}"


def keep(name: str, title: str, rows: Sequence[Row]) -> Path:
    """Write a table under benchmarks/results, as Markdown and as JSON; a name may contain a directory."""
    stamp = machine()
    lines = [f"# {title}", "", stamp, "", "| " + " | ".join(HEAD) + " |", "|---|" + "---:|" * (len(HEAD) - 1)]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    path = RESULTS / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = {"machine": stamp, "rows": [{**asdict(row), "ratio": row.ratio, "met": row.met} for row in rows]}
    (RESULTS / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return path
