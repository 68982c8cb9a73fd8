"""Rows and a plot (results/growth.svg) of what a decision, a base and its building cost, by the number of rules."""

from collections.abc import Iterator, Sequence

import matplotlib as mpl

from benchmarks.estates.growth import Size
from benchmarks.report import RESULTS, Row

_SIDES = (("native", "native core"), ("python", "Python alone"), ("java", "Kafka's StandardAuthorizer"))


def rows(sizes: Sequence[Size]) -> Iterator[Row]:
    """Yield the figures as rows."""
    for size in sizes:
        where = f"{size.rules:,} rules"
        for place, state in enumerate(("asked for the first time", "asked again")):
            java = None if size.java is None else size.java[place]
            if size.native is not None:
                yield Row(what=f"{where}, {state}, native", ours=size.native[place], theirs=java, unit="ns")
            yield Row(what=f"{where}, {state}, Python", ours=size.python[place], theirs=java, unit="ns")
        yield Row(what=f"{where}: the base", ours=size.base_bytes / size.rules, unit="B a rule")
        yield Row(what=f"{where}: building it", ours=size.build_seconds / size.rules * 1e9, unit="ns a rule")


def draw(sizes: Sequence[Size]) -> None:
    """Write results/growth.svg."""
    mpl.use("svg")
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "aclog"  # reproducible output
    figure, (decisions, bases) = plt.subplots(1, 2, figsize=(10, 4))
    for color, (side, label) in enumerate(_SIDES):
        for place, (style, state) in enumerate((("o-", "first time"), ("o--", "again"))):
            points = [(size.rules, pair[place] / 1000) for size in sizes if (pair := getattr(size, side)) is not None]
            if points:
                decisions.loglog(*zip(*points, strict=True), style, color=f"C{color}", label=f"{label}, {state}")
    decisions.set(xlabel="rules", ylabel="us of CPU a decision", title="a decision")
    decisions.legend(fontsize=7)
    counts = [size.rules for size in sizes]
    bases.semilogx(counts, [size.base_bytes / size.rules for size in sizes], "o-", label="bytes of the base")
    bases.semilogx(counts, [size.build_seconds / size.rules * 1e8 for size in sizes], "o--", label="10 ns of building")
    bases.set(xlabel="rules", ylabel="a rule", title="the base", ylim=(0, 400))
    bases.legend(fontsize=7)
    for axes in (decisions, bases):
        axes.grid(visible=True, alpha=0.3)
    figure.tight_layout()
    figure.savefig(RESULTS / "growth.svg", metadata={"Date": None})
