"""Lints of spellings: principals that are alike or hold more than a name, and hosts that are probably not intended."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

import numpy as np
from attrs import evolve

from aclog.analysis.lint.finding import (
    Consequence,
    Finding,
    Lint,
    LintContext,
    RuleTable,
    Severity,
    replaced,
    texts_among,
    texts_where,
    useless,
)
from aclog.authorizer.acl import StandardAcl, host_address, is_cidr, listed_principals
from aclog.authorizer.acls_image import RuleChange
from aclog.authorizer.codes import WILDCARD
from aclog.authorizer.spellings import ANY_ADDRESSES, canonical_name, name_key, odd_principal, spelling_key
from aclog.metalog.errors import ConfigError, plural

# Principals that differ in their spelling only: usually one client, whose rules are split in two.


_MOST = 10
"""A finding has no more rules than this."""


class AlikePrincipals(Lint):
    """Rules of principals that differ only in signs between words, or in case."""

    id = "28"
    name = "alike-principals"
    title = "principals differ only in `-`, `_`, `.`, spaces or case"
    severity = Severity.WARNING
    exact = False
    rationale = (
        "Kafka compares principals exactly: if the principals are the same client, its rules are split between them."
    )
    details = (
        "A finding lists at most ten rules, of the principal with fewer rules. For distinguished names see lint 29."
    )
    example = "Rules for `User:team-a` and for `User:team_a`."
    fix = "Use the principal as it appears in kafka-authorizer.log."

    def find(self, table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield the rules of all principals of a group, except of the one with the most rules."""
        principals = ((number, text) for number, text in enumerate(table.principals) if spelling_key(text) is not None)
        yield from _of_groups(self, table, _grouped(principals, spelling_key), "differ only in spelling")


