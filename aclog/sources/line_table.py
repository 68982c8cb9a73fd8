"""The lines of a large file of rules, in twelve bytes a rule."""

from array import array
from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np
from attrs import define, field

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.origin import FileOrigin, Origin
from aclog.metalog.vectors import Int64s


@define(eq=False, slots=False)
class LineTable:
    """The line of each rule of one file (aclog.authorizer.origin.Origins); filled by one reader, then asked.

    Rules are known by their hashes, of 64 bits: that two of a million share one is less likely than one in ten million.
    """

    file: str
    _hashes: "array[int]" = field(factory=lambda: array("q"), init=False)
    _lines: "array[int]" = field(factory=lambda: array("I"), init=False)

    def filled_by(self, rules: Iterable[tuple[int, StandardAclWithId]]) -> Iterator[StandardAclWithId]:
        """Yield rules and take note of their lines."""
        add_hash, add_line = self._hashes.append, self._lines.append  # a million times
        for line, rule in rules:
            add_hash(hash(rule.acl))
            add_line(line)
            yield rule

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:
        """Return the line that states a rule; none if the file does not have it."""
        wanted = hash(acl)
        at = int(np.searchsorted(self._sorted[0], wanted))
        if at == len(self._hashes) or self._sorted[0][at] != wanted:
            return ()
        return (FileOrigin(file=self.file, line=int(self._lines[int(self._sorted[1][at])])),)

    @cached_property
    def _sorted(self) -> tuple[Int64s, Int64s]:
        hashes = np.asarray(self._hashes, np.int64)
        order = np.argsort(hashes, kind="stable")
        return hashes[order], order
