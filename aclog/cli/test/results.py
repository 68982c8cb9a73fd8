"""What `aclog test` found."""

from attrs import frozen

from aclog.analysis.rule_tests.mutation_testing import MutationResult
from aclog.analysis.rule_tests.outcome import Outcome
from aclog.authorizer.generation import Generation
from aclog.cli.testing import RulesUnderTest

MOST_EXPLAINED = 100
"""Failing cases of a file that are explained: more of them have one cause, which takes no more explanations."""


@frozen(kw_only=True)
class FileResult:
    """The outcomes of the cases of one file, in its order."""

    path: str
    rules: RulesUnderTest
    outcomes: tuple[Outcome, ...]


@frozen(kw_only=True)
class Mutations:
    """What became of the mutants of all rules."""

    killed: int
    equivalent: int
    """Those that change no decision, and so are no mistakes."""
    survivors: tuple[MutationResult, ...]
    only: Generation | None = None
    """That of Kafka by which they were judged, if several may decide."""
