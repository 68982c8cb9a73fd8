"""Tests that compare with another source: `same_as` and `no_new_access`."""

from pathlib import Path

from aclog.analysis.rule_tests.no_new_access import NoNewAccess
from aclog.analysis.rule_tests.same_as import SameAs
from aclog.sources.formats.node import Node


def same_as_case(node: Node, *, test: str, directory: Path) -> SameAs:
    """Return the case of a `same_as`; paths begin at `directory`. Raises ConfigError: it is not understood."""
    raise node.error(f"same_as: not supported yet (test {test}, {directory})")


def no_new_access_case(node: Node, *, test: str, directory: Path) -> NoNewAccess:
    """Return the case of a `no_new_access`; paths begin at `directory`. Raises ConfigError: it is not understood."""
    raise node.error(f"no_new_access: not supported yet (test {test}, {directory})")
