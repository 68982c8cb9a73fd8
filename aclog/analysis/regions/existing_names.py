"""Topics that exist: how many of them a set of names holds."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from attrs import frozen

from aclog.analysis.regions.names import Literal, NamePart, Names


@frozen
class ExistingNames:
    """Names of topics, sorted and distinct."""

    _names: tuple[str, ...]

    @staticmethod
    def of(names: Iterable[str]) -> "ExistingNames":
        """Take these names."""
        return ExistingNames(tuple(sorted(set(names))))

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def among(self, names: Names) -> set[str]:
        """Return those of the topics that a set of names holds."""
        return {name for part in names for name in self._of_part(part)}

    def _of_part(self, part: NamePart) -> Iterator[str]:
        prefix = part.name if isinstance(part, Literal) else part.prefix
        for position in range(bisect_left(self._names, prefix), len(self._names)):
            name = self._names[position]
            if not name.startswith(prefix):
                return
            if name in part:
                yield name
