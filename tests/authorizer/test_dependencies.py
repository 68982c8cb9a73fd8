"""The authorizer needs no other product (KIP-11): libraries of values and columns, and the records of the log."""

import ast
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "aclog" / "authorizer"
LIBRARIES = {"attrs", "numpy"}


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found.add(".".join(node.module.split(".")[:2]))
        elif isinstance(node, ast.Import):
            found |= {".".join(alias.name.split(".")[:2]) for alias in node.names}
    return found


def test_the_authorizer_is_self_contained():
    names = set().union(*map(imported, PACKAGE.rglob("*.py")))
    ours = {name for name in names if name.split(".")[0] == "aclog"}
    assert ours <= {"aclog.authorizer", "aclog.metalog"}
    assert {name.split(".")[0] for name in names - ours} - sys.stdlib_module_names == LIBRARIES
