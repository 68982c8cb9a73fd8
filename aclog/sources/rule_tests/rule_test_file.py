"""A file of tests of rules."""

from attrs import field, frozen

from aclog.analysis.rule_tests.case import Case
from aclog.sources.named_source import NamedSource
from aclog.sources.repository.settings import AuthorizerSettings


@frozen(kw_only=True)
class RuleTestFile:
    """What a file of tests says."""

    path: str
    """As it was given."""
    cases: tuple[Case, ...]
    """In the order of the file; never empty."""
    source: NamedSource | None = None
    """The rules that it tests; None if it does not say."""
    settings: AuthorizerSettings = field(factory=AuthorizerSettings)
    """What decides besides the rules; None where it does not say."""
