"""A case: one thing that is expected of a policy."""

from typing import Protocol

from aclog.analysis.policy import Policy
from aclog.analysis.regions.query import Query
from aclog.analysis.rule_tests.outcome import Outcome
from aclog.authorizer.origin import FileOrigin
from aclog.authorizer.settings import Settings


class Case(Protocol):
    """One expectation, and where it is written. Immutable."""

    @property
    def test(self) -> str:
        """The name of the test that it belongs to: what `--run` selects by."""
        ...

    @property
    def origin(self) -> FileOrigin:
        """Where it is written."""
        ...

    @property
    def text(self) -> str:
        """What is expected, on one line: `User:billing can READ topic:bill.*`."""
        ...

    def queries(self, settings: Settings) -> tuple[Query, ...]:
        """Return queries that hold every request on whose decision the outcome depends."""
        ...

    def run(self, policy: Policy) -> Outcome:
        """Return whether it holds. Raises MetadataError: what it compares with cannot be read."""
        ...
