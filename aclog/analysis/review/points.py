"""The points of a review that come first: one of each kind, the most important kind first, then more of them."""

from collections.abc import Sequence

from attrs import frozen

ROOM = 4
"""Points after the verdict: with it, five lines."""


@frozen(kw_only=True)
class Points:
    """Texts of one kind, the most important first."""

    texts: Sequence[str]
    """Those worth a line, at most ROOM; or all."""
    total: int | None = None
    """How many there are, if there are more than texts."""
    after: str = ""
    """What stands after the last one that is shown."""

    def shown(self, count: int) -> list[str]:
        """Return the first ones; the last of them tells how many more there are."""
        left = (self.total or len(self.texts)) - count
        found = [*self.texts[:count]]
        if found:
            found[-1] += (f" (and {left:,} more)" if left > 0 else "") + self.after
        return found


def chosen(kinds: Sequence[Points]) -> list[str]:
    """Return the points that there is room for: each kind gets one, then the first kinds get more."""
    held = [each for each in kinds if each.texts][:ROOM]
    counts = [1] * len(held)
    for at, each in enumerate(held):
        counts[at] += min(ROOM - sum(counts), len(each.texts) - 1)
    return [text for each, count in zip(held, counts, strict=True) for text in each.shown(count)]
