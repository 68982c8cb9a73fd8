"""Plots the kept results of the `spark` part: CPU cost of batch authorization by accesses and by ACLs."""

import json
import re

import matplotlib as mpl

from benchmarks.report import RESULTS

_POINT = re.compile(
    r"^([\d,]+) accesses, ([\d,]+) rules(?:, once)?(: verdicts, (?:vs\.|beside) a function that returns 1)?: CPU$"
)


def points() -> list[tuple[int, int, float]]:
    """Return (accesses, ACLs, seconds of CPU) of the matching rows in results/spark.json."""
    rows = json.loads((RESULTS / "spark.json").read_text(encoding="utf-8"))["rows"]
    found = ((_POINT.match(row["what"]), row["ours"]) for row in rows)
    return sorted((int(m[1].replace(",", "")), int(m[2].replace(",", "")), cost) for m, cost in found if m)


def draw() -> None:
    """Write results/spark.svg."""
    mpl.use("svg")
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "aclog"  # reproducible output
    known = points()
    figure, (by_rows, by_rules) = plt.subplots(1, 2, figsize=(10, 4))
    rows = [(accesses, cost) for accesses, rules, cost in known if rules == 100_000]
    by_rows.loglog(*zip(*rows, strict=True), marker="o")
    by_rows.set(xlabel="accesses, at 100,000 ACLs", ylabel="seconds of CPU, whole job", title="by accesses")
    alike = next(accesses for accesses, rules, _ in known if rules == 1_000_000)
    rules = [(rules, cost / accesses * 1e6) for accesses, rules, cost in known if accesses == alike]
    by_rules.semilogx(*zip(*sorted(rules), strict=True), marker="o")
    by_rules.set(
        xlabel=f"ACLs, at {alike:,} accesses",
        ylabel="us of CPU per access, whole job",
        title="by ACLs",
        ylim=(0, None),
    )
    for axes in (by_rows, by_rules):
        axes.grid(visible=True, alpha=0.3)
    figure.tight_layout()
    figure.savefig(RESULTS / "spark.svg", metadata={"Date": None})


if __name__ == "__main__":
    draw()
