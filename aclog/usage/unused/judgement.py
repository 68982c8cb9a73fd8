"""The answer about each rule of a state, and why some rules are not judged."""

from enum import IntEnum

import numpy as np
from attrs import frozen

from aclog.metalog.vectors import Bools, Bytes, Int64s
from aclog.usage.answer import Answer

ANSWERS = tuple(Answer)
"""By the code of an answer."""


class Unjudged(IntEnum):
    """Why a rule is not judged; the lower code wins."""

    JUDGED = 0
    NOT_INDEXED = 1
    """No life of the index is this rule's."""
    YOUNG = 2
    """Its life began within the window."""
    SILENCE = 3
    """A broker was silent in the window: it may have seen what would need the rule."""
    UNREAD = 4
    """An access that may have needed the rule could not be read or decided."""


@frozen(eq=False, kw_only=True)
class RuleLives:
    """The lives of the rules of a state, by rule."""

    number: Int64s
    """In the index; -1 if it has none."""
    begin: Int64s
    """In us since 1970."""
    exact: Bools
    """Whether a log says when it began; else it is when the first run began that saw it."""

    def older_than(self, start: int, first_access: int | None) -> Bools:
        """Return which of them are known to be at least as old as a window (us since 1970).

        A rule that has been in force since the first access that is known counts from the beginning of the window, if
        nothing says that it is younger: `first_access` is the first one of the window, None if it has none.
        """
        known_since = start if first_access is None else max(start, first_access)
        old: Bools = (self.number >= 0) & (self.begin <= np.where(self.exact, start, known_since))
        return old


@frozen(eq=False, kw_only=True)
class Judgement:
    """The answers by rule."""

    answer: Bytes
    """Codes of ANSWERS."""
    unjudged: Bytes
    """Codes of Unjudged."""

    @classmethod
    def of(
        cls,
        lives: RuleLives,
        *,
        matched: Bools,
        needed: Bools,
        old: Bools,
        silent: bool,
        unread: Bools | None = None,
    ) -> "Judgement":
        """Judge the rules: whether each was matched and needed in the window, and is as old as the window.

        `silent`: whether any broker was silent in the window; `unread`: whether an access that could not be read or
        decided may have needed the rule. What was needed is needed all the same; all other answers say "never", which
        needs that all of the window is known.
        """
        never = ~needed
        unknown = np.zeros_like(needed) if unread is None else unread
        unjudged = np.select(
            [~never, lives.number < 0, ~old, np.full(len(needed), silent), unknown],
            [Unjudged.JUDGED, Unjudged.NOT_INDEXED, Unjudged.YOUNG, Unjudged.SILENCE, Unjudged.UNREAD],
            Unjudged.JUDGED,
        ).astype(np.uint8)
        return cls(
            answer=np.select(
                [needed, unjudged != Unjudged.JUDGED, matched],
                [_code(Answer.NEEDED), _code(Answer.NOT_JUDGED), _code(Answer.NEVER_NEEDED)],
                _code(Answer.NEVER_MATCHED),
            ).astype(np.uint8),
            unjudged=unjudged,
        )

    def is_(self, answer: Answer) -> Bools:
        """Return which rules have this answer."""
        found: Bools = self.answer == _code(answer)
        return found

    @property
    def unused(self) -> Bools:
        """Which rules were never matched, or matched and never needed."""
        return self.is_(Answer.NEVER_MATCHED) | self.is_(Answer.NEVER_NEEDED)


def _code(answer: Answer) -> int:
    return ANSWERS.index(answer)
