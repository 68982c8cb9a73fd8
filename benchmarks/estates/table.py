"""The table of the ten shapes: the sides beside one another, and what is wanted of each."""

import json
from collections.abc import Sequence

from attrs import asdict
from rich.console import Console
from rich.table import Table

from benchmarks.estates.compare import Figure
from benchmarks.report import RESULTS, machine

HEAD = ("shape", "rules", "state", "Kafka", "native", "ratio", "wanted", "met", "Python", "ratio", "wanted", "met")


def cells(figure: Figure) -> tuple[str, ...]:
    """Return a figure as a row of texts."""
    row = [figure.shape, f"{figure.rules:,}", figure.state, _us(figure.java)]
    for side, ours in (("native", figure.native), ("python", figure.python)):
        met = {None: "", True: "yes", False: "NO"}[figure.met(side)]
        ratio = "" if ours is None else f"{_short(figure.java / ours)}x"
        row += ["not installed" if ours is None else _us(ours), ratio, figure.wanted(side), met]
    return tuple(row)


def show(title: str, figures: Sequence[Figure]) -> None:
    """Print the table."""
    table = Table(title=title, title_justify="left")
    for number, head in enumerate(HEAD):
        table.add_column(head, justify="left" if number in {0, 2} else "right")
    for figure in figures:
        short = False in {figure.met("native"), figure.met("python")}
        table.add_row(*cells(figure), style="red" if short else None)
    Console(width=150).print(table)


def keep(name: str, title: str, figures: Sequence[Figure]) -> None:
    """Write the table under benchmarks/results, as Markdown and as JSON."""
    stamp = machine()
    lines = [f"# {title}", "", stamp, "", "| " + " | ".join(HEAD) + " |", "|---" * 3 + "|---:" * (len(HEAD) - 3) + "|"]
    lines += ["| " + " | ".join(cells(figure)) + " |" for figure in figures]
    (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    rows = [{**asdict(each), "met": {side: each.met(side) for side in ("native", "python")}} for each in figures]
    (RESULTS / f"{name}.json").write_text(
        json.dumps({"machine": stamp, "rows": rows}, indent=1) + "\n", encoding="utf-8"
    )


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _us(nanos: float) -> str:
    return f"{_short(nanos / 1000)} us"
