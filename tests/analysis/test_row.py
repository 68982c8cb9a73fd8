"""What rows claim is never more than changed, unless they say `at most`, and of what; and their examples."""

import json
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy
from aclog.analysis.regions import Direction, ExistingNames, contains
from aclog.analysis.rows import folding
from aclog.analysis.rows.folding import FEW_NAMES
from aclog.analysis.rows.report import ReportRow, markdown_lines, row_cells, row_lines, sarif_log
from aclog.analysis.rows.row import Bound, Row
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from tests.analysis.test_folding import folded, regions_of, wrong_rows
from tests.support.analysis.cells import Cells
from tests.support.analysis.model import EVERY_OPERATION, PolicyModel
from tests.support.analysis.policies import distinct, image_of, random_pair
from tests.support.runs.profiles import examples

CAMPAIGN = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck), database=None)
RANDOMS = st.integers(0, 2**32 - 1).map(Random)
EVERYONE = "User:*"


def rule(
    name: str,
    operation: str,
    who: str = EVERYONE,
    *,
    prefixed: bool = False,
    deny: bool = False,
    host: str = "*",
    kind: ResourceType = ResourceType.TOPIC,
) -> StandardAcl:
    return StandardAcl(
        resource_type=kind,
        resource_name=name,
        pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        principal=who,
        host=host,
        operation=AclOperation[operation],
        permission_type=AclPermissionType.DENY if deny else AclPermissionType.ALLOW,
    )


def overclaims(old: Policy, new: Policy, found: list[Row]) -> list[str]:
    """The rows that claim more than changed, judged cell by cell by the model, but for what they are a bound on."""
    cells = Cells.of(old, new, regions=[region for row in found for region in regions_of(row)])
    models = PolicyModel(old), PolicyModel(new)
    return [text for row in found for text in _overclaims(row, cells, *models)]


def _overclaims(row: Row, cells: Cells, before: PolicyModel, after: PolicyModel) -> Iterator[str]:
    who = [each for each in cells.principals() if each in row.principals]
    hosts = [each for each in cells.hosts() if each in row.hosts]
    if not hosts:  # the differences themselves are from a host such as 010.0.0.1, which is nobody's address
        return
    affected = set()
    for clause in row.clauses:
        of_clause = 0
        for name in (each for each in cells.names(clause.resource_type) if contains(clause.names, each)):
            some, every = 0, EVERY_OPERATION
            for principal in who:
                for host in hosts:
                    asked = principal, host, clause.resource_type, name
                    was, is_ = before.allowed(*asked), after.allowed(*asked)
                    changed = is_ & ~was if Direction.GAINED in row.directions else 0
                    changed |= was & ~is_ if Direction.LOST in row.directions else 0
                    some, every = some | changed, every & changed
                    if changed & clause.operations:
                        affected.add(principal)
            of_clause |= some
            if row.bound is Bound.NONE and clause.operations & ~every:
                yield f"{row}: {name!r}: {clause.operations & ~every:x} did not change for all"
            if row.bound is Bound.WHO and clause.operations & ~some:
                yield f"{row}: {name!r}: {clause.operations & ~some:x} changed for nobody"
        if row.bound is Bound.NAMES and clause.operations & ~of_clause:
            yield f"{row}: {clause.operations & ~of_clause:x} changed on no name"
    if row.bound is not Bound.ALL and not row.principals.complement and affected != set(row.principals.named):
        yield f"{row}: only {affected} are affected"


