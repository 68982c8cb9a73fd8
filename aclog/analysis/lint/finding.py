"""A finding: rules that hardly mean what they say, what that costs, and how it is mended."""

from enum import StrEnum

from attrs import frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.rule_change import RuleChange


class Severity(StrEnum):
    """How much a finding matters: an error fails a pull request unless told otherwise."""

    ERROR = "error"
    """The rule does not do what it says, or opens what hardly anybody meant to open."""
    WARNING = "warning"


@frozen(kw_only=True)
class Finding:
    """Something that a lint says about one rule, or about several together."""

    lint: str
    """The id of the lint, such as `08` (aclog.analysis.lint.catalogue)."""
    severity: Severity
    rules: tuple[StandardAcl, ...]
    """The rules that it is about, at least one; the one to mend first, if they are not all alike."""
    lost: str
    """What is lost or opened, in one clause: who is given, refused or not kept from what."""
    fix: tuple[RuleChange, ...] = ()
    """Changes that mend it, to be applied in this order; empty if only a person can tell what was meant."""
    advice: str
    """The mend in words."""
    neutral: bool = False
    """Whether the fix, by itself, changes no decision: on the same rules without any other change.

    Several such fixes need not be neutral together: each of two rules may stand in for the other. See
    aclog.analysis.lint.neutral_fix.
    """
