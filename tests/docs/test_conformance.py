"""docs/conformance.md names modules and tests that exist; each statement has a proof or says what superseded it."""

import ast
from functools import cache

import pytest

from tests.docs.conformance import KIPS, ROOT, differences, statements

STATEMENTS = statements()


@cache
def functions(path: str) -> frozenset[str]:
    """The tests that pytest collects from a file: `name`, or `Class::name`."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.startswith("Test")]
    return frozenset({f"{each.name}::{name}" for each in classes for name in in_body(each)}.union(in_body(tree)))


def in_body(node: ast.Module | ast.ClassDef) -> list[str]:
    found = [each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [name for name in found if name.startswith("test_")]


def is_collected(name: str) -> bool:
    path, _, function = name.partition("::")
    return path.rpartition("/")[2].startswith("test_") and (ROOT / path).is_file() and function in functions(path)


@pytest.mark.parametrize("kip", KIPS)
def test_ids_are_unique_and_dense(kip: int):
    assert [each.number for each in STATEMENTS if each.kip == kip] == list(
        range(1, 1 + sum(each.kip == kip for each in STATEMENTS))
    )


def test_every_statement_is_of_one_of_the_kips():
    assert {each.kip for each in STATEMENTS} == set(KIPS)


@pytest.mark.tier("test")
def test_modules_and_tests_exist():
    assert [(each.id, name) for each in STATEMENTS for name in each.modules if not (ROOT / name).is_file()] == []
    assert [(each.id, name) for each in STATEMENTS for name in each.tests if not is_collected(name)] == []


def test_a_statement_has_a_test_or_is_superseded():
    assert [each.id for each in STATEMENTS if not (each.text and (each.tests or each.superseded))] == []
    assert [each.id for each in STATEMENTS if each.tests and not each.modules] == [], "what has a test is somewhere"
    assert [each.id for each in STATEMENTS if set(each.superseded) - {each.id}] == [], "a row points to its own row"


def test_what_is_superseded_is_in_the_tables_of_differences():
    assert [each.id for each in STATEMENTS if each.superseded] == [row for row, *_ in differences()]


def test_a_difference_has_a_text_and_what_was_shipped():
    assert [cells for cells in differences() if len(cells) != 3 or not all(cells)] == []


@pytest.mark.parametrize(
    ("name", "collected"),
    [
        ("tests/docs/test_conformance.py::test_the_check_would_see_a_wrong_name", True),
        ("tests/docs/test_conformance.py::is_collected", False),
        ("tests/docs/test_conformance.py::test_none", False),
        ("tests/docs/conformance.py::statements", False),
        ("tests/docs/test_nothing.py::test_none", False),
        ("tests/cli/test_acls.py::TestAdd::test_all_acls_of_a_command_are_one_batch", True),
        ("tests/cli/test_acls.py::test_all_acls_of_a_command_are_one_batch", False),
    ],
)
def test_the_check_would_see_a_wrong_name(name: str, collected: bool):
    assert is_collected(name) is collected
