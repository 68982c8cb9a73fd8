"""Decisions and the rules that they name, beside the real StandardAuthorizer of a release.

One rule in five has a range of addresses as its host, or a text that looks like one; one request in ten is for any
resource of a type; one estate in eight has pattern types that only a record can carry, around names on which Kafka
throws or never returns. Each request is decided by the Python path and by the native core.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import reduce
from itertools import islice
from random import Random

from attrs import define, field, frozen

from aclog.authorizer.settings import Generation
from tests.oracle.kit.assumptions import assumed_generation, decides_in_core
from tests.oracle.kit.estates import RangeMaker
from tests.oracle.kit.values import Difference, Outcome
from tests.support.kafka.oracle import Answer, Ask, Estate, OracleProcess
from tests.support.models.differential import Comparison, image_of, with_few_hangs
from tests.support.models.native_paths import PATHS, through
from tests.support.models.shapes import Maker

CHECK = "decisions"
REQUESTS, ODD_REQUESTS = 1000, 250
"""Requests per estate."""
ODD_ESTATES = 8
"""One estate in so many has odd pattern types."""
_HANG_MILLIS = 100
_TEXT = "the text of an ACL"
_KEPT = 50
"""Differences that one process keeps; it counts the others."""


@frozen(kw_only=True)
class Part:
    """The task of one process."""

    version: str
    seed: int
    decisions: int


@define(kw_only=True)
class Figures:
    """The results of one process, or of several; `kafka` is how long Kafka took for its answers, in seconds."""

    seen: Counter[str] = field(factory=Counter)
    kafka: float = 0.0
    differing: int = 0
    kept: list[Difference] = field(factory=list)

    def plus(self, other: "Figures") -> "Figures":
        """The results of both."""
        return Figures(
            seen=self.seen + other.seen,
            kafka=self.kafka + other.kafka,
            differing=self.differing + other.differing,
            kept=self.kept + other.kept,
        )


def check_decisions(version: str, *, decisions: int, seed: int, workers: int) -> Outcome:
    """Compare that many decisions, on each path."""
    share = -(-decisions // workers)
    parts = [Part(version=version, seed=seed * 1000 + number, decisions=share) for number in range(workers)]
    begin = time.perf_counter()
    if workers == 1:
        figures = run(parts[0])
    else:
        with ProcessPoolExecutor(workers) as pool:
            figures = reduce(Figures.plus, pool.map(run, parts))
    return Outcome(
        check=CHECK,
        compared=figures.seen["decisions"],
        differences=(*figures.kept, *_more(figures)),
        notes=tuple(_notes(figures, seed, time.perf_counter() - begin)),
    )


def _more(figures: Figures) -> Iterator[Difference]:
    if left := figures.differing - len(figures.kept):
        yield Difference(subject=f"and {left:,} more", kafka="not kept", aclog="not kept")


def _notes(figures: Figures, seed: int, seconds: float) -> Iterator[str]:
    seen = figures.seen
    yield f"seed {seed}: {seen['estates']:,} estates with {seen['rules']:,} rules"
    yield f"  hosts with a slash        {seen['range hosts']:,} rules"
    yield f"  allowed                   {seen['A']:,}"
    yield f"  denied                    {seen['D']:,}"
    yield f"  Kafka throws              {seen['E']:,}"
    yield f"  Kafka never returns       {seen['H']:,}"
    yield f"  of a whole resource type  {seen['by type']:,}"
    yield f"  by a named rule           {seen['named']:,}"
    yield f"    whose host has a slash  {seen['named range']:,}"
    for path in PATHS:
        yield f"  by the {path + ' path':19}{seen[path]:,}"
    if "native" in PATHS and not seen["in the core"]:
        yield "  the native core leaves every request to the Python path under the rules of this release"
    yield f"{seconds:,.0f} s, of which Kafka's answers {figures.kafka:,.0f} s of each process's time"


def run(part: Part) -> Figures:
    """Compare estates until the number of decisions is reached."""
    random, figures, generation = Random(part.seed), Figures(), assumed_generation(part.version)
    seen = figures.seen
    with OracleProcess(part.version) as oracle:
        while seen["decisions"] < part.decisions:
            odd = random.randrange(ODD_ESTATES) == 0
            maker = RangeMaker(random, odd_patterns=odd, plain=odd)
            asks = maker.asks(min(ODD_REQUESTS if odd else REQUESTS, part.decisions - seen["decisions"]))
            if odd:
                asks = with_few_hangs(maker.estate, asks, most=1, generation=generation)
            begin = time.perf_counter()
            texts = oracle.load(maker.estate)
            answers = oracle.decide(asks, hang_millis=_HANG_MILLIS)
            figures.kafka += time.perf_counter() - begin
            found = list(_decided_otherwise(maker, asks, answers, generation, seen, reference=odd))
            if not seen["texts that differ"]:  # one shows how the release prints all
                found += islice(_printed_otherwise(maker.estate, texts), 1)
                seen["texts that differ"] += sum(each.subject == _TEXT for each in found)
            figures.differing += len(found)
            figures.kept += found[: _KEPT - len(figures.kept)]
            _count(seen, maker.estate, asks, answers)
    return figures


def _printed_otherwise(estate: Estate, texts: Sequence[str]) -> Iterator[Difference]:
    """An audit line names a rule by this text."""
    for text, entry in zip(texts, estate.acls, strict=True):
        if text != str(entry.acl):
            yield Difference(subject=_TEXT, kafka=text, aclog=str(entry.acl))


def _decided_otherwise(
    maker: Maker,
    asks: Sequence[Ask],
    answers: Sequence[Answer],
    generation: Generation,
    seen: Counter[str],
    *,
    reference: bool,
) -> Iterator[Difference]:
    estate, shape = maker.estate, maker.shape
    image = image_of(estate.acls, changes=shape.changes, random=maker.random)
    for path in PATHS:
        comparison = Comparison(estate, through(path, image), generation)
        seen["in the core"] += len(asks) if decides_in_core(comparison.image) else 0
        seen[path] += len(asks)
        for ask, answer in zip(asks, answers, strict=True):
            if (both := comparison.both(ask, answer)) is not None:
                subject = f"{ask}, {path} path, {shape}"
                yield Difference(subject=subject, kafka=both[0], aclog=both[1])
            if reference and path == PATHS[0] and (text := comparison.reference_difference(ask, answer)) is not None:
                yield Difference(subject=f"{ask}, the reference model, {shape}", kafka=str(answer), aclog=text)


def _count(seen: Counter[str], estate: Estate, asks: Sequence[Ask], answers: Sequence[Answer]) -> None:
    seen["estates"] += 1
    seen["rules"] += len(estate.acls)
    seen["range hosts"] += sum("/" in entry.acl.host for entry in estate.acls)
    seen["decisions"] += len(asks)
    seen["by type"] += sum(ask.by_type for ask in asks)
    named = [answer.rule for answer in answers if answer.rule >= 0]
    seen["named"] += len(named)
    seen["named range"] += sum("/" in estate.acls[rule].acl.host for rule in named)
    seen.update(answer.letter for answer in answers)
