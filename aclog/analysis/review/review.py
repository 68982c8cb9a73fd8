"""A review: everything that was found of a change of rules, and whether it is acceptable."""

from collections.abc import Collection, Mapping, Sequence

from attrs import define, field

from aclog.analysis.comparison import Comparison
from aclog.analysis.regions.region import Direction
from aclog.analysis.review.everyone import gives_everyone
from aclog.analysis.review.flipped import Flipped
from aclog.analysis.review.move import Move
from aclog.analysis.review.outcomes import LintOutcome, Proof, TestsOutcome
from aclog.analysis.review.rename import Rename
from aclog.analysis.review.replacement import Replacement
from aclog.analysis.review.verdict import DEFAULT_FAIL_ON, Kind
from aclog.analysis.rows.row_report import ReportRow
from aclog.authorizer.generation import Generation


@define(eq=False, kw_only=True)
class Review:
    """What was found of a change, and how it is judged."""

    comparisons: Mapping[Generation | None, Comparison]
    """By the generation of Kafka that may decide; under None, if that is one."""
    rows: Sequence[ReportRow]
    """Of all of them; what only one decides is marked."""
    renames: Sequence[Rename] = ()
    moves: Sequence[Move] = ()
    replacements: Sequence[Replacement] = ()
    proofs: Sequence[Proof] = ()
    tests: TestsOutcome = field(factory=TestsOutcome)
    lint: LintOutcome = field(factory=LintOutcome)
    flipped: Sequence[Flipped] = ()
    own_checks: Sequence[str] = ()
    """The files among the checks themselves that the change touches."""
    doubts: Sequence[str] = ()
    """Why the review may not be of what people think it is of."""
    foot: Sequence[str] = ()
    fail_on: Collection[Kind] = DEFAULT_FAIL_ON

    @property
    def comparison(self) -> Comparison:
        """The only comparison, or that of the oldest Kafka."""
        return next(iter(self.comparisons.values()))

    @property
    def found(self) -> set[Kind]:
        """The kinds of which something was found."""
        directions = {direction for report in self.rows for direction in report.row.directions}
        present = {
            Kind.GAINED: Direction.GAINED in directions,
            Kind.LOST: Direction.LOST in directions,
            Kind.EVERYONE: any(any(map(gives_everyone, each.differences)) for each in self.comparisons.values()),
            Kind.BREAKS: any(each.direction is Direction.LOST for each in self.flipped),
            Kind.PROOFS: not all(proof.holds for proof in self.proofs),
            Kind.TESTS: bool(self.tests.failures),
            Kind.LINT_ERROR: bool(self.lint.new_errors),
            Kind.LINT_WARNING: bool(self.lint.new_warnings),
            Kind.CHECKS: bool(self.own_checks),
        }
        return {kind for kind, is_there in present.items() if is_there}

    @property
    def fails(self) -> bool:
        """Whether something was found that is not accepted."""
        return bool(self.found & set(self.fail_on))
