"""Which tier a test is of, and that none is lost between them; the quick tier starts no server."""

import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.scenarios.mutations import MUTATIONS
from tests.support.kafka.jvm import ROOT
from tests.support.runs.costly import KILLERS, killers, to_list
from tests.support.runs.tiers import (
    CASES,
    COLLECTED,
    COSTLY,
    MisplacedTestError,
    Part,
    ServerFile,
    Tier,
    UnmarkedProcessError,
    check_is_collected,
    costly,
    costly_tests,
    is_costly,
    left_out,
    part,
    runs,
    sampled,
    server_files,
    starts_server,
    table,
    tier_of,
    tiers_in,
    tries_more,
)

KAFKA = "tests/integration/test_kafka.py"
"""A file that starts servers."""
QUICK = "tests/metalog/test_varints.py"


def row(tier: str, path: str = KAFKA) -> ServerFile:
    """A row of the table in tests/README.md."""
    return ServerFile(path=path, guards="what only it would catch", seconds=1.0, tier=tier)


def item(path: str, *marks: pytest.MarkDecorator, case: str | None = None) -> Any:
    """A test of a file with marks, or a case of one."""
    by_name = {each.name: each.mark for each in marks}
    made = SimpleNamespace(nodeid=f"{path}::test_it{case or ''}", get_closest_marker=by_name.get)
    if case is not None:
        made.callspec = SimpleNamespace()
    return made


@pytest.mark.parametrize(("tier", "expected"), [("test", Tier.TEST), ("all", Tier.ALL), ("some", Tier.ALL)])
def test_a_server_test_is_of_the_tier_of_its_file(tier: str, expected: Tier) -> None:
    assert tier_of(item(KAFKA, pytest.mark.server), {KAFKA: row(tier)}) is expected


def test_a_server_test_has_a_tier_of_its_own_only_where_the_table_says_some() -> None:
    test = item(KAFKA, pytest.mark.server, pytest.mark.tier("test"))
    assert tier_of(test, {KAFKA: row("some")}) is Tier.TEST
    for tier in ("test", "all"):
        with pytest.raises(MisplacedTestError, match="must be `some`"):
            tier_of(test, {KAFKA: row(tier)})


def test_a_server_test_without_a_row_is_refused() -> None:
    with pytest.raises(MisplacedTestError, match="has no row"):
        tier_of(item(KAFKA, pytest.mark.server), {})


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ([], Tier.CHECK),
        ([pytest.mark.process], Tier.TEST),
        ([pytest.mark.slow(3)], Tier.ALL),
        ([pytest.mark.slow(3), pytest.mark.process], Tier.ALL),
        ([pytest.mark.slow(3), pytest.mark.tier("test")], Tier.TEST),
        ([pytest.mark.tier("all")], Tier.ALL),
    ],
)
def test_another_test_is_of_the_tier_of_its_marks(marks: list[pytest.MarkDecorator], expected: Tier) -> None:
    assert tier_of(item(QUICK, *marks), {}) is expected


def test_a_listed_test_is_left_to_the_tier_all() -> None:
    listed = costly_tests(f"# why\n\n{QUICK}::test_it[2]\ntests/other.py\n")
    assert listed == {f"{QUICK}::test_it[2]", "tests/other.py"}
    assert [tier_of(item(QUICK, case=f"[{case}]"), {}, listed) for case in (1, 2)] == [Tier.CHECK, Tier.ALL]
    assert tier_of(item("tests/other.py", pytest.mark.process), {}, listed) is Tier.ALL
    assert tier_of(item(QUICK, case="[3]"), {}, {f"{QUICK}::test_it"}) is Tier.ALL
    assert tier_of(item("tests/other.py", pytest.mark.tier("check")), {}, listed) is Tier.CHECK
    assert tiers_in(QUICK, "def test_it(): ...", None, {QUICK}) == set()
    assert tiers_in(QUICK, "def test_it(): ...", None, {f"{QUICK}::test_it"}) == {Tier.CHECK}


def test_each_line_of_the_list_names_a_test() -> None:
    assert sorted(costly()) == [line for line in COSTLY.read_text().splitlines() if not line.startswith("#")]
    for line in costly():
        path, *names = line.partition("[")[0].split("::")
        text = (COSTLY.parents[1] / path).read_text(encoding="utf-8")
        written = [name for name in names if name != "runTest"]  # of a state machine, which hypothesis makes
        assert all(re.search(rf"(?m)^ *(def|class|async def) {name}\b|^{name} = ", text) for name in written), line


def test_no_killer_of_a_mutation_is_listed() -> None:
    named = killers(KILLERS.read_text(encoding="utf-8"))
    assert len(named) == len(MUTATIONS)
    assert not [each for each in named if is_costly(each, costly())]


def test_what_takes_long_is_listed_but_for_the_quickest_of_a_file_and_what_must_stay() -> None:
    seconds = {f"{QUICK}::test_a": 0.3, f"{QUICK}::test_b": 0.2, f"{QUICK}::test_c": 0.05, f"{KAFKA}::test_killer": 9.0}
    cases = {f"{QUICK}::test_cases[{number}]": 0.2 for number in range(3)} | {f"{QUICK}::test_path[{COSTLY}]": 0.2}
    expected = {f"{QUICK}::{name}" for name in ("test_a", "test_b", "test_cases", "test_path")}
    assert to_list(seconds | cases, {QUICK: 7, KAFKA: 2}, {f"{KAFKA}::test_killer"}) == expected
    assert to_list({f"{QUICK}::test_a": 0.3, f"{QUICK}::test_b": 0.2}, {QUICK: 2}, ()) == {f"{QUICK}::test_a"}