def wide_change(random: Random) -> tuple[Policy, Policy]:
    """An estate of many small rules, and one wide rule that comes or goes: most of it reads as summaries."""
    names = [f"{family}{number}" for family in ("pii-", "pii-eu-", "t") for number in range(random.randint(1, 4))]
    hosts = ["*", "*", "10.0.0.1", "10.0.0.2"]
    operations = ["READ", "WRITE", "DELETE", "DESCRIBE", "ALL"]
    rules = [
        rule(
            random.choice(names),
            random.choice(operations),
            f"User:{random.randrange(8)}",
            host=random.choice(hosts),
            kind=random.choice([ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP]),
        )
        for _ in range(random.randint(2, 25))
    ]
    rules += [
        rule(
            random.choice(["pii-eu", "pii-", "*", "t0"]),
            random.choice(operations),
            random.choice([EVERYONE, "User:1"]),
            prefixed=random.random() < 0.6,
            deny=True,
            host=random.choice(hosts),
        )
        for _ in range(random.randrange(3))
    ]
    wide = [
        rule(
            random.choice(["*", "pii-", "", "t"]),
            random.choice(operations),
            random.choice([EVERYONE, EVERYONE, "User:1"]),
            prefixed=random.random() < 0.6,
            deny=random.random() < 0.5,
            host=random.choice(hosts),
        )
        for _ in range(random.choice([1, 1, 2]))
    ]
    chosen = Settings(allow_everyone=random.random() < 0.2)
    small = Policy(image_of(distinct(rules)), chosen)
    large = Policy(image_of(distinct([*rules, *wide])), chosen)
    return (small, large) if random.random() < 0.5 else (large, small)


@pytest.mark.parametrize("few", [FEW_NAMES, 1])
@CAMPAIGN
@given(random=RANDOMS)
def test_no_row_claims_more_than_changed_but_what_it_is_a_bound_on(few: int, random: Random) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "FEW_NAMES", few)
        for old, new in (random_pair(random, most=20, more=6, odd=3), wide_change(random)):
            found = folded(old, new)
            assert wrong_rows(old, new, found) == []
            assert overclaims(old, new, found) == []


@pytest.mark.parametrize(("few", "bounds"), [(FEW_NAMES, {Bound.NONE, Bound.WHO}), (1, {Bound.WHO, Bound.NAMES})])
def test_the_cases_have_bounds_of_each_kind(monkeypatch: pytest.MonkeyPatch, few: int, bounds: set[Bound]) -> None:
    monkeypatch.setattr(folding, "FEW_NAMES", few)
    seen = {row.bound for seed in range(60) for row in folded(*wide_change(Random(seed)))}
    assert bounds <= seen


OWN = [rule(f"pii-{number}", "READ", f"User:{number}") for number in range(3)]


def one_row(old: list[StandardAcl], new: list[StandardAcl]) -> Row:
    before, after = Policy(image_of(old)), Policy(image_of(new))
    (row,) = folded(before, after)
    assert wrong_rows(before, after, [row]) == overclaims(before, after, [row]) == []
    return row


BOUND = "(some principals and hosts may be unaffected)"


def headline(row: Row) -> str:
    return next(row_lines(ReportRow(row=row)))


def test_all_is_not_said_where_an_operation_stays_denied() -> None:
    shut = rule("*", "WRITE", deny=True)
    row = one_row([*OWN, shut], [*OWN, shut, rule("*", "ALL")])
    assert headline(row) == f"GAINED  everyone: at most ALL except WRITE on TOPIC *, from any host {BOUND}"


def test_a_prefix_is_said_without_the_names_that_stay_denied() -> None:
    shut = rule("pii-eu", "ALL", prefixed=True, deny=True)
    row = one_row([*OWN, shut], [*OWN, shut, rule("pii-", "READ", prefixed=True)])
    what = "at most READ, DESCRIBE on TOPIC (pii-* except pii-eu*)"
    said = f"GAINED  everyone: {what}, from any host {BOUND}"
    assert headline(row) == said


def test_few_who_are_affected_are_named_instead_of_everyone_and_so_are_their_hosts() -> None:
    own = [rule(f"pii-{number}", "READ", f"User:{number}", host=f"10.0.0.{number}") for number in range(3)]
    row = one_row(own, [*own, rule("*", "ALL", deny=True)])
    assert headline(row) == (
        "LOST  User:0, User:1, User:2: at most READ, DESCRIBE on TOPIC pii-0, pii-1, pii-2, "
        f"from 10.0.0.0, 10.0.0.1, 10.0.0.2 {BOUND}"
    )


