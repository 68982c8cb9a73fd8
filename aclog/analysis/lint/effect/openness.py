"""Rules that close names which would be open without them (allow.everyone.if.no.acl.found)."""

import numpy as np

from aclog.analysis.lint.effect.cells import Cells, Points
from aclog.analysis.lint.effect.decider import Decider, Intervals
from aclog.analysis.lint.effect.lanes import allowed, allowed_twice, denied
from aclog.analysis.lint.effect.ranges import Standing
from aclog.analysis.regions.operations import REQUESTED
from aclog.metalog.vectors import Bools, Int64s


def closing(cells: Cells) -> Bools:
    """Return the rows without which some names have no rule at all, of whomever."""
    table, names = cells.table, cells.names
    alone = np.bincount(table.resource_of, minlength=len(table.names)) == 1
    opens = np.zeros(len(table.names), np.bool_)
    opens[names.top_resource_of[_covering(cells) == 1]] = True
    found: Bools = (alone & opens)[table.resource_of]
    return found


def open_anyway(cells: Cells, decider: Decider, rows: Bools) -> Bools:
    """Return those of some closing rows that may go: ALLOWs of everything to everyone, if no longer name needs them."""
    table, names = cells.table, cells.names
    to_all: Bools = rows & (allowed(cells.row_states) == REQUESTED) & (table.principal_of == cells.everyone)
    to_all &= cells.hosts.of_text[table.host_of] == cells.hosts.anywhere
    chosen = np.flatnonzero(to_all)
    if not len(chosen):
        return to_all
    # Names with other rules on them are closed without this one. There, whoever is a stranger to them must not need it.
    places = names.tops[_covering(cells) > 1]
    states = decider.states(
        Points(
            places=places,
            principals=np.full(len(places), cells.everyone),
            hosts=np.full(len(places), cells.hosts.anywhere),
        )
    )
    needing = places[np.uint64(REQUESTED) & ~allowed_twice(states) & ~denied(states) != 0]
    standing = Standing.of(needing * 0, needing)
    below = Intervals.of(cells, table.resource_of[chosen].astype(np.int64))
    held = standing.any(below.starts * 0, below.starts, below.ends)
    to_all[chosen[below.cells[held]]] = False
    return to_all


def _covering(cells: Cells) -> Int64s:
    """Return how many patterns cover each top of the patterns."""
    names = cells.names
    opened = np.searchsorted(np.sort(names.starts), names.tops, side="right")
    found: Int64s = opened - np.searchsorted(np.sort(names.ends), names.tops, side="right")
    return found