def test_the_parts_of_the_suite_are_disjoint_and_are_all_of_it(request: pytest.FixtureRequest, sample: object) -> None:
    """Of what this run has collected: all of the suite in the tier `all`, where `sample` has this test run again."""
    parts: list[tuple[Tier | int, Tier]] = [(0, Tier.CHECK), (Tier.CHECK, Tier.TEST), (Tier.TEST, Tier.ALL)]
    for test, tier in request.config.stash[COLLECTED].items():
        check_is_collected(test, tier, table())
        in_parts = [runs(tier, low, high, more=False) for low, high in parts]
        assert in_parts.count(True) == 1, test.nodeid
        assert runs(tier, 0, Tier.ALL, more=False)
        again = [runs(tier, low, high, more=tries_more(test)) for low, high in parts]
        assert again[:2] == in_parts[:2]
        assert again[2] == (in_parts[2] or tries_more(test)), test.nodeid


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_each_file_is_in_one_part(parts: int) -> None:
    all_parts = [Part(number, parts) for number in range(1, parts + 1)]
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
    for path in files:
        assert [each.has(path) for each in all_parts].count(True) == 1, path
    assert all(any(map(each.has, files)) for each in all_parts)


def test_a_part_is_read_and_checked() -> None:
    assert part("2/3") == Part(2, 3)
    for text in ("0/2", "3/2", "2", "a/b", "1/0", "1/2/3"):
        with pytest.raises(ValueError, match=r"."):
            part(text)


def test_the_cases_that_are_left_out_are_always_the_same() -> None:
    cases = [item(QUICK, case=f"[{number}]") for number in range(4 * CASES)]
    dropped = left_out(cases)
    assert len(dropped) == 3 * CASES
    assert left_out(reversed(cases)) == dropped
    assert left_out([*cases[:CASES], item(QUICK)]) == set()
    few = [item(QUICK, pytest.mark.sample(1), case=f"[{number}]") for number in range(3)]
    assert len(left_out(few)) == 2


def test_a_sample_keeps_the_order_of_the_steps() -> None:
    steps = range(100)
    assert list(sampled(steps, 7)) == sorted(sampled(steps, 7))
    assert sampled(steps, 7) == sampled(steps, 7)
    assert sampled(steps, 100) == steps


@pytest.mark.parametrize(
    ("path", "text", "tier", "expected"),
    [
        (QUICK, "def test_it(): ...", None, {Tier.CHECK}),
        (QUICK, "@pytest.mark.process\ndef test_it(): ...", None, {Tier.CHECK, Tier.TEST}),
        (QUICK, '@pytest.mark.tier("test")\ndef test_it(): ...', None, {Tier.CHECK, Tier.TEST}),
        (QUICK, "pytestmark = pytest.mark.server", "test", {Tier.TEST}),
        (QUICK, "pytestmark = pytest.mark.server", "all", set()),
        (QUICK, "@pytest.mark.server\ndef test_it(): ...", "test", {Tier.CHECK, Tier.TEST}),
        (KAFKA, "def test_it(): ...", "all", set()),
        (KAFKA, '@pytest.mark.tier("test")\ndef test_it(): ...', "some", {Tier.TEST}),
        (KAFKA, "def test_it(): ...", "test", {Tier.TEST}),
    ],
)
def test_a_file_shows_the_tiers_below_all_that_it_has(
    path: str, text: str, tier: str | None, expected: set[Tier]
) -> None:
    assert tiers_in(path, text, row(tier, path) if tier else None) == expected


def test_a_test_in_a_file_that_its_run_would_not_import_is_refused() -> None:
    """A mark that comes from elsewhere, such as a class that a file imports, cannot be read in the file's text."""
    path = "tests/integration/test_migrating_kafka.py"
    rows = {path: row("all", path)}
    check_is_collected(item(path), Tier.ALL, rows)
    with pytest.raises(MisplacedTestError, match="is of the tier test, which"):
        check_is_collected(item(path), Tier.TEST, rows)


def test_rows_are_read_from_the_table() -> None:
    text = f"| file | guards | seconds | tier |\n|---|---|---|---|\n| `{KAFKA}` | a \\| b | 12.5 | some |\nother text\n"
    assert server_files(text) == {
        KAFKA: ServerFile(path=KAFKA, guards="a \\| b", seconds=12.5, tier="some"),
    }


@pytest.mark.parametrize(
    "command",
    [
        ["java", "-version"],
        ["/usr/lib/jvm/bin/java", "-cp", "x", "kafka.Kafka"],
        ["/site-packages/pyspark/bin/spark-submit", "pyspark-shell"],
        [sys.executable, "-m", "aclog", "serve", "server.properties"],
        [sys.executable, "-m", "tests.support.processes.node_zygote"],
        [sys.executable, "-m", "tests.support.runs.keeper", "kafka", "/tmp", "1"],
    ],
    ids=lambda command: " ".join(command[-2:]),
)
def test_servers_are_recognized(command: list[str]) -> None:
    assert starts_server(command)


@pytest.mark.parametrize("words", [["-m", "aclog", "acls", "list"], ["-m", "aclog", "mirror"], ["-c", "import java"]])
def test_other_commands_are_not(words: list[str]) -> None:
    assert not starts_server([sys.executable, *words])


def test_a_test_without_the_mark_cannot_start_one(request: pytest.FixtureRequest) -> None:
    with pytest.raises(UnmarkedProcessError, match="give it the mark `server`") as raised:
        subprocess.run(["java", "-version"], check=False)
    assert request.node.nodeid in str(raised.value)