class AlikeDistinguishedNames(Lint):
    """Rules of principals that are one distinguished name by RFC 2253, in several spellings."""

    id = "29"
    name = "alike-distinguished-names"
    title = "distinguished names differ only in the order, spaces or case of their parts"
    severity = Severity.WARNING
    exact = False
    rationale = (
        "Kafka compares principals exactly, and takes the text of a certificate's name (RFC 2253): keys in capitals, "
        "no space after a comma, the parts in the order of the certificate."
    )
    details = (
        "A name that does not have this form (`cn=a`, `CN=a, O=b`) is also a finding on its own. "
        "`ssl.principal.mapping.rules` can make any text: suppress the finding if your rules do."
    )
    example = "Rules for `User:CN=a,O=b` and for `User:O=b, CN=a`."
    fix = "Use the name exactly as the broker logs it."

    def find(self, table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield the rules of all spellings of a name, except of the one with the most rules, and of odd ones."""
        names = [(number, text) for number, text in enumerate(table.principals) if "=" in text]
        groups = _grouped(names, name_key)
        grouped = {number for group in groups for number in group}
        yield from _of_groups(self, table, groups, "are the same distinguished name")
        odd = [each for each in names if each[0] not in grouped and canonical_name(each[1]) not in (None, each[1])]
        for number, text in odd:
            canonical = str(canonical_name(text))
            rules = _rules_of(table, number)
            lost = f"a certificate has {canonical!r}, not {text!r}: {useless(rules[0])}"
            yield self.finding(rules, Consequence(lost, replaced(rules[0], evolve(rules[0], principal=canonical))))


def _grouped(principals: Iterable[tuple[int, str]], key: Callable[[str], Hashable]) -> list[list[int]]:
    """Return the numbers of principals with equal keys; None is no key."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for number, text in principals:
        groups[key(text)].append(number)
    return [group for text, group in groups.items() if text is not None and len(group) > 1]


def _of_groups(lint: Lint, table: RuleTable, groups: Sequence[Sequence[int]], why: str) -> Iterator[Finding]:
    """Yield a finding for each principal of a group, except the one with the most rules."""
    if not groups:
        return
    counts = np.bincount(table.principal_of, minlength=len(table.principals))
    for group in groups:
        most, *others = sorted(group, key=lambda number: (-int(counts[number]), table.principals[number]))
        of_most = table.principals[most]
        for number in others:
            most_rules, rules = (plural(int(counts[each]), "rule") for each in (most, number))
            lost = (
                f"{of_most!r} ({most_rules}) and {table.principals[number]!r} ({rules}) {why}: if they are the same "
                "client, its rules are split between two principals"
            )
            yield lint.finding(_rules_of(table, number), Consequence(lost))


def _rules_of(table: RuleTable, principal: int) -> list[StandardAcl]:
    """Return the first rules of a principal."""
    rows = np.flatnonzero(table.principal_of == principal)[:_MOST]
    return [table.rule(row) for row in rows.tolist()]


# Principals that hold more, or less, than the name of one client.


class OddPrincipal(Lint):
    """A rule whose principal is a pattern, a list, a template, or no name."""

    id = "30"
    name = "odd-principal"
    title = "the principal is a pattern, a list, a template or empty"
    severity = Severity.ERROR
    exact = False
    rationale = (
        "Kafka compares principals exactly, except `User:*`: `User:app-*` is one client of that very name, and so is "
        "`User:a,User:b`."
    )
    details = """Findings are

- a wildcard in a name: `User:app-*`, `Group:*`;
- an empty name: `User:`;
- a duplicate type: `User:User:app`;
- a template that was not expanded: `User:${app}`, `User:{{ app }}`, `User:<app>`; in a Terraform configuration `${...}` is a value known after apply, and not a finding;
- several principals with commas between them, unless they are the parts of a distinguished name."""  # noqa: E501
    example = "`ALLOW READ topic a to User:app-*` grants nothing to `User:app-1`."
    fix = "State one rule for each principal, with its exact name."

    def find(self, table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield the rules of such principals."""
        rows = texts_where(table.principals, lambda each: odd_principal(each) is not None)[table.principal_of]

        def consequence(rule: StandardAcl) -> Consequence:
            return Consequence(f"{odd_principal(rule.principal)}: {useless(rule)}", _split(rule))

        return self.findings(table, rows, consequence)


def _split(rule: StandardAcl) -> tuple[RuleChange, ...]:
    """Return the changes that state one rule for each principal of a list."""
    members = listed_principals(rule.principal)
    return replaced(rule, *(evolve(rule, principal=each) for each in members)) if members else ()


# Hosts that no client has.


class AnyAddress(Lint):
    """A rule for the host 0.0.0.0 or ::."""

    id = "31"
    name = "any-address"
    title = "the host is 0.0.0.0 or ::, which no client has"
    severity = Severity.ERROR
    exact = True
    rationale = "It means all addresses where a server listens; the host of a rule is compared with that of a client."
    details = "In Kafka 4.4, 0.0.0.0 is not in any IPv4 range, not even in `0.0.0.0/0`."
    example = "`ALLOW READ topic a to User:a from 0.0.0.0` grants nothing."
    fix = "Use `*` for every host, or the address of the client."

    def find(self, table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield the rules with such a host."""
        return self.findings(table, texts_among(table.hosts, ANY_ADDRESSES)[table.host_of], _no_client)


def _no_client(rule: StandardAcl) -> Consequence:
    lost = f"no client connects from {rule.host}: {useless(rule)}"
    return Consequence(lost)


class HostAsksResolver(Lint):
    """A rule whose host makes a broker of Kafka 4.4 look a name up."""

    id = "32"
    name = "host-name-lookup"
    title = "a broker of Kafka 4.4 looks the host up as a name, in each decision"
    severity = Severity.WARNING
    exact = True
    rationale = (
        "Kafka 4.4 reads a host with `/` and `:` as a range of IPv6, and gives what is before the `/` to Java's "
        "InetAddress.getByName, which queries the resolver for a name: a decision waits for the answer, and the rule "
        "matches no client."
    )
    details = "A host that begins with a hexadecimal digit and has a colon before the `/` is refused without a query."
    example = "`ALLOW READ topic a to User:a from host:80/24`."
    fix = "Use an address or a CIDR range as the host, or remove the rule."

    def find(self, table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield the rules with such a host."""
        rows = texts_where(table.hosts, is_looked_up)[table.host_of]

        def consequence(rule: StandardAcl) -> Consequence:
            name = rule.host.partition("/")[0]
            lost = f"each decision on its resource may query the resolver for {name!r}"
            return Consequence(f"{lost}: {useless(evolve(rule, host=WILDCARD))}")

        return self.findings(table, rows, consequence)


def is_looked_up(host: str) -> bool:
    """Return whether Kafka 4.4 gives a part of a host to the resolver: it is no range, and no literal address."""
    name, slash, rest = host.partition("/")
    if not slash or ":" not in host or not name or is_cidr(host):
        return False
    if name.startswith("[") or (":" in name and name[0] in "0123456789abcdefABCDEF:"):
        return False  # Java takes it for an address of IPv6, and refuses it without a query
    try:
        host_address(name)
    except ConfigError:
        return bool(rest)
    return False
