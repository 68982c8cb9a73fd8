"""What makes a review fail: kinds of findings, and which of them a repository does not accept."""

from enum import StrEnum


class Kind(StrEnum):
    """A kind of what a review may find."""

    GAINED = "gained"
    """A request that was denied is allowed."""
    LOST = "lost"
    """A request that was allowed is denied."""
    BREAKS = "breaks"
    """A recent access would be denied."""
    EVERYONE = "everyone"
    """Everyone gains access: clients that no rule names, or those that do not log in."""
    PROOFS = "proofs"
    """Something that must stay as it is does not."""
    TESTS = "tests"
    """A test of rules fails."""
    LINT_ERROR = "lint-error"
    """The change brings a finding of severity error."""
    LINT_WARNING = "lint-warning"
    """The change brings a finding of severity warning."""
    CHECKS = "checks"
    """The change touches the checks themselves: settings, tests, what is known of the cluster."""


DEFAULT_FAIL_ON = frozenset({Kind.BREAKS, Kind.EVERYONE, Kind.PROOFS, Kind.TESTS, Kind.LINT_ERROR})
"""That access is gained or lost is what most changes are made for; people judge it. Hardly one is made for everyone."""
