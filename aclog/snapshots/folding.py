"""How an overlay is folded into a new base, and when: what the merger needs to know of either."""

import time
from typing import Protocol

from attrs import define, field, frozen

from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.errors import MetadataError

MERGE_AT = 32_768
"""Changes at which an overlay is folded, however large the base: from here on the garbage collector takes more time for
it than a merge takes."""

_SHARE = 4
"""An overlay is also folded once it is this part of the base: then the merge is cheap, and decisions on a new cluster's
first rules are as fast as later."""

FEWEST = 256
"""Changes below which an overlay is left to a quiet moment: a merge of a tiny base takes 3 ms, which would come after
every other update."""

_WORK_S = 0.004
"""Below the interval at which the interpreter takes its lock from a thread that others wait for (5 ms)."""

_PAUSE_S = 1e-4
"""Long enough for a waiting thread to wake up: merely yielding the GIL does not give it a turn in time."""


class FoldError(MetadataError):
    """A new base was not made; the state is what it was. `here`: whether this process may fold by itself instead."""

    def __init__(self, what: str, *, here: bool = True) -> None:
        super().__init__(what)
        self.here = here


class Folder(Protocol):
    """Makes new bases, one at a time, for one merger."""

    def fold(self, acls: AclsImage) -> AclsImage:
        """Return the same ACLs without an overlay. Raises FoldError."""
        ...

    def tidy(self) -> None:
        """Free what belonged to bases that are gone; called after each merge, by whoever calls `fold`."""
        ...

    def close(self) -> None:
        """Make a `fold` in another thread end soon, with an error or not; called once, at the end."""
        ...


@frozen
class FoldInThread:
    """Folds in the calling thread, with pauses in which other threads go on."""

    def fold(self, acls: AclsImage) -> AclsImage:
        """Return the same ACLs without an overlay."""
        return acls.merged(Pauses().pause)

    def tidy(self) -> None:
        """Do nothing: there is nothing but the bases."""

    def close(self) -> None:
        """Do nothing: the thread does not outlive its process."""


@define
class Pauses:
    """The pauses of one thread: others take the interpreter's lock while it sleeps, but not too often.

    Getting the lock back takes up to 5 ms for each other busy thread, so a pause after every step would never end.
    """

    _worked_to: float = field(factory=time.thread_time, init=False)

    def pause(self) -> None:
        """Sleep, if this thread has worked for a while."""
        if time.thread_time() - self._worked_to >= _WORK_S:
            time.sleep(_PAUSE_S)
            self._worked_to = time.thread_time()


def fold_at(rules: int, most: int = MERGE_AT) -> int:
    """Return the number of changes at which an overlay of a base with so many rules is folded."""
    return min(most, max(FEWEST, rules // _SHARE))
