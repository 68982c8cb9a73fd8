"""What is decided of every request on the way through the states of a plan, by the plain model: slow, and apart."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from attrs import define, field

from aclog.analysis.policy import Policy
from aclog.analysis.regions import Region
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.settings import Settings
from aclog.planning.plan import Step
from tests.support.analysis.cells import Cells
from tests.support.analysis.claims import union
from tests.support.analysis.model import PolicyModel
from tests.support.analysis.policies import image_of


class Cell(NamedTuple):
    """Where requests for all operations are looked at together."""

    kind: int
    name: str
    principal: str
    host: str


@define(kw_only=True)
class Walk:
    """What was decided on a way through some states otherwise than at both of its ends; by cell, operations."""

    denials: dict[Cell, int] = field(factory=dict)
    """Both ends allow it, and a state on the way denies it."""
    openings: dict[Cell, int] = field(factory=dict)
    """Both ends deny it, and a state on the way allows it."""
    flaps: dict[Cell, int] = field(factory=dict)
    """Its decision changed more than once."""
    misclaimed: list[str] = field(factory=list)
    """Where the regions given are not exactly the denials."""


def walk(states: Sequence[Iterable[StandardAcl]], settings: Settings, claimed: Iterable[Region] = ()) -> Walk:
    """Look at every representative cell in every state; `claimed` are regions that should hold just the denials."""
    regions, policies = list(claimed), [Policy(image_of(list(state)), settings) for state in states]
    models, claim, result = [PolicyModel(policy) for policy in policies], union(regions), Walk()
    kinds = {rule.acl.resource_type for policy in policies for rule in policy.acls}
    kinds |= {region.resource_type for region in regions}
    for cell in map(Cell._make, Cells.of(*policies, regions=regions).all()):
        if cell.kind not in kinds:
            continue
        masks = [model.allowed(cell.principal, cell.host, cell.kind, cell.name) for model in models]
        _look(cell, masks, result)
        listed = claim(cell.kind, cell.name, cell.principal, cell.host)
        if listed != result.denials.get(cell, 0):
            result.misclaimed.append(f"{cell}: {result.denials.get(cell, 0):x}, not {listed:x}")
    return result


def _look(cell: Cell, masks: Sequence[int], result: Walk) -> None:
    always, ever = masks[0], masks[0]
    changed = again = 0
    for before, after in pairwise(masks):
        again |= changed & (before ^ after)
        changed |= before ^ after
        always, ever = always & after, ever | after
    ends = masks[0] | masks[-1]
    for cells, operations in (
        (result.denials, masks[0] & masks[-1] & ~always),
        (result.openings, ever & ~ends),
        (result.flaps, again),
    ):
        if operations:
            cells[cell] = operations


def states_of(base: Iterable[StandardAcl], steps: Iterable[Step]) -> Iterator[frozenset[StandardAcl]]:
    """Yield what is visible: the base, and what each batch makes of it."""
    now = set(base)
    yield frozenset(now)
    for _, batch in groupby(steps, key=lambda step: step.batch):
        for step in batch:
            if step.adds is (step.acl in now):
                raise AssertionError(f"{step} of what is {'there' if step.adds else 'not there'}")
            now = now | {step.acl} if step.adds else now - {step.acl}
        yield frozenset(now)
