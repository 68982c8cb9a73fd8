"""What clients of a campaign asked for and were told, and what the log must then hold."""

import time
from collections import Counter
from collections.abc import Mapping

from attrs import define, field

from aclog.authorizer.acl import StandardAcl


@define(eq=False, repr=False)
class Ledger:
    """Requests and their outcomes; clients add to it as they go."""

    created: set[StandardAcl] = field(factory=set)
    maybe_created: set[StandardAcl] = field(factory=set)
    """Requested, without an answer that tells whether it happened."""
    deleted: set[StandardAcl] = field(factory=set)
    maybe_deleted: set[StandardAcl] = field(factory=set)
    ghosts: set[StandardAcl] = field(factory=set)
    """Requested of a controller that was paused, and that another had replaced when it resumed."""
    answers: Counter[str] = field(factory=Counter)
    longest_silence: float = 0.0
    """The longest time between two acknowledgements, in seconds."""
    last: float | None = None
    """When the last acknowledgement came; from when silence is counted."""

    def acknowledge(self, what: str) -> None:
        """Note that a change was acknowledged."""
        now = time.monotonic()
        self.longest_silence = max(self.longest_silence, now - (now if self.last is None else self.last))
        self.last = now
        self.answers[what] += 1

    @property
    def acknowledged(self) -> int:
        """How many changes were."""
        return self.answers["created"] + self.answers["deleted"]

    def check(self, added: Mapping[StandardAcl, int], removed: Mapping[StandardAcl, int]) -> None:
        """Check how often a log adds and removes each ACL of the campaign against what clients were told.

        Raises:
            AssertionError: a change is lost, is there twice, or was never requested.

        """
        assert set(added.values()) <= {1}, "a rule was created twice"
        assert set(removed.values()) <= {1}, "a rule was deleted twice"
        assert self.created <= added.keys(), "an acknowledged creation is lost"
        assert added.keys() <= self.created | self.maybe_created, "a rule that nobody asked for"
        assert self.deleted <= removed.keys(), "an acknowledged deletion is lost"
        assert removed.keys() <= self.deleted | self.maybe_deleted, "a deletion that nobody asked for"
        assert not self.ghosts & added.keys(), "what a deposed leader wrote has shown up"
