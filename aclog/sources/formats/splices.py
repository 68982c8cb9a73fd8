"""Splices of a text: parts that are cut out, and what comes in their place."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from aclog.metalog.values import frozen


@frozen(order=True)
class Splice:
    """A part of a text, from `begin` up to `end` in characters, and what replaces it."""

    begin: int
    end: int
    text: str = ""


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """Return a text with its parts replaced; they do not overlap, and those of one place are in order."""
    result, at = [], 0
    for each in sorted(splices, key=lambda one: (one.begin, one.end)):
        result += [text[at : each.begin], each.text]
        at = each.end
    return "".join((*result, text[at:]))


def cut_items(spans: Sequence[tuple[int, int]], removed: Collection[int]) -> Iterator[Splice]:
    """Yield the cuts of some items of a list in brackets, with a separator each; one at least stays."""
    has_one_before = False
    for number, (begin, end) in enumerate(spans):
        if number not in removed:
            has_one_before = True
        elif has_one_before:
            yield Splice(spans[number - 1][1], end)
        else:
            yield Splice(begin, spans[number + 1][0])
