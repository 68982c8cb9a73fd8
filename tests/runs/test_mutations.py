"""The table of mutations fits the checkout: each can be applied, and its tests are there."""

import ast

import pytest

from tests.scenarios.mutations import MUTATIONS, Mutation, Run, Verdict, table
from tests.support.kafka.jvm import ROOT

PACKAGES = {path.parent.name for path in (ROOT / "aclog").glob("*/__init__.py")}


def test_there_are_twenty_and_each_package_has_one() -> None:
    assert [each.number for each in MUTATIONS] == list(range(1, 21))
    # The answers of the library and the operations of commands are those of the other packages: number 17 is a promise
    # of its own, too. The tools of mcp run commands. Servers and clients share their configuration, protocol and
    # security: 12 to 14 are theirs.
    shared = {"config", "library", "mcp", "ops", "protocol", "security"}
    assert {each.path.split("/")[1] for each in MUTATIONS} == PACKAGES - shared


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.area)
def test_it_changes_one_place_and_still_compiles(mutation: Mutation) -> None:
    text = (ROOT / mutation.path).read_text(encoding="utf-8")
    mutated = mutation.apply(text)
    assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(text))
    compile(mutated, mutation.path, "exec")


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.area)
def test_its_tests_exist(mutation: Mutation) -> None:
    for nodeid in mutation.tests:
        path, _, name = nodeid.partition("::")
        module = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        names = {each.name for each in ast.walk(module) if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))}
        assert any(each.startswith("test_") for each in names)
        assert not name or name in names, nodeid


def test_a_text_that_is_no_longer_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"mutation 1: expected its text once in .*, not 0x"):
        MUTATIONS[0].apply("")


def test_the_table() -> None:
    killer = Run(tests=3, failed="tests/test_a.py::test_b[c|d]", error="AssertionError")
    text = table(
        [
            Verdict(mutation=MUTATIONS[0], tier="check", killer=killer),
            Verdict(mutation=MUTATIONS[1]),
            Verdict(mutation=MUTATIONS[2], problem="pytest ended with 2"),
            Verdict(mutation=MUTATIONS[3], untried=True),
        ]
    )
    lines = text.splitlines()
    assert lines[2].endswith("| `tests/test_a.py::test_b[c\\|d]` (check) |")
    assert lines[3].endswith("| **survived** |")
    assert lines[4].endswith("| not judged: pytest ended with 2 |")
    assert lines[5].endswith("| no test of these tiers |")
    assert "1 of 4 are killed: 1 in the tier `check`, 0 in the tier `test`, 0 in the tier `all`." in lines
