"""`make oracle-long`: millions of decisions compared with the real StandardAuthorizer.

    python -m tests.oracle.campaign --decisions 5000000 --out benchmarks/results/oracle-long.txt
    python -m tests.oracle.campaign --decisions 400000 --odd-patterns --out benchmarks/results/oracle-odd-patterns.txt

The seed is printed; the same seed makes the same estates and requests. With `--odd-patterns` the rules have pattern
types that only a record can carry, on names that sort around `*`, and more is compared: the reference model,
explanations, and the bulk authorizer that Spark runs.
"""

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

from attrs import define, field, frozen

from tests.support.kafka.oracle import Answer, Estate, OracleProcess
from tests.support.models.differential import differences, image_of, other_paths, with_few_hangs
from tests.support.models.shapes import ODD, ODD_PATTERNS, Maker, random_shape

REQUESTS, ODD_REQUESTS = 1000, 250
"""Requests per estate; fewer, for more estates, with odd pattern types."""
EXPLAINED = 25
"""How many of them are explained as well, with odd pattern types."""


@frozen(kw_only=True)
class Part:
    """The task of one process."""

    seed: int
    decisions: int
    odd_patterns: bool


@define(kw_only=True)
class Figures:
    """The results; `cpu` is our CPU time, `kafka` the wall time of Kafka's decisions, both in seconds."""

    estates: int = 0
    rules: int = 0
    letters: Counter = field(factory=Counter)
    named: int = 0
    by_type: int = 0
    odd: int = 0
    cpu: float = 0.0
    kafka: float = 0.0
    differing: list = field(factory=list)

    def add(self, other: "Figures") -> None:
        """Add the results of another process."""
        for name in ("estates", "rules", "letters", "named", "by_type", "odd", "cpu", "kafka", "differing"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def run(part: Part) -> Figures:
    """Compare estates until the number of decisions is reached."""
    random, figures, begin = Random(part.seed), Figures(), time.process_time()
    with OracleProcess() as oracle:
        while figures.letters.total() < part.decisions:
            shape = random_shape(random, **(ODD if part.odd_patterns else {}))
            maker = Maker(shape)
            requests = ODD_REQUESTS if part.odd_patterns else REQUESTS
            asks = maker.asks(min(requests, part.decisions - figures.letters.total()))
            if part.odd_patterns:
                asks = with_few_hangs(maker.estate, asks, most=0)
            started = time.perf_counter()
            oracle.load(maker.estate)
            answers = oracle.decide(asks)
            figures.kafka += time.perf_counter() - started
            image = image_of(maker.estate.acls, changes=shape.changes, random=maker.random)
            found = differences(maker.estate, image, asks, answers, reference=part.odd_patterns)
            if part.odd_patterns:
                found += other_paths(maker.estate, image, asks, explained=EXPLAINED)
                figures.odd += sum(odd_is_named(maker.estate, answer) for answer in answers)
            figures.differing += [f"{shape}\n  {text}" for text in found]
            figures.estates += 1
            figures.rules += len(maker.estate.acls)
            figures.letters.update(answer.letter for answer in answers)
            figures.named += sum(answer.rule >= 0 for answer in answers)
            figures.by_type += sum(ask.by_type for ask in asks)
    figures.cpu = time.process_time() - begin
    return figures


def odd_is_named(estate: Estate, answer: Answer) -> bool:
    """Return whether Kafka names a rule whose pattern type only a record can carry."""
    return answer.rule >= 0 and estate.acls[answer.rule].acl.pattern_type in ODD_PATTERNS


def report(figures: Figures, chosen: argparse.Namespace, seconds: float) -> str:
    """Return the figures, one per line."""
    letters, seed = figures.letters, chosen.seed
    odd = f"    of an odd pattern type {figures.odd:,}\n" if chosen.odd_patterns else ""
    made_by = "make oracle-odd-patterns" if chosen.odd_patterns else "make oracle-long"
    return f"""\
Our decisions and the rules they name against those of the real StandardAuthorizer, Kafka 4.3.1 ({made_by})

seed                       {seed}
estates                    {figures.estates:,} with {figures.rules:,} rules
decisions                  {letters.total():,}
  allowed                  {letters["A"]:,}
  denied                   {letters["D"]:,}
  Kafka throws             {letters["E"]:,}
  of a whole resource type {figures.by_type:,}
  by a named rule          {figures.named:,}
{odd}differing                  {len(figures.differing):,}
wall time                  {seconds:,.0f} s (Kafka's answers {figures.kafka:,.0f} s, our CPU {figures.cpu:,.0f} s)
"""


def main() -> int:
    """Run and report; return 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=5_000_000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--odd-patterns", action="store_true")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    begin, figures = time.perf_counter(), Figures()
    share = -(-chosen.decisions // chosen.workers)
    seeds = [chosen.seed * 1000 + number for number in range(chosen.workers)]
    parts = [Part(seed=seed, decisions=share, odd_patterns=chosen.odd_patterns) for seed in seeds]
    with ProcessPoolExecutor(chosen.workers) as pool:
        for one in pool.map(run, parts):
            figures.add(one)
    text = report(figures, chosen, time.perf_counter() - begin)
    print(text, *figures.differing[:20], sep="\n")
    if chosen.out is not None:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(text, encoding="utf-8")
    return 1 if figures.differing else 0


if __name__ == "__main__":
    sys.exit(main())
