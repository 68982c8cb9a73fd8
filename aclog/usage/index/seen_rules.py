"""The rules that accesses were judged by, as the index knows rules."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from attrs import frozen

from aclog.metalog.vectors import Bools, Bytes, Int64s

UNKNOWN: Final = -(1 << 62)
"""In place of when a rule began."""
STILL: Final = (1 << 62) - 1
"""In place of when it ended."""

RuleText = dict[str, str]
"""The seven keys of `acls list --format jsonl`."""


@frozen(eq=False, kw_only=True)
class SeenRules:
    """The rules of a run, numbered by ordinal."""

    ids: Bytes | None
    """The (n, 16) bytes of ids; None if the source has none."""
    digests: Bytes
    """(n, 16): of the rules without their ids (rule_texts.digests)."""
    denies: Bools
    texts: Callable[[Sequence[int]], list[RuleText]]
    """Returns the texts of some ordinals; asked for lives that are new."""
    begins: Int64s
    """When each rule came into force, in us since 1970; UNKNOWN if no log says so."""
    ends: Int64s
    """When it was removed; STILL while it is in force."""
    is_history: bool
    """Whether a log says when rules came and went; if not, they count as in force for all accesses of the run."""
    known_from: int | None = None
    """With a history: since when the rules are known, in us since 1970; None for at all times."""
    is_whole: bool = True
    """Whether these are all rules of the state: then those that are not among them are gone."""

    def __len__(self) -> int:
        """Return the number of rules."""
        return len(self.digests)

    @property
    def keys(self) -> Bytes:
        """The (n, 16) bytes by which a life is known: the id, or else the digest."""
        return self.digests if self.ids is None else self.ids


def always(count: int) -> tuple[Int64s, Int64s]:
    """Return `begins` and `ends` of rules from a state without times."""
    return np.full(count, UNKNOWN, np.int64), np.full(count, STILL, np.int64)
