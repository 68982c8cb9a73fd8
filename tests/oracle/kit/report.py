"""The kit's result as text: a table of checks with counts, then every difference."""

from collections.abc import Iterator, Sequence

from tests.oracle.kit.assumptions import assumed_generation
from tests.oracle.kit.values import Outcome
from tests.support.kafka.release_facts import ReleaseFacts


def report(facts: ReleaseFacts, outcomes: Sequence[Outcome], seconds: float) -> str:
    """Return the text; the last line is the number of differences."""
    return "\n".join(_lines(facts, outcomes, seconds)) + "\n"


def _lines(facts: ReleaseFacts, outcomes: Sequence[Outcome], seconds: float) -> Iterator[str]:
    rules = assumed_generation(facts.version)
    yield f"Kafka {facts.version} ({facts.commit}) beside what aclog assumes of it (make oracle KAFKA={facts.version})"
    yield f"It decides by the rules of {rules}, aclog assumes. {seconds:,.0f} s."
    yield ""
    yield f"{'check':22}{'compared':>12}{'different':>12}"
    for outcome in outcomes:
        yield f"{outcome.check:22}{outcome.compared:>12,}{len(outcome.differences):>12,}"
    for outcome in outcomes:
        if outcome.notes:
            yield ""
            yield outcome.check
            yield from (f"  {note}" for note in outcome.notes)
    for outcome in outcomes:
        for difference in outcome.differences:
            yield ""
            yield f"{outcome.check}: {difference}"
    yield ""
    total = sum(len(outcome.differences) for outcome in outcomes)
    yield f"{total:,} {'difference' if total == 1 else 'differences'}" if total else "no difference"
