"""A pytest plugin: `pytest --aclog rules.yaml` runs tests of Kafka rules (`aclog test`), each case as an item.

pytest loads it wherever aclog is installed, so that nothing of aclog is imported before such a file is collected.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from aclog.analysis.rule_tests.case import Case, Outcome
    from aclog.ops.test import RulesUnderTest

_FILES = pytest.StashKey[frozenset[Path]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags and the setting."""
    group = parser.getgroup("aclog", "tests of Kafka rules (aclog)")
    group.addoption(
        "--aclog",
        action="append",
        default=[],
        metavar="FILE",
        help="Also run the tests of rules in this file, as `aclog test FILE` does; can be repeated.",
    )
    group.addoption(
        "--aclog-acls",
        metavar="PATH",
        help="The rules that these tests are about, instead of those that each file names.",
    )
    parser.addini("aclog", "Files of tests of Kafka rules (aclog).", type="paths", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Add the files to what is collected."""
    paths = [config.invocation_params.dir / path for path in config.getoption("--aclog")]
    files = [path.resolve() for path in dict.fromkeys([*config.getini("aclog"), *paths])]
    config.stash[_FILES] = frozenset(files)
    config.args += [str(path) for path in files if str(path) not in config.args]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "RuleTestFileNode | None":
    """Collect the files that were named, and no others."""
    if file_path.resolve() not in parent.config.stash[_FILES]:
        return None
    return RuleTestFileNode.from_parent(parent, path=file_path)


class RuleTestFileNode(pytest.File):
    """A file of tests of rules."""

    def collect(self) -> Iterator["RuleTestItem"]:
        """Yield an item for each case."""
        from aclog.metalog.errors import MetadataError
        from aclog.sources.rule_tests import read_test_file

        try:
            cases = read_test_file(self.shown_path).cases
        except (MetadataError, OSError) as error:
            raise self.CollectError(str(error)) from error
        counts: dict[str, int] = {}
        for case in cases:
            name = f"{case.test}:{case.origin.line}: {case.text}"
            counts[name] = counts.get(name, 0) + 1
            more = f" ({counts[name]})" if counts[name] > 1 else ""
            yield RuleTestItem.from_parent(self, name=f"{name}{more}", case=case)

    @property
    def shown_path(self) -> str:
        """The path as `aclog test` would be given it."""
        here = Path.cwd()
        return str(self.path.relative_to(here) if self.path.is_relative_to(here) else self.path)

    @cached_property
    def rules(self) -> "RulesUnderTest":
        """The rules that the file is about, read once. Raises MetadataError, OSError: they cannot be."""
        from aclog.cli.flags.repository import RepositoryFlags
        from aclog.cli.flags.source import SourceFlags
        from aclog.cli.test_report import SelectingFlags

        source = SourceFlags(acls=self.config.getoption("--aclog-acls"))
        repository = RepositoryFlags()
        selection = SelectingFlags(files=[self.shown_path], source=source, repository=repository)
        (loaded,) = selection.load(repository.load())
        return loaded.rules


class RuleTestItem(pytest.Item):
    """One case."""

    def __init__(self, *, case: "Case", **more: Any) -> None:
        """Take the case."""
        super().__init__(**more)
        self.case = case

    @property
    def file(self) -> RuleTestFileNode:
        """The file that the case is of."""
        assert isinstance(self.parent, RuleTestFileNode)  # noqa: S101  # as `collect` made it
        return self.parent

    def setup(self) -> None:
        """Read the rules; what cannot be read is an error, not a failure."""
        _ = self.file.rules

    def runtest(self) -> None:
        """Run the case."""
        outcome = self.file.rules.run(self.case)
        if not outcome.passed:
            raise RuleTestFailedError(outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the screen of `aclog test` for a failing case, and one line for what cannot be read."""
        from aclog.analysis.rule_tests.results import failure_lines
        from aclog.metalog.errors import MetadataError, printable

        if isinstance(excinfo.value, RuleTestFailedError):
            lines = failure_lines(excinfo.value.outcome, self.file.rules.state)
            return "\n".join(map(printable, lines))
        if isinstance(excinfo.value, MetadataError | OSError):
            return printable(str(excinfo.value))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the case is written."""
        line = self.case.origin.line
        return self.path, line - 1, f"{self.case.test} ({self.file.shown_path}:{line})"


class RuleTestFailedError(Exception):
    """A case does not hold."""

    def __init__(self, outcome: "Outcome") -> None:
        """Take the outcome of the case."""
        super().__init__(outcome.case.text)
        self.outcome = outcome
