"""Names that begin alike: where a prefix could stand for several of them."""

from collections.abc import Iterable, Iterator
from re import compile as pattern_of

from attrs import frozen

_SEPARATOR = pattern_of(r"[._:/-]")
"""What Kafka's users divide names by."""


@frozen(kw_only=True)
class NameGroup:
    """Some names, and the longest prefix that all of them begin with and that ends in a separator."""

    prefix: str
    names: tuple[str, ...]


def groups_below(names: Iterable[str], prefix: str, least: int) -> Iterator[NameGroup]:
    """Yield the groups of at least so many names that go on alike after a prefix, up to the next separator.

    All names begin with `prefix`, which is empty or ends in a separator.
    """
    by_head: dict[str, list[str]] = {}
    for name in sorted(names):
        end = _SEPARATOR.search(name, len(prefix))
        if end is not None:
            by_head.setdefault(name[: end.end()], []).append(name)
    for head, found in by_head.items():
        if len(found) >= least:
            yield NameGroup(prefix=_longest(head, found), names=tuple(found))


def _longest(head: str, names: list[str]) -> str:
    # sorted, so that what the first and the last share, all do
    first, last = names[0], names[-1]
    differs = next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), None)
    shared = first[: min(len(first), len(last)) if differs is None else differs]
    return head + shared[len(head) : max((end.end() for end in _SEPARATOR.finditer(shared)), default=0)]
