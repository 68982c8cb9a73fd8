"""`make campaign-differences`: the engine of differences beside our authorizer and beside the real StandardAuthorizer.

    python -m tests.analysis.campaign --cells 10000000 --witnesses 1000000 --out benchmarks/results/differences.txt

Cells: random requests to random pairs of policies; regions must hold exactly those that our authorizer decides
differently. Witnesses: requests of each region, and the rules that are said to decide it, before and after; Kafka's
class must decide so, and name these rules. The seed is printed; the same seed makes the same policies and requests.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from random import Random

from attrs import define, evolve, field

from aclog.analysis.comparison import differences
from aclog.analysis.policy import Policy, deciding
from aclog.analysis.regions import Difference, Direction, Region, Request, only, operations_of, witness
from aclog.authorizer.acl import ResourcePattern, StandardAcl, StandardAclWithId
from aclog.authorizer.codes import AclOperation, AclPermissionType
from aclog.authorizer.interface import Action, AuthorizationResult, InvalidRequestError, RequestContext
from tests.support.analysis.cells import TYPES, Cells
from tests.support.analysis.claims import union
from tests.support.analysis.model import EVERY_OPERATION
from tests.support.analysis.policies import NAME_LETTERS, random_pair
from tests.support.kafka.oracle import Answer, Ask, Estate, OracleProcess, Rule
from tests.support.models.differential import BASES, KAFKA_BUG, with_few_hangs

OPERATIONS = [operation for operation in AclOperation if EVERY_OPERATION >> operation & 1]
GROUPS = 400
"""Random principals, hosts and names for each pair of policies; all 13 operations are asked of each."""
WITNESSES = 6
"""At most so many requests of each region."""


@define(kw_only=True)
class Figures:
    """What was compared."""

    pairs: int = 0
    rules: int = 0
    regions: int = 0
    cells: int = 0
    changed: int = 0
    witnesses: int = 0
    stuck: int = 0
    wrong: list[str] = field(factory=list)

    def add(self, other: "Figures") -> None:
        """Add the results of another process."""
        for name in ("pairs", "rules", "regions", "cells", "changed", "witnesses", "stuck", "wrong"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def count(self, old: Policy, new: Policy, found: Sequence[Difference]) -> None:
        """Count a pair of policies."""
        self.pairs += 1
        self.rules += len(old.acls) + len(new.acls)
        self.regions += len(found)


# --- cells beside our authorizer --------------------------------------------------------------------------------------


def compare_cells(seed: int, cells: int) -> Figures:
    """Compare pairs of policies until the number of cells is reached."""
    random, figures = Random(seed), Figures()
    while figures.cells < cells:
        old, new = random_pair(random, most=random.choice([4, 12, 12, 30, 80]), more=random.choice([1, 3, 10]), odd=3)
        found = list(differences(old, new))
        figures.count(old, new, found)
        claims = {d: union(each.region for each in found if each.direction is d) for d in Direction}
        for kind, name, principal, host in random_cells(random, Cells.of(old, new)):
            was, is_ = (allowed(policy, principal, host, kind, name) for policy in (old, new))
            figures.cells += len(OPERATIONS)
            figures.changed += (was ^ is_).bit_count()
            for direction, truth in ((Direction.GAINED, is_ & ~was), (Direction.LOST, was & ~is_)):
                said = claims[direction](kind, name, principal, host)
                if said != truth:
                    where = f"{principal} from {host} on {kind} {name!r}"
                    figures.wrong.append(f"pair {figures.pairs} of seed {seed}: {where}: {said:x}, not {truth:x}")
    return figures


def random_cells(random: Random, cells: Cells) -> Iterable[tuple[int, str, str, str]]:
    """Yield resource types, names, principals and hosts; two names in three are changed a little."""
    principals, hosts, names = cells.principals(), cells.hosts(), {kind: cells.names(kind) for kind in TYPES}
    for _ in range(GROUPS):
        kind = random.choice([2, 2, 2, *TYPES])
        name = random.choice(names[kind])
        if kind != 4 and random.randrange(3):
            name = random.choice([name[:-1], name + random.choice(NAME_LETTERS), random.choice(NAME_LETTERS) + name])
        if name:
            yield kind, name, random.choice(principals), random.choice(hosts)


def allowed(policy: Policy, principal: str, host: str, kind: int, name: str) -> int:
    """Return the operations that our authorizer allows, as a mask; none where it throws."""
    context = RequestContext(principal=principal, host=host)
    pattern = ResourcePattern(resource_type=kind, name=name)
    actions = [Action(operation=operation, resource_pattern=pattern) for operation in OPERATIONS]
    mask = 0
    for action in actions:
        try:
            (result,) = policy.authorizer.authorize(context, [action])
        except InvalidRequestError:
            continue
        mask |= (result is AuthorizationResult.ALLOWED) << action.operation
    return mask


# --- witnesses beside Kafka's class -----------------------------------------------------------------------------------


def compare_witnesses(seed: int, witnesses: int) -> Figures:
    """Compare pairs of policies until the number of witnesses is reached."""
    random, figures = Random(seed), Figures()
    with OracleProcess() as oracle:
        while figures.witnesses < witnesses:
            old, new = random_pair(random, most=random.choice([12, 60, 150]), more=60, odd=2, kafka=True)
            found = list(differences(old, new))
            figures.count(old, new, found)
            asked = [(each.direction, request) for each in found for request in requests_of(each.region, random)]
            requests = [request for _, request in asked]
            answered = [_answered(oracle, policy, requests) for policy in (old, new)]
            for (direction, request), before, after in zip(asked, *answered, strict=True):
                figures.witnesses += 1
                gained = direction is Direction.GAINED
                for policy, answer, expected in ((old, before, not gained), (new, after, gained)):
                    if answer is None:
                        figures.stuck += 1
                    elif _told(policy, request) != answer or (answer[0] == "A") is not expected:
                        where = f"pair {figures.pairs} of seed {seed}: {request}"
                        figures.wrong.append(f"{where}: Kafka {answer}, we {_told(policy, request)}, {direction}")
    return figures


def requests_of(region: Region, random: Random) -> set[Request]:
    """Return the witness of a region, and those of some parts of it."""
    found = {witness(region)}
    for _ in range(WITNESSES - 1):
        operation = random.choice(list(operations_of(region.operations)))
        principals = region.principals
        if not principals.complement:
            principals = only(random.choice(principals.named))
        names = (random.choice(region.names),)
        found.add(witness(evolve(region, operations=1 << operation, principals=principals, names=names)))
    return found


def _answered(oracle: OracleProcess, policy: Policy, requests: Sequence[Request]) -> list[tuple[str, object] | None]:
    """Return for each request what Kafka says: a letter, and the rule or reason; None where it gives no answer."""
    entries = list(policy.acls)
    settings = policy.settings
    estate = Estate(
        acls=entries,
        super_users=";".join(sorted(settings.super_users)) or None,
        allow_everyone="true" if settings.allow_everyone else None,
    )
    asks = [Ask(False, r.principal, r.host, r.operation, r.resource_type, r.resource_name) for r in requests]
    asked = set(with_few_hangs(estate, asks, most=0))
    oracle.load(estate)
    answers = iter(oracle.decide([ask for ask in asks if ask in asked]))
    return [_read(next(answers), entries) if ask in asked else None for ask in asks]


def _read(answer: Answer, entries: Sequence[StandardAclWithId]) -> tuple[str, object] | None:
    if answer.letter == "H" or answer.error.startswith(KAFKA_BUG):
        return None
    if answer.letter == "E":
        return "E", None
    basis = BASES.get(Rule(answer.rule)) if answer.rule < 0 else None
    return answer.letter, entries[answer.rule].acl if basis is None else basis.value


def _told(policy: Policy, request: Request) -> tuple[str, object]:
    """Return what we say in the form of `_answered`."""
    rule = deciding(policy, request)
    if rule is None:
        return "E", None
    allows = rule.permission_type == AclPermissionType.ALLOW if isinstance(rule, StandardAcl) else rule != "DefaultDeny"
    return "A" if allows else "D", rule


# --- all of it --------------------------------------------------------------------------------------------------------


def spread(compare: Callable[[int, int], Figures], count: int, chosen: argparse.Namespace) -> tuple[Figures, float]:
    """Return the figures of all processes and the wall time, in seconds."""
    begin, figures = time.perf_counter(), Figures()
    share = -(-count // chosen.workers)
    seeds = [chosen.seed * 1000 + number for number in range(chosen.workers)]
    with ProcessPoolExecutor(chosen.workers) as pool:
        for one in pool.map(partial(_compared, compare, share), seeds):
            figures.add(one)
    return figures, time.perf_counter() - begin


def _compared(compare: Callable[[int, int], Figures], count: int, seed: int) -> Figures:
    return compare(seed, count)


def report(cells: Figures, witnesses: Figures, seconds: Sequence[float], seed: int) -> str:
    """Return the figures, one per line."""
    return f"""\
