"""Decides points: what all rules say there that match."""

import numpy as np
from attrs import frozen

from aclog.analysis.lint.effect.cells import Cells, Points
from aclog.analysis.lint.effect.chains import Chains
from aclog.analysis.lint.effect.lanes import DENIED_TO_ALL, States, combined
from aclog.authorizer.index.arrays import expanded
from aclog.metalog.vectors import Bools, Int64s


@frozen(eq=False, kw_only=True)
class Intervals:
    """The intervals of places that cells cover."""

    cells: Int64s
    starts: Int64s
    ends: Int64s

    @classmethod
    def of(cls, cells: Cells, resources: Int64s) -> "Intervals":
        """Return those of patterns: `cells` are positions in `resources`."""
        names = cells.names
        order = np.argsort(names.resource_of, kind="stable")
        sorted_resources = names.resource_of[order]
        low = np.searchsorted(sorted_resources, resources)
        numbers, at = expanded(low, np.searchsorted(sorted_resources, resources, side="right"))
        return cls(cells=numbers, starts=names.starts[order[at]], ends=names.ends[order[at]])


@frozen(eq=False, kw_only=True)
class Decider:
    """Subjects, each a principal and a host that some cell has, and what the cells of each say at each place."""

    cells: Cells
    intervals: Intervals
    """Of the cells."""
    subjects: Int64s
    """`_code` of each, ascending."""
    chains: Chains
    single: Bools
    """By subject: whether it is one principal, from any host."""

    @classmethod
    def of(cls, cells: Cells) -> "Decider":
        """Return the decider of all cells."""
        width = len(cells.hosts.parents)
        codes = cells.principals * width + cells.host_numbers
        anyone = cells.everyone * width + cells.hosts.anywhere
        subjects = np.unique(np.append(codes, anyone))
        subject_of = np.searchsorted(subjects, codes)
        own, throwing = Intervals.of(cells, cells.resources), Intervals.of(cells, cells.throwing)
        chains = Chains.of(
            np.concatenate((subject_of[own.cells], np.full(len(throwing.cells), np.searchsorted(subjects, anyone)))),
            np.concatenate((own.starts, throwing.starts)),
            np.concatenate((own.ends, throwing.ends)),
            np.concatenate((cells.states[own.cells], np.full(len(throwing.cells), DENIED_TO_ALL))),
        )
        single = (subjects % width == cells.hosts.anywhere) & (subjects != anyone)
        return cls(cells=cells, intervals=own, subjects=subjects, chains=chains, single=single)

    def states(self, points: Points) -> States:
        """Return what the rules that match each point say."""
        found = np.zeros(len(points), np.uint64)
        everyone = np.full(len(points), self.cells.everyone, np.int64)
        other = points.principals != self.cells.everyone
        for hosts in self.cells.hosts.chain(points.hosts):
            found = combined(found, self.chains.at(self._subjects(everyone, hosts), points.places))
            own = np.where(other, self._subjects(points.principals, hosts), -1)
            found = combined(found, self.chains.at(own, points.places))
        return found

    def principals(self, subjects: Int64s) -> Int64s:
        """Return the principal of each subject."""
        return self.subjects[subjects] // len(self.cells.hosts.parents)

    def _subjects(self, principals: Int64s, hosts: Int64s) -> Int64s:
        """Return the number of each subject; -1 for one without cells, and for no host."""
        codes = principals * len(self.cells.hosts.parents) + hosts
        at = np.minimum(np.searchsorted(self.subjects, codes), len(self.subjects) - 1)
        return np.where((self.subjects[at] == codes) & (hosts >= 0), at, -1)
