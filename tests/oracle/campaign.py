"""`make oracle-long`: millions of decisions compared with the real StandardAuthorizer.

    python -m tests.oracle.campaign --decisions 5000000 --out benchmarks/results/oracle-long.txt

The seed is printed; the same seed makes the same estates and requests.
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

from tests.support.kafka.oracle import OracleProcess
from tests.support.models.differential import differences, image_of
from tests.support.models.shapes import Maker, random_shape

REQUESTS = 1000
"""Requests per estate."""


@frozen(kw_only=True)
class Part:
    """The task of one process."""

    seed: int
    decisions: int


@define(kw_only=True)
class Figures:
    """The results; `cpu` is our CPU time, `kafka` the wall time of Kafka's decisions, both in seconds."""

    estates: int = 0
    rules: int = 0
    letters: Counter = field(factory=Counter)
    named: int = 0
    by_type: int = 0
    cpu: float = 0.0
    kafka: float = 0.0
    differing: list = field(factory=list)

    def add(self, other: "Figures") -> None:
        """Add the results of another process."""
        for name in ("estates", "rules", "letters", "named", "by_type", "cpu", "kafka", "differing"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def run(part: Part) -> Figures:
    """Compare estates until the number of decisions is reached."""
    random, figures, begin = Random(part.seed), Figures(), time.process_time()
    with OracleProcess() as oracle:
        while figures.letters.total() < part.decisions:
            shape = random_shape(random)
            maker = Maker(shape)
            asks = maker.asks(min(REQUESTS, part.decisions - figures.letters.total()))
            started = time.perf_counter()
            oracle.load(maker.estate)
            answers = oracle.decide(asks)
            figures.kafka += time.perf_counter() - started
            image = image_of(maker.estate.acls, changes=shape.changes, random=maker.random)
            figures.differing += [f"{shape}\n  {text}" for text in differences(maker.estate, image, asks, answers)]
            figures.estates += 1
            figures.rules += len(maker.estate.acls)
            figures.letters.update(answer.letter for answer in answers)
            figures.named += sum(answer.rule >= 0 for answer in answers)
            figures.by_type += sum(ask.by_type for ask in asks)
    figures.cpu = time.process_time() - begin
    return figures


def report(figures: Figures, seed: int, seconds: float) -> str:
    """Return the figures, one per line."""
    letters = figures.letters
    return f"""\
Our decisions and the rules they name against those of the real StandardAuthorizer, Kafka 4.3.1 (make oracle-long)

seed                       {seed}
estates                    {figures.estates:,} with {figures.rules:,} rules
decisions                  {letters.total():,}
  allowed                  {letters["A"]:,}
  denied                   {letters["D"]:,}
  Kafka throws             {letters["E"]:,}
  of a whole resource type {figures.by_type:,}
  by a named rule          {figures.named:,}
differing                  {len(figures.differing):,}
wall time                  {seconds:,.0f} s (Kafka's answers {figures.kafka:,.0f} s, our CPU {figures.cpu:,.0f} s)
"""


def main() -> int:
    """Run and report; return 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=5_000_000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    begin, figures = time.perf_counter(), Figures()
    share = -(-chosen.decisions // chosen.workers)
    parts = [Part(seed=chosen.seed * 1000 + number, decisions=share) for number in range(chosen.workers)]
    with ProcessPoolExecutor(chosen.workers) as pool:
        for one in pool.map(run, parts):
            figures.add(one)
    text = report(figures, chosen.seed, time.perf_counter() - begin)
    print(text, *figures.differing[:20], sep="\n")
    if chosen.out is not None:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(text, encoding="utf-8")
    return 1 if figures.differing else 0


if __name__ == "__main__":
    sys.exit(main())
