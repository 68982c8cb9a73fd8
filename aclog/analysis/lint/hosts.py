"""Lints of hosts: those that are no address as Kafka compares it."""

from collections.abc import Iterator

import numpy as np
from attrs import evolve

from aclog.analysis.lint.context import LintContext
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint.found import Told, findings, replaced, texts_matching
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.texts import PLAIN_HOST, is_allow, noun, verb
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.cidr import is_cidr
from aclog.authorizer.hosts import host_address
from aclog.authorizer.unmatched import host_problem
from aclog.metalog.errors import ConfigError
from aclog.metalog.vectors import Bools


def host_not_an_address(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules whose host is neither `*` nor an address, in the form that Kafka compares, nor a range (03)."""
    return findings("03", table, _hosts(table, ranges=False)[table.host_of], _tell)


def cidr_host(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules whose host is a range, unless ranges count (04)."""
    if table.settings.cidr:
        return iter(())
    return findings("04", table, _hosts(table, ranges=True)[table.host_of], _tell)


def _hosts(table: RuleTable, *, ranges: bool) -> Bools:
    """Return which hosts match nobody: those that are ranges, or the others."""
    found = ~texts_matching(table.hosts, PLAIN_HOST)
    for number in np.flatnonzero(found).tolist():
        host: str = table.hosts[number].as_py()
        found[number] = host_problem(host, cidr=True) is not None if not ranges else is_cidr(host)
    return found


def _tell(rule: StandardAcl) -> Told:
    kind = noun(rule.resource_type)
    effect = f"gets no {verb(rule)} on a {kind}" if is_allow(rule) else f"is kept from {verb(rule)} on no {kind}"
    lost = f"no client's address is {rule.host!r}: {rule.principal} {effect} by it"
    try:
        address = host_address(rule.host)
    except ConfigError:
        return Told(lost)
    return Told(lost, replaced(rule, evolve(rule, host=address)))