The engine of differences (make campaign-differences)

seed                        {seed}

Random cells beside our authorizer
pairs of policies           {cells.pairs:,} with {cells.rules:,} rules
regions                     {cells.regions:,}
cells                       {cells.cells:,}
  decided differently       {cells.changed:,}
wrong                       {len(cells.wrong):,}
wall time                   {seconds[0]:,.0f} s

Witnesses and the rules that decide them, before and after, beside the real StandardAuthorizer of Kafka 4.3.1
pairs of policies           {witnesses.pairs:,} with {witnesses.rules:,} rules
regions                     {witnesses.regions:,}
witnesses                   {witnesses.witnesses:,}
decisions                   {2 * witnesses.witnesses:,}
  Kafka gives no answer     {witnesses.stuck:,}
wrong                       {len(witnesses.wrong):,}
wall time                   {seconds[1]:,.0f} s
"""


def main() -> int:
    """Run and report; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=10_000_000)
    parser.add_argument("--witnesses", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    cells, cells_time = spread(compare_cells, chosen.cells, chosen)
    witnesses, witnesses_time = spread(compare_witnesses, chosen.witnesses, chosen)
    text = report(cells, witnesses, (cells_time, witnesses_time), chosen.seed)
    print(text, *cells.wrong[:20], *witnesses.wrong[:20], sep="\n")
    if chosen.out is not None:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(text, encoding="utf-8")
    return 1 if cells.wrong or witnesses.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
