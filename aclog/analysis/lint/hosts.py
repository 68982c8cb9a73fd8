"""Lints of hosts: those that are no address as Kafka compares it."""

from collections.abc import Iterator

from attrs import evolve

from aclog.analysis.lint.context import LintContext
from aclog.analysis.lint.dead_hosts import dead_hosts
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint.found import Told, findings, replaced
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.texts import is_allow, noun, verb
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.hosts import host_address
from aclog.metalog.errors import ConfigError


def host_not_an_address(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules whose host is neither `*` nor an address, in the form that Kafka compares, nor a range (03)."""
    return findings("03", table, dead_hosts(table, ranges=False)[table.host_of], _tell)


def cidr_host(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules whose host is a range, unless ranges count (04)."""
    if table.settings.cidr:
        return iter(())
    return findings("04", table, dead_hosts(table, ranges=True)[table.host_of], _tell)


def _tell(rule: StandardAcl) -> Told:
    kind = noun(rule.resource_type)
    effect = "gets" if is_allow(rule) else "is denied"
    lost = f"no client's address is {rule.host!r}: {rule.principal} {effect} no {verb(rule)} on any {kind} by it"
    try:
        address = host_address(rule.host)
    except ConfigError:
        return Told(lost)
    return Told(lost, replaced(rule, evolve(rule, host=address)))
