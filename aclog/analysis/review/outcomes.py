"""What proofs, tests and lint say of a change."""

from attrs import frozen

from aclog.analysis.review.document import Item
from aclog.authorizer.generation import Generation


@frozen(kw_only=True)
class Proof:
    """Something that a change must leave as it is."""

    text: str
    holds: bool
    details: tuple[str, ...] = ()
    """What refutes it."""
    only: Generation | None = None
    """That of Kafka which alone refutes it, if several may decide."""


@frozen(kw_only=True)
class TestsOutcome:
    """The cases that failed."""

    __test__ = False  # not a class of tests for pytest

    failures: tuple[Item, ...] = ()
    passed: int = 0
    left_out: tuple[str, ...] = ()
    """What is to be said of each file that was not run, as it tests other rules."""


@frozen(kw_only=True)
class LintOutcome:
    """Findings that the change brings, leaves and mends."""

    new_errors: tuple[Item, ...] = ()
    new_warnings: tuple[Item, ...] = ()
    old: tuple[Item, ...] = ()
    gone: tuple[Item, ...] = ()
    suppressed: tuple[Item, ...] = ()
    """What counts no more, or never did, since the change has it suppressed."""
