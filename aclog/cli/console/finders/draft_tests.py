"""The tests that a draft may turn red or green, as their files have them."""

from collections.abc import Sequence

from attrs import define, field

from aclog.authorizer.settings import Settings
from aclog.cli.console.finders.tests import TestsFinder
from aclog.console.draft.tests_effect import StatedCases
from aclog.sources.rule_tests.reading import read_test_file
from aclog.sources.rule_tests.rule_test_file import RuleTestFile


@define(eq=False)
class DraftTests:
    """Reads files of tests, and again when they change. Safe for any number of threads: two may read them at once."""

    finder: TestsFinder
    """What runs the same tests on the newest state."""
    _read: tuple[object, list[RuleTestFile]] | None = field(default=None, init=False)

    def __call__(self, settings: Settings) -> Sequence[StatedCases]:
        """Return the cases with what decides for them. Raises MetadataError, OSError: a file cannot be read."""
        signature, read = self.finder.signature(), self._read
        if read is None or read[0] != signature:
            read = self._read = signature, [read_test_file(path) for path in dict.fromkeys(self.finder.files)]
        return [
            StatedCases(
                settings=self.finder.settings_for(settings, file.settings),
                cases=file.cases,
                given=self.finder.given_by(file.settings),
            )
            for file in read[1]
        ]
