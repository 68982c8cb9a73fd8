"""Folding: rows are exact or say that they are summaries, and are never more than naive ones."""

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.analysis.difference import differences
from aclog.analysis.folding import rows
from aclog.analysis.naive_rows import naive_rows
from aclog.analysis.names import contains
from aclog.analysis.policy import Policy
from aclog.analysis.region import Difference, Direction, Region
from aclog.analysis.row import Row
from tests.support.analysis.cells import Cells
from tests.support.analysis.claims import wrong_differences
from tests.support.analysis.model import EVERY_OPERATION, PolicyModel
from tests.support.analysis.policies import changed_rules, random_pair

CAMPAIGN = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
RANDOMS = st.integers(0, 2**32 - 1).map(Random)


def regions_of(row: Row) -> list[Region]:
    """A row as regions."""
    return [
        Region(
            resource_type=clause.resource_type,
            operations=clause.operations,
            principals=row.principals,
            hosts=row.hosts,
            names=clause.names,
        )
        for clause in row.clauses
    ]


def folded(old: Policy, new: Policy) -> list[Row]:
    return rows(differences(old, new), old, new, changed_rules(old, new))


def wrong_rows(old: Policy, new: Policy, found: list[Row]) -> list[str]:
    """What is wrong with rows, as texts: exact ones hold nothing else, all together hold everything."""
    exact = [row for row in found if row.summary is None]
    if len(exact) == len(found):
        claimed = [Difference(direction=row.directions[0], region=each) for row in found for each in regions_of(row)]
        return wrong_differences(old, new, claimed)
    regions = [(row, region) for row in found for region in regions_of(row)]
    before, after, wrong = PolicyModel(old), PolicyModel(new), []
    for kind, name, principal, host in Cells.of(old, new, regions=[region for _, region in regions]).all():
        was, is_ = before.allowed(principal, host, kind, name), after.allowed(principal, host, kind, name)
        for direction, truth in ((Direction.GAINED, is_ & ~was), (Direction.LOST, was & ~is_)):
            precise = most = 0
            for row, region in regions:
                whose = kind == region.resource_type and principal in region.principals and host in region.hosts
                if whose and direction in row.directions and contains(region.names, name):
                    most |= region.operations
                    precise |= region.operations if row.summary is None else 0
            if precise & ~truth & EVERY_OPERATION or truth & ~most:
                wrong.append(f"{direction.name} {kind} {name!r} {principal} {host}: {truth:x} {precise:x} {most:x}")
    return wrong[:5]


@CAMPAIGN
@given(RANDOMS)
def test_rows_are_exact_or_summaries_and_never_more_than_naive_ones(random: Random) -> None:
    old, new = random_pair(random, odd=5)
    found = folded(old, new)
    assert wrong_rows(old, new, found) == []
    before, after = PolicyModel(old), PolicyModel(new)
    for row in found:
        assert row.witness in row
        flip = (before.allows(row.witness), after.allows(row.witness))
        assert flip in [(each is Direction.LOST, each is Direction.GAINED) for each in row.directions]
    if old.settings == new.settings:
        assert len(found) <= len(naive_rows(changed_rules(old, new)))
