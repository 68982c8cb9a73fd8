"""Hosts of rules that match nobody: neither `*`, nor an address in the form that Kafka compares."""

import numpy as np

from aclog.analysis.lint.found import texts_matching
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.texts import PLAIN_HOST
from aclog.authorizer.cidr import is_cidr
from aclog.authorizer.unmatched import host_problem
from aclog.metalog.vectors import Bools


def dead_hosts(table: RuleTable, *, ranges: bool) -> Bools:
    """Return which hosts of a table match nobody where ranges do not count: those that are ranges, or the others."""
    found = ~texts_matching(table.hosts, PLAIN_HOST)
    for number in np.flatnonzero(found).tolist():
        host = table.hosts[number]
        found[number] = host_problem(host, cidr=True) is not None if not ranges else is_cidr(host)
    return found


def from_nowhere(table: RuleTable) -> Bools:
    """Return which rows match nobody, wherever from; a range counts with `cidr` only."""
    dead = dead_hosts(table, ranges=False)
    if not table.settings.cidr:
        dead |= dead_hosts(table, ranges=True)
    found: Bools = dead[table.host_of]
    return found
