"""The cells of a table: all rules of one principal and host on one resource pattern, if any request matches them."""

import numpy as np
from attrs import frozen

from aclog.analysis.lint.effect.host_tree import HostTree
from aclog.analysis.lint.effect.lanes import States, combined
from aclog.analysis.lint.found import texts_among, texts_matching
from aclog.analysis.lint.name_places import NamePlaces
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.regions.operations import REQUESTED
from aclog.authorizer.acl import WILDCARD_PRINCIPAL
from aclog.authorizer.index.arrays import expanded
from aclog.authorizer.index.masks import mask_table
from aclog.metalog.vectors import Bools, Int64s

_ASKED = np.uint64(REQUESTED << 16 | REQUESTED)
_MASKS = mask_table().astype(np.uint64) & _ASKED


@frozen(eq=False, kw_only=True)
class Points:
    """Requests that stand for all that are decided alike: a place of names, a principal, a host."""

    places: Int64s
    principals: Int64s
    hosts: Int64s

    def __len__(self) -> int:
        return len(self.places)

    def chosen(self, which: Bools | Int64s | slice) -> "Points":
        """Return some of them."""
        return Points(places=self.places[which], principals=self.principals[which], hosts=self.hosts[which])


@frozen(eq=False, kw_only=True)
class Cells:
    """Cells by number. Left out is what no request matches, what super users hold, and colonless principals."""

    table: RuleTable
    hosts: HostTree
    names: NamePlaces
    everyone: int
    """The number of `User:*` among principals."""
    is_super: Bools
    """By principal."""
    colonless: Bools
    """By principal: Kafka's authorizer throws when it reaches a rule of one."""
    throwing: Int64s
    """Resources with a rule of a colonless principal: nobody is allowed anything there."""
    of_row: Int64s
    """By row of the table; -1 for a row that is left out."""
    row_states: States
    """By row of the table: what it allows and denies of what requests ask."""
    states: States
    resources: Int64s
    principals: Int64s
    host_numbers: Int64s

    @classmethod
    def of(cls, table: RuleTable) -> "Cells":
        """Return the cells of a table."""
        hosts, names = HostTree.of(table), NamePlaces.of(table)
        everyone = next(
            iter(np.flatnonzero(texts_among(table.principals, (WILDCARD_PRINCIPAL,))).tolist()), len(table.principals)
        )
        is_super = np.append(texts_among(table.principals, table.settings.super_users), False)
        is_super[everyone] = False  # as a super user it is a name like any other
        colonless = np.append(~texts_matching(table.principals, ":"), False)
        has_place = np.zeros(len(table.names), np.bool_)
        has_place[names.resource_of] = True
        principals, where = table.principal_of, hosts.of_text[table.host_of]
        placed = has_place[table.resource_of]
        live = placed & (where >= 0) & ~is_super[principals] & ~colonless[principals]
        rows = np.flatnonzero(live)
        begins = np.append(True, (np.diff(table.resource_of[rows]) != 0) | (np.diff(table.pair_of[rows]) != 0))[
            : len(rows)
        ]
        of_row = np.full(len(table), -1, np.int64)
        of_row[rows] = np.cumsum(begins) - 1
        row_states = _MASKS[
            np.frombuffer(table.base.permissions, np.uint8), np.frombuffer(table.base.operations, np.uint8)
        ]
        first = rows[begins]
        return cls(
            table=table,
            hosts=hosts,
            names=names,
            everyone=everyone,
            is_super=is_super,
            colonless=colonless,
            throwing=np.unique(table.resource_of[placed & colonless[principals]]).astype(np.int64),
            of_row=of_row,
            row_states=row_states,
            states=_summed(row_states[rows], np.flatnonzero(begins)),
            resources=table.resource_of[first].astype(np.int64),
            principals=principals[first].astype(np.int64),
            host_numbers=where[first],
        )

    def __len__(self) -> int:
        return len(self.states)

    def points(self) -> tuple[Int64s, Points]:
        """Return the points at which the cells are looked at, with the cell of each, ascending.

        Whatever covers all points of a cell covers the cell; where two cells meet is a point with the place of one, and
        the principal and the host of one.
        """
        names = self.names
        low = np.searchsorted(names.top_resource_of, self.resources)
        high = np.searchsorted(names.top_resource_of, self.resources, side="right")
        cells, at = expanded(low, high)
        places, hosts = names.tops[at], self.host_numbers[cells]
        if self.hosts.parts:
            cells, places, hosts = self._in_parts(cells, places, hosts)
        return cells, Points(places=places, principals=self.principals[cells], hosts=hosts)

    def _in_parts(self, cells: Int64s, places: Int64s, hosts: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Return the same with the narrower hosts in place of a range that consists of them."""
        counts = np.ones(len(self.hosts.parents), np.int64)
        for number, parts in self.hosts.parts.items():
            counts[number] = len(parts)
        parts_of = {number: np.array(parts, np.int64) for number, parts in self.hosts.parts.items()}
        times = counts[hosts]
        chosen = [parts_of.get(host, np.array([host], np.int64)) for host in hosts.tolist()]
        return np.repeat(cells, times), np.repeat(places, times), np.concatenate([*chosen, np.zeros(0, np.int64)])


def _summed(states: States, starts: Int64s) -> States:
    """Return the state of each run of rows."""
    counts = np.diff(np.append(starts, len(states)))
    found = states[starts] if len(starts) else states
    step = 1
    while (left := np.flatnonzero(counts > step)).size:
        found[left] = combined(found[left], states[starts[left] + step])
        step += 1
    return found
