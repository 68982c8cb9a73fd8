"""What became of tests as the log that they are about goes on: which are red, green, or unknown."""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import TypeAlias

from attrs import define, evolve, field, frozen

from aclog.analysis.answers.questions import concerns
from aclog.analysis.policy import Policy
from aclog.analysis.regions.query import Query
from aclog.analysis.rule_tests.case import Case
from aclog.analysis.rule_tests.outcome import Failure
from aclog.analysis.rule_tests.unknown_premises import EachRun
from aclog.authorizer.generation import Generation
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.rule_change import RuleChange
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import MetadataError

Policies: TypeAlias = Mapping[Generation, Policy]
"""The policy of one state for each generation of Kafka that may decide on it."""


class Color(Enum):
    """Of a case."""

    GREEN = "GREEN"
    RED = "RED"
    UNKNOWN = "UNKNOWN"
    """What it compares with cannot be read."""


@frozen(kw_only=True)
class Turn:
    """A case that turned to another color."""

    case: Case
    color: Color
    failures: tuple[Failure, ...]
    changes: tuple[RuleChange, ...]
    """Those that can have done it."""
    problem: str = ""
    """Why it is unknown."""
    software: str = ""
    """Which Kafka decides from now on, if that changed."""


@define(eq=False, kw_only=True)
class Verdicts:
    """The colors of some cases; owned by the one who follows the log."""

    cases: Sequence[Case]
    settings: Settings
    premises: Premises = ALL_KNOWN
    """What is unknown of the settings: a case that it could turn is not green."""
    given: frozenset[str] = frozenset()
    """The properties of brokers whose values the settings have."""
    colors: list[Color] = field(init=False)
    _queries: list[tuple[Query, ...]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.colors = [Color.GREEN] * len(self.cases)
        self._queries = [case.queries(self.settings) for case in self.cases]

    def first(self, policies: Policies) -> Iterator[Turn]:
        """Run all cases; yield those that are not green. Raises MetadataError: what one compares with is unreadable."""
        run = self._run(policies)
        for number, case in enumerate(self.cases):
            outcome = run.run(case)
            if not outcome.passed:
                self.colors[number] = Color.RED
                yield Turn(case=case, color=Color.RED, failures=outcome.failures, changes=())

    def after(self, policies: Policies, changes: Sequence[RuleChange], software: str = "") -> Iterator[Turn]:
        """Run the cases on which some changes can bear, or all if other software decides; yield those that turn."""
        run = self._run(policies)
        for number, case in enumerate(self.cases):
            bearing = tuple(change for change in changes if self._bears(number, change))
            if bearing or software or self.colors[number] is Color.UNKNOWN:
                turn = evolve(_turn(case, run, bearing), software=software)
                if turn.color is not self.colors[number]:
                    self.colors[number] = turn.color
                    yield turn

    def _run(self, policies: Policies) -> EachRun:
        return EachRun.of(policies, self.premises, self.given)

    def _bears(self, number: int, change: RuleChange) -> bool:
        return any(concerns(query, change.acl, self.settings) for query in self._queries[number])


def _turn(case: Case, run: EachRun, changes: tuple[RuleChange, ...]) -> Turn:
    try:
        outcome = run.run(case)
    except (MetadataError, OSError) as error:
        return Turn(case=case, color=Color.UNKNOWN, failures=(), changes=changes, problem=str(error))
    color = Color.GREEN if outcome.passed else Color.RED
    return Turn(case=case, color=color, failures=outcome.failures, changes=changes)
