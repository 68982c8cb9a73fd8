"""What each rule of a table adds: something, or nothing and why."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from aclog.analysis.lint.effect.cells import Cells
from aclog.analysis.lint.effect.decider import Decider
from aclog.analysis.lint.effect.deny_search import DenySearch
from aclog.analysis.lint.effect.lanes import allowed, allowed_twice, denied, denied_twice
from aclog.analysis.lint.effect.mixed_hosts import MOST_POINTS, settle_mixed
from aclog.analysis.lint.effect.openness import closing, open_anyway
from aclog.analysis.lint.rule_table import RuleTable
from aclog.metalog.vectors import Int64s


class Verdict(IntEnum):
    """Whether the policy without a rule decides some request otherwise; if not, why."""

    NEEDED = 0
    COVERED = 1
    """An ALLOW: other rules, or super.users, allow all that it allows and no rule denies."""
    OVERRIDDEN = 2
    """An ALLOW: nothing that it allows is allowed in the end, or ever asked for."""
    DEAD = 3
    """A DENY: nothing that it denies would be allowed without it."""
    SET_ASIDE = 4
    """It matches nobody by its own text, or makes Kafka's authorizer throw: other lints say so."""
    UNDECIDED = 5
    """A DENY that would take too long."""


def verdicts(table: RuleTable, *, most_points: int = MOST_POINTS) -> NDArray[np.uint8]:
    """Return the verdict on each row, each by itself: of two that are not needed, one may stand in for the other.

    `most_points` bounds the search for what DENY rules deny to other hosts.
    """
    cells = Cells.of(table)
    decider = Decider.of(cells)
    found = _without_cell(cells)
    if len(cells):
        point_cells, points = cells.points()
        states = decider.states(points)
        starts = np.searchsorted(point_cells, np.arange(len(cells)))
        _judge_allows(
            found,
            cells,
            np.bitwise_or.reduceat(~allowed_twice(states) & ~denied(states), starts),
            np.bitwise_and.reduceat(denied(states), starts),
        )
        critical = allowed(states) & denied(states) & ~denied_twice(states)
        rows = np.flatnonzero((cells.of_row >= 0) & ~table.allows)
        of_row = cells.of_row[rows]
        operations = denied(cells.row_states[rows])
        needed = operations & np.bitwise_or.reduceat(critical, starts)[of_row] != 0
        # What other rules deny at all points of a cell, they deny everywhere in it.
        dead = operations & ~np.bitwise_and.reduceat(denied_twice(states), starts)[of_row] == 0
        search = DenySearch(
            decider=decider,
            points=points,
            point_cells=point_cells,
            states=states,
            cells=of_row[~dead],
            operations=operations[~dead],
            needed=needed[~dead],
        )
        search.settle()
        given_up = settle_mixed(search, most_points)
        found[rows] = Verdict.DEAD
        left = rows[~dead]
        found[left[given_up]] = Verdict.UNDECIDED
        found[left[search.needed]] = Verdict.NEEDED
    if table.settings.allow_everyone:
        closes = closing(cells) & (found != Verdict.SET_ASIDE)
        found[closes] = np.where(open_anyway(cells, decider, closes)[closes], Verdict.COVERED, Verdict.NEEDED)
    return found


def _without_cell(cells: Cells) -> NDArray[np.uint8]:
    """Return the verdicts on rows that no cell has, and NEEDED for all others."""
    table, allows = cells.table, cells.table.allows
    found = np.full(len(table), Verdict.NEEDED, np.uint8)
    left_out = cells.of_row < 0
    placed = np.zeros(len(table.names), np.bool_)
    placed[cells.names.resource_of] = True
    unplaced = left_out & ~placed[table.resource_of]
    found[left_out] = np.where(allows[left_out], Verdict.COVERED, Verdict.DEAD)
    nothing = (allowed(cells.row_states) == 0) & allows
    found[left_out & (nothing | unplaced) & allows] = Verdict.OVERRIDDEN
    found[(cells.hosts.of_text < 0)[table.host_of] & allows] = Verdict.SET_ASIDE
    found[cells.colonless[table.principal_of]] = Verdict.SET_ASIDE
    return found


def _judge_allows(found: NDArray[np.uint8], cells: Cells, uncovered: Int64s, denied_all: Int64s) -> None:
    """Judge the ALLOW rules of cells: by what no other rule allows or denies, and by what is denied throughout."""
    rows = np.flatnonzero((cells.of_row >= 0) & cells.table.allows)
    of_row, operations = cells.of_row[rows], allowed(cells.row_states[rows])
    overridden = operations & ~denied_all[of_row] == 0
    found[rows] = np.where(overridden, Verdict.OVERRIDDEN, Verdict.COVERED)
    found[rows[operations & uncovered[of_row] != 0]] = Verdict.NEEDED
