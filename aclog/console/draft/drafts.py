"""What all drafts of a console share."""

from collections.abc import Callable, Sequence

from attrs import define, field

from aclog.authorizer.settings import Settings
from aclog.console.draft.ground import Grounds
from aclog.console.draft.kept_texts import KeptTexts
from aclog.console.draft.tests_effect import StatedCases


@define(eq=False, kw_only=True)
class Drafts:
    """What is kept for drafts. Safe for any number of threads."""

    texts: KeptTexts = field(factory=KeptTexts)
    grounds: Grounds = field(factory=Grounds)
    tests: Callable[[Settings], Sequence[StatedCases]] | None = None
    """Returns the tests that a draft may turn red or green, with what decides for them, given what decides for the
    console. Raises MetadataError, OSError: they cannot be read. None: there are none."""
