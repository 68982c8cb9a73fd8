"""What all drafts of a console share."""

from collections.abc import Sequence

from attrs import define, field

from aclog.console.draft.ground import Grounds
from aclog.console.draft.kept_texts import KeptTexts
from aclog.sources.rule_tests.rule_test_file import RuleTestFile


@define(eq=False, kw_only=True)
class Drafts:
    """What is kept for drafts. Safe for any number of threads."""

    texts: KeptTexts = field(factory=KeptTexts)
    grounds: Grounds = field(factory=Grounds)
    tests: Sequence[RuleTestFile] = ()
    """Those that a draft may turn red or green."""
