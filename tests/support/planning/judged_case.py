"""A random case of plan and apply, killed or failed at every point, and judged by the plain model."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from attrs import define, field

from aclog.analysis.regions import Region
from aclog.authorizer.acl import StandardAcl
from aclog.metalog.errors import LogError
from aclog.planning.plan import Batching, Plan
from tests.support.analysis.claims import union
from tests.support.planning.cases import Case, random_case
from tests.support.planning.killed_applies import Ended, KilledApply, Recovery, listed_denials
from tests.support.planning.memory_place import Killed
from tests.support.planning.walk import walk


@define(kw_only=True)
class Judged:
    """What came of a case."""

    case: Case
    plan: Plan
    ended: Ended
    """A run that was killed once, at random."""
    kills: int = 0
    ways: int = 0
    """Different sequences of states that were to be seen."""
    denied: bool = False
    """Whether anything was denied on the way that both ends allow."""
    wrong: list[str] = field(factory=list)


def judge(seed: int, home: Path, *, allow_everyone: bool) -> Judged:
    """Plan a random case, apply it undisturbed, then killed at each of its points; judge all that was to be seen."""
    case = random_case(seed, allow_everyone=allow_everyone)
    plan = KilledApply(case=case, home=home, random=Random(seed)).plan()
    whole = KilledApply(case=case, home=home, random=Random(seed)).run(None, Recovery.AGAIN)
    judged = Judged(case=case, plan=plan, ended=whole)
    random = Random(seed)
    point = random.randrange(whole.points) if whole.points else None
    regions = listed_denials(plan, case)
    ways = {whole.visible: "undisturbed"}
    judged.wrong += _judge_way(judged, whole.visible, regions, exact=True)
    judged.wrong += [f"undisturbed: {text}" for text in _wrong_end(case, whole)]
    for kill in range(whole.points):
        recovery = random.choice(list(Recovery))
        second = random.choice([None, random.randrange(12)])
        error = random.choice([Killed, Killed, LogError, OSError])
        ended = KilledApply(case=case, home=home, random=Random(seed)).run(kill, recovery, second, error=error)
        label = f"{error.__name__} at {kill}, then {recovery} (killed at {second})"
        judged.kills += 1
        judged.wrong += [f"{label}: {text}" for text in _wrong_end(case, ended)]
        if kill == point:
            judged.ended = ended
        if ended.visible not in ways:
            ways[ended.visible] = label
            judged.wrong += [f"{label}: {text}" for text in _judge_way(judged, ended.visible, regions, exact=False)]
    judged.ways = len(ways)
    return judged


def _wrong_end(case: Case, ended: Ended) -> Iterator[str]:
    last = ended.visible[-1]
    if last != case.end:
        yield f"missing {_listed(case.end - last)}, too much {_listed(last - case.end)}"
    if any(not state >= case.foreign for state in ended.visible):
        yield "a rule of others was touched"
    if ended.owned != case.owned_at_last:
        more, less = ended.owned - case.owned_at_last, case.owned_at_last - ended.owned
        yield f"owns too much {_listed(more)}, too little {_listed(less)}"


def _judge_way(
    judged: Judged, states: Sequence[frozenset[StandardAcl]], regions: Sequence[Region], *, exact: bool
) -> Iterator[str]:
    """Yield what is wrong with a sequence of states; `exact`: everything listed must be seen, too."""
    settings = judged.case.settings
    walked = walk(states, settings, regions)
    judged.denied |= bool(walked.denials)
    if exact:
        yield from (f"transient denials: {text}" for text in walked.misclaimed[:3])
    listed = union(regions)
    for cell, operations in walked.denials.items():
        if operations & ~listed(cell.kind, cell.name, cell.principal, cell.host):
            yield f"{cell} is denied on the way, and not listed"
    yield from (f"{cell} is allowed on the way only" for cell in walked.openings)
    for cell, operations in walked.flaps.items():
        if operations & ~walked.denials.get(cell, 0):
            yield f"{cell} flaps"
    if walked.denials and (not settings.allow_everyone or judged.case.batching is Batching.ALL):
        yield "denials where none can be"


def _listed(rules: frozenset[StandardAcl]) -> str:
    return "; ".join(sorted(map(str, rules))) or "nothing"
