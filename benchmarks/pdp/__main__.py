"""Measures `aclog pdp`, OPA and pycasbin in one run: `make bench-pdp`; kept as benchmarks/results/pdp.md."""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from benchmarks.measurement import percentile
from benchmarks.pdp import casbin_rival, servers
from benchmarks.pdp.estate import BATCH, Question, make_batches, make_rules
from benchmarks.report import Row, keep, show

_SINGLE_MS, _AIM = 2.0, 50_000.0
_ROUNDS = 20


@frozen(kw_only=True)
class Batched:
    """What batches took."""

    per_cpu_second: float
    per_second: float
    decisions: Sequence[bool]


def singles(point: servers.DecisionPoint, questions: Sequence[Question]) -> list[float]:
    """Return the milliseconds of questions that are asked one by one on a connection."""
    bodies = [point.body(question) for question in questions]
    connection, took = point.connect(), []
    for body in bodies:
        begin = time.perf_counter()
        servers.post(connection, point.one, body)
        took.append((time.perf_counter() - begin) * 1000)
    connection.close()
    return took


def best_singles(
    mine: servers.DecisionPoint, other: servers.DecisionPoint, questions: Sequence[Question]
) -> Iterator[Row]:
    """Yield rows of questions asked one by one, of each side in turn; the best round of each, and its CPU in all."""
    points = (mine, other)
    for point in points:
        singles(point, questions)
    before = [point.cpu_seconds() for point in points]
    rounds = [[singles(point, questions) for point in points] for _ in range(_ROUNDS)]
    used = [point.cpu_seconds() - begin for point, begin in zip(points, before, strict=True)]
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        ours, theirs = (min(percentile(each[side], share) for each in rounds) for side in range(2))
        yield Row(what=f"one question over HTTP, {name}, vs. OPA", ours=ours, theirs=theirs, unit="ms")
    yield Row(what="one question over HTTP, p99", ours=ours, unit="ms", target=_SINGLE_MS)
    count = len(questions) * _ROUNDS
    yield _more("one question over HTTP, a CPU second, vs. OPA", count / used[0], count / used[1])


def batched(point: servers.DecisionPoint, batches: Sequence[Sequence[Question]]) -> Batched:
    """Ask batches one after the other on a connection."""
    bodies = [point.batch_body(batch) for batch in batches]
    connection = point.connect()
    before, begin = point.cpu_seconds(), time.perf_counter()
    answers = [servers.post(connection, point.many, body) for body in bodies]
    took, used = time.perf_counter() - begin, point.cpu_seconds() - before
    connection.close()
    count = BATCH * len(batches)
    decisions = [decision for answer in answers for decision in point.decisions(answer)]
    return Batched(per_cpu_second=count / used, per_second=count / took, decisions=decisions)


def run(scratch: Path, count: int) -> Iterator[Row]:
    """Yield rows for so many batches, the first of which is asked one by one instead."""
    rules = make_rules()
    batches = make_batches(rules, count)
    asked, *rest = batches
    with servers.ours(rules, scratch) as mine, servers.opa(rules, scratch) as other:
        yield from best_singles(mine, other, asked)
        for name in ("asked for the first time", "asked again"):
            found, told = batched(mine, rest), batched(other, rest)
            if found.decisions != told.decisions:
                raise AssertionError("OPA decides otherwise")
            what = f"batches of {BATCH:,} over HTTP, {name}"
            yield _more(f"{what}, a CPU second, vs. OPA", found.per_cpu_second, told.per_cpu_second)
            yield _more(f"{what}, a second of one client, vs. OPA", found.per_second, told.per_second)
            yield _more(f"{what}, a CPU second", found.per_cpu_second, None, _AIM)
        few = [question for batch in rest[:5] for question in batch]
        speed, decisions = casbin_rival.decisions_per_second(rules, few, scratch)
        if decisions != list(found.decisions[: len(few)]):
            raise AssertionError("pycasbin decides otherwise")
        what = f"batches of {BATCH:,} over HTTP, asked again, a CPU second, vs. pycasbin in its process"
        yield _more(what, found.per_cpu_second, speed)


def _more(what: str, ours: float, theirs: float | None, target: float | None = None) -> Row:
    return Row(what=what, ours=ours, theirs=theirs, unit="decisions", target=target, more_is_better=True)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pdp", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter; results are not kept")
    quick = parser.parse_args().quick
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        rows = list(run(Path(scratch), 20 if quick else 90))
    title = "The decision point vs. OPA and pycasbin"
    show(title, rows)
    if not quick:
        keep("pdp", f"{title} (load average {before:.1f} before, {os.getloadavg()[0]:.1f} after)", rows)


if __name__ == "__main__":
    main()
