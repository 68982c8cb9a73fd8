"""The sets of ACLs that matched accesses together."""

from collections.abc import Iterable
from typing import Self

import numpy as np
from attrs import frozen

from aclog.metalog.vectors import Bools, Int64s


@frozen(eq=False, kw_only=True)
class AccessSets:
    """Each set is what matched some access at its own time: lives that deny, and lives that allow.

    An access that a single ACL allows is in none: that ACL is needed.
    """

    starts: Int64s
    """Where the members of each set begin, and at the end the number of members."""
    members: Int64s
    """Numbers of lives, each once a set."""
    denies: Bools
    """By member."""

    @classmethod
    def of(cls, sets: Iterable[tuple[Iterable[int], Iterable[int]]]) -> Self:
        """Return the sets of these pairs: lives that deny, lives that allow."""
        starts, members, denies = [0], list[int](), list[bool]()
        for denying, allowing in sets:
            for each, is_denying in ((denying, True), (allowing, False)):
                numbers = list(each)
                members += numbers
                denies += [is_denying] * len(numbers)
            starts.append(len(members))
        return cls(
            starts=np.array(starts, np.int64), members=np.array(members, np.int64), denies=np.array(denies, np.bool_)
        )

    def __len__(self) -> int:
        """Return the number of sets."""
        return len(self.starts) - 1
