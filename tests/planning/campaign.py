"""`make campaign-plan`: random changes of rules of several people, planned, applied, killed at every point, and judged.

    python -m tests.planning.campaign --cases 10000 --out benchmarks/results/plan.txt

A case is what is there, what of it a journal owns, and what is wanted, or asked for; it is planned and applied in a
place in memory that shows all at once, resource by resource, or rule by rule. It is applied undisturbed, and then
again for each point at which it can be killed (each call of the place, each batch that is to be seen, before, within
and behind each line of the journal), and ended by `apply`, `apply --resume` or a new plan, in which it may be killed
once more. Every state that was to be seen is judged by the plain model on every representative request. Each case is
run without and with allow.everyone.if.no.acl.found. The seed is printed; the same seed makes the same cases.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from attrs import define, field

from aclog.authorizer.acl import StandardAcl, object_of_rule
from aclog.terminal.columns import json_text
from tests.support.planning.judged_case import Judged, judge

_TOGETHER = 20
"""How many cases a process takes at a time."""


@define(kw_only=True)
class Figures:
    """What was judged."""

    cases: int = 0
    steps: int = 0
    removed: int = 0
    present: int = 0
    kills: int = 0
    ways: int = 0
    denied: int = 0
    wrong: list[str] = field(factory=list)
    kept: list[str] = field(factory=list)
    """A case a line, for a judge of its own."""

    def add(self, other: "Figures") -> None:
        """Add the figures of others."""
        for name in ("cases", "steps", "removed", "present", "kills", "ways", "denied", "wrong", "kept"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def count(self, judged: Judged) -> None:
        """Count a case."""
        self.cases += 1
        self.steps += len(judged.plan.steps)
        self.removed += sum(not step.adds for step in judged.plan.steps)
        self.present += len(judged.case.foreign & judged.case.target)
        self.kills += judged.kills
        self.ways += judged.ways
        self.denied += judged.denied
        self.wrong += [f"seed {judged.case.seed}: {text}" for text in judged.wrong]


def judge_cases(seeds: range, *, allow_everyone: bool, keep: bool) -> Figures:
    """Judge some cases in a directory of their own."""
    figures = Figures()
    # Journals are made durable a hundred thousand times: in memory that costs nothing.
    memory = Path("/dev/shm")  # a directory of its own in it
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as home:
        for seed in seeds:
            judged = judge(seed, Path(home), allow_everyone=allow_everyone)
            figures.count(judged)
            if keep:
                figures.kept.append(json_text(case_object(judged)))
    return figures


def case_object(judged: Judged) -> dict[str, Any]:
    """Return what a judge of its own needs: states as sets of rules, what was seen as steps, and what was listed."""
    case, visible = judged.case, judged.ended.visible
    settings = case.settings
    killed_at = max(judged.ended.killed_at - 1, 0)
    return {
        "seed": case.seed,
        "batching": case.batching.value,
        "settings": {
            "superUsers": sorted(settings.super_users),
            "allowEveryone": settings.allow_everyone,
            "semantics": "documented" if settings.documented else "kafka",
            "cidr": settings.cidr,
        },
        "base": _objects(case.there),
        "target": _objects(case.target),
        "foreign": _objects(case.foreign),
        "steps": list(_seen(visible)),
        "killed": {"base": _objects(visible[killed_at]), "steps": list(_seen(visible[killed_at:]))},
        "transient": list(judged.plan.transient),
    }


def _seen(visible: tuple[frozenset[StandardAcl], ...]) -> Iterator[dict[str, object]]:
    for number, (before, after) in enumerate(pairwise(visible)):
        for action, rules in (("ADD", after - before), ("REMOVE", before - after)):
            for rule in _objects(rules):
                yield {"action": action, "rule": rule, "batch": number}


def _objects(rules: frozenset[StandardAcl]) -> list[dict[str, object]]:
    return [dict(object_of_rule(rule)) for rule in sorted(rules, key=str)]


def _all_cases(chosen: argparse.Namespace, *, allow_everyone: bool) -> Figures:
    last = chosen.seed + chosen.cases
    parts = [range(begin, min(begin + _TOGETHER, last)) for begin in range(chosen.seed, last, _TOGETHER)]
    figures = Figures()
    with ProcessPoolExecutor(chosen.workers) as pool:
        work = partial(judge_cases, allow_everyone=allow_everyone, keep=chosen.keep is not None)
        for found in pool.map(work, parts):
            figures.add(found)
    return figures


def report(off: Figures, on: Figures, seed: int, seconds: float) -> str:
    """Return the figures, one per line."""
    lines = [
        "Plan and apply, killed at every point (make campaign-plan)",
        "",
        f"first seed                            {seed}",
        f"{'allow.everyone.if.no.acl.found':36}{'off':>12}{'on':>12}",
    ]
    for title, name in (
        ("cases", "cases"),
        ("steps of their plans", "steps"),
        ("  removals", "removed"),
        ("wanted rules of others, left alone", "present"),
        ("kills, each ended and judged", "kills"),
        ("different ways that were seen", "ways"),
        ("cases with a denial on the way", "denied"),
    ):
        lines.append(f"{title:36}{getattr(off, name):>12,}{getattr(on, name):>12,}")
    lines.append(f"{'wrong':36}{len(off.wrong):>12,}{len(on.wrong):>12,}")
    lines.append(f"wall time                           {seconds:>12,.0f} s")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run and report; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, help="write each case, with one of its kills, as a line of JSON")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    begin = time.perf_counter()
    off, on = (_all_cases(chosen, allow_everyone=setting) for setting in (False, True))
    text = report(off, on, chosen.seed, time.perf_counter() - begin)
    print(text, *off.wrong[:20], *on.wrong[:20], sep="\n")
    if chosen.keep is not None:
        chosen.keep.write_text("".join(f"{line}\n" for line in (*off.kept, *on.kept)), encoding="utf-8")
    if chosen.out is not None:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(text, encoding="utf-8")
    return 1 if off.wrong or on.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
