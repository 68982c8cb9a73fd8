"""Folding: rows are exact or say that they are summaries, and are never more than naive ones."""

from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from aclog.analysis.comparison import differences
from aclog.analysis.policy import Policy
from aclog.analysis.regions import (
    EVERYONE,
    Difference,
    Direction,
    Literal,
    NamePart,
    Region,
    Subtree,
    contains,
    names_text,
    who_text,
)
from aclog.analysis.rows import row as row_module
from aclog.analysis.rows.folding import rows
from aclog.analysis.rows.report import candidates_of, naive_rows
from aclog.analysis.rows.row import Row, Setting, fold, folds_to_more, summary_text, what_text
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType
from aclog.authorizer.settings import Settings
from tests.support.analysis.cells import Cells
from tests.support.analysis.claims import wrong_differences
from tests.support.analysis.commits import commits
from tests.support.analysis.model import EVERY_OPERATION, PolicyModel
from tests.support.analysis.policies import changed_rules, entry_of, image_of, random_pair
from tests.support.builders.acls import acl, record_of
from tests.support.runs.profiles import examples

EXACTLY_TOLD = (Setting.SEMANTICS,)
CAMPAIGN = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck), database=None)
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


def test_ranges_that_begin_to_count_are_told_exactly() -> None:
    rules = [
        StandardAcl(
            resource_type=2,
            resource_name=name,
            pattern_type=3,
            principal=who,
            host="10.0.0.0/8",
            operation=3,
            permission_type=3,
        )
        for name, who in (("t", "User:a"), ("u", "User:*"))
    ]
    acls = image_of(rules)
    found = folded(Policy(acls, Settings()), Policy(acls, Settings(cidr=True)))
    assert [(str(row.principals.named), row.summary) for row in found] == [("('User:a',)", None), ("()", None)]


@CAMPAIGN
@example(Random(64622))  # a range that begins to count, on a name that a rule for everyone also opens
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
    # What settings and ranges change is told exactly, apart from the rules that change: it divides their rows.
    candidates = candidates_of(old, new, [])
    for_settings = sum(4 if each.is_exact or each.setting in EXACTLY_TOLD else 1 for each in candidates)
    assert len(found) <= len(naive_rows(changed_rules(old, new))) + for_settings


def test_as_many_parts_are_left_as_folding_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there are too many parts to fold until those that lie in the widest one are left out."""
    monkeypatch.setattr(row_module, "MOST", 6)
    inner: list[NamePart] = [Literal(name=f"a{n}") for n in range(5)]
    outer: list[NamePart] = [Subtree(prefix="a"), Subtree(prefix="bb", except_literals=("bbb",)), Literal(name="bbb")]
    for parts in (inner, outer, [*inner, *outer], [*inner, *outer, *(Literal(name=f"c{n}") for n in range(5))]):
        count = len(fold(parts))
        assert [folds_to_more(parts, most) for most in (count - 1, count)] == [True, False]


def test_years_of_commits_read_in_a_few_rows() -> None:
    counts, before = [], Policy(AclsImage.empty())
    for commit in commits(seed=3, count=120):
        after = Policy(before.acls.apply(commit.records()))
        found = rows(differences(before, after, changed=commit.rules()), before, after, commit.changed())
        assert len(found) <= len(naive_rows(commit.changed()))
        counts.append(len(found))
        before = after
    counts = sorted(counts[1:])  # the first one sets the estate up
    assert counts[len(counts) // 2] <= 2
    assert counts[len(counts) * 95 // 100] <= 6


@pytest.fixture(scope="module")
def many() -> AclsImage:
    """Rules of 300 principals on 2,000 topics."""
    return image_of(
        [acl(f"team-{n % 40}.topic-{n}", f"User:app-{n % 300}", operation=AclOperation(3 + n % 3)) for n in range(2000)]
    )


def test_a_deny_for_everyone_is_one_row(many: AclsImage) -> None:
    deny = acl("*", "User:*", operation=AclOperation.ALL, permission_type=AclPermissionType.DENY)
    old, new = Policy(many), Policy(many.apply([record_of(entry_of(deny))]))
    (row,) = rows(differences(old, new), old, new, [(True, deny)])
    assert (row.directions, row.principals, names_text(row.clauses[0].names)) == ((Direction.LOST,), EVERYONE, "*")
    assert row.after == deny
    assert row.summary is not None
    assert summary_text(row, row.summary) == (
        "300 principals lose all previous access here (before the change, 2,000 ALLOW rules covered part of it)"
    )
    (back,) = rows(differences(new, old), new, old, [(False, deny)])
    assert back.summary is not None
    assert summary_text(back, back.summary) == (
        "300 principals gain access that other rules grant (after the change, 2,000 ALLOW rules cover part of it)"
    )


@pytest.mark.parametrize(
    ("changed", "who", "what"),
    [
        (Settings(allow_everyone=True), "everyone", "ALL on (every TOPIC except team-0.topic-0"),
        (Settings(super_users=frozenset({"User:app-7", "User:new"})), "User:app-7, User:new", "ALL on everything"),
        (Settings(super_users=frozenset({"User:new"})), "User:new", "ALL on everything"),
    ],
)
def test_a_changed_setting_is_one_row(many: AclsImage, changed: Settings, who: str, what: str) -> None:
    old, new = Policy(many), Policy(many, changed)
    (row,) = rows(differences(old, new), old, new, [])
    assert who_text(row.principals) == who
    assert what_text(row.clauses).startswith(what)
    assert row.directions == (Direction.GAINED,)
    (back,) = rows(differences(new, old), new, old, [])
    assert back.directions == (Direction.LOST,)
    assert back.clauses == row.clauses