def many() -> list[StandardAcl]:
    kinds = ("READ", "WRITE", "CREATE")
    return [
        rule(f"team-{number % 40}.topic-{number}", kinds[number % 3], f"User:app-{number % 300}")
        for number in range(600)
    ]


def test_names_that_are_too_many_to_list_are_a_bound_without_what_is_denied_anyway() -> None:
    shut = rule("team-1", "ALL", prefixed=True, deny=True)
    old = [*many(), shut]
    before, after = Policy(image_of(old)), Policy(image_of([*old, rule("*", "ALL", deny=True)]))
    found = Comparison.of(before, after, topics=ExistingNames.of(["team-0.topic-0", "team-1.topic-1", "other"]))
    (report,) = found.rows()
    lines = list(row_lines(report))
    assert lines[0] == (
        "LOST  everyone: at most READ, WRITE, CREATE, DESCRIBE on TOPIC (* except team-1*), from any host "
        "(some principals, names and hosts may be unaffected)"
    )
    assert lines[-2] == "  covers up to 2 existing topics"
    assert lines[-1].startswith("  for example User:app-0 READ on a topic named 'team-0.topic-0' from 127.0.0.1; ")


def test_each_form_for_people_says_it() -> None:
    shut = rule("*", "WRITE", deny=True)
    before, after = Policy(image_of([*OWN, shut])), Policy(image_of([*OWN, shut, rule("*", "ALL")]))
    found = Comparison.of(before, after)
    said = f"at most ALL except WRITE on TOPIC * {BOUND}: "
    assert said in row_cells(found.rows()[0])[2]
    table = "\n".join(markdown_lines(found.rows()))
    assert said.replace("*", "\\*") in table
    assert "at most ALL except WRITE" in str(found)
    assert "at most ALL except WRITE" in json.dumps(sarif_log(found.rows(), version="1", path=None))


def test_an_exact_row_does_not_say_it() -> None:
    row = one_row([], [rule("pii-", "READ", prefixed=True)])
    assert headline(row) == "GAINED  everyone: READ, DESCRIBE on TOPIC pii-*, from any host"


@pytest.mark.parametrize(
    ("topics", "example"),
    [
        (None, "a topic named 'pii-' (an example name)"),
        ([], "a topic named 'pii-' (an example name)"),
        (["orders"], "a topic named 'pii-' (an example name)"),
        (["orders", "pii-b", "pii-a"], "a topic named 'pii-a'"),
        (["pii-", "pii--a"], "a topic named 'pii-'"),
    ],
)
def test_the_example_is_on_an_existing_topic_if_one_is_known(topics: list[str] | None, example: str) -> None:
    come = rule("pii-", "READ", "User:a", prefixed=True)
    names = None if topics is None else ExistingNames.of(topics)
    (report,) = Comparison.of(Policy(image_of([])), Policy(image_of([come])), topics=names).rows()
    *_, last = row_lines(report)
    assert last.startswith(f"  for example User:a READ on {example} from 127.0.0.1; before: DefaultDeny; after: ALLOW ")
    assert report.row.witness in report.row


def test_an_existing_topic_of_a_bound_is_an_example_only_if_its_access_changed() -> None:
    old = [*many(), rule("a", "ALL", deny=True)]
    before, after = Policy(image_of(old)), Policy(image_of([*old, rule("*", "ALL", deny=True)]))
    (report,) = Comparison.of(before, after, topics=ExistingNames.of(["a", "team-0.topic-0"])).rows()
    assert report.row.witness.resource_name == "team-0.topic-0"
    assert report.row.before != report.row.after


def test_a_name_that_a_rule_has_is_no_placeholder() -> None:
    row = one_row([], [rule("g", "READ", "User:a", kind=ResourceType.GROUP)])
    assert "READ on a group named 'g' from" in list(row_lines(ReportRow(row=row)))[-1]


@pytest.mark.parametrize("number", [2, 40])
def test_a_summary_that_is_exact_after_all_does_not_say_it(number: int) -> None:
    come = [rule(f"a{each}.", "READ", "User:a", prefixed=True) for each in range(number)]
    row = one_row([], come)
    assert row.bound is Bound.NONE
    assert "at most" not in headline(row)
