"""The catalogue of lints, and findings: ACLs that hardly mean what they say, with what that costs."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from attrs import frozen

from aclog.analysis.lint.rule_table import RuleTable
from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, StandardAcl, code_name
from aclog.authorizer.acls_image import RuleChange
from aclog.authorizer.index.layout import Int32s
from aclog.metalog.errors import ConfigError
from aclog.metalog.vectors import Bools, Int64s

# A finding: rules that hardly mean what they say, what that costs, and how it is mended.


class Severity(StrEnum):
    """How much a finding matters: an error fails a pull request unless told otherwise."""

    ERROR = "error"
    """The rule does not do what it says, or opens what hardly anybody meant to open."""
    WARNING = "warning"


@frozen(kw_only=True)
class Finding:
    """Something that a lint says about one rule, or about several together."""

    lint: str
    """The id of the lint, such as `08` (aclog.analysis.lint.finding)."""
    severity: Severity
    rules: tuple[StandardAcl, ...]
    """The rules that it is about, at least one; the one to mend first, if they are not all alike."""
    lost: str
    """What is lost or opened, in one clause: who is given, refused or not kept from what."""
    fix: tuple[RuleChange, ...] = ()
    """Changes that mend it, to be applied in this order; empty if only a person can tell what was meant."""
    advice: str
    """The mend in words."""
    neutral: bool = False
    """Whether the fix, by itself, changes no decision: on the same rules without any other change.

    Several such fixes need not be neutral together: each of two rules may stand in for the other. See
    aclog.analysis.lint.redundant.
    """


# The catalogue: every lint, what it finds, why that hurts and how it is mended (docs/lint.md).


@frozen(kw_only=True)
class Lint:
    """One lint."""

    id: str
    """Two digits; never used again for another lint."""
    name: str
    """In kebab case, for people and SARIF."""
    title: str
    """What is wrong, in one clause, about one rule or several."""
    severity: Severity
    """Of its findings; those of lint 27 may be less severe."""
    exact: bool
    """Whether a finding is a fact; else it is a guess about what was meant, from names and habits."""
    harm: str
    """Why it hurts."""
    mend: str
    """What to do."""
    needs: str = ""
    """What must be known for it to find anything, as flags of `aclog lint`; empty if the rules suffice."""


_E, _W = Severity.ERROR, Severity.WARNING

LINTS: tuple[Lint, ...] = (
    Lint(
        id="01",
        name="prefixed-star",
        severity=_E,
        title="PREFIXED `*` covers only names that begin with a star",
        harm="It reads like every name, and covers none that exists: an ALLOW gives nothing, a DENY protects nothing.",
        mend="LITERAL `*`, if every name is meant; or the prefix that was.",
        exact=True,
    ),
    Lint(
        id="02",
        name="glob-in-name",
        severity=_E,
        title="a LITERAL name holds a glob or a regular expression",
        harm="Kafka compares it as it stands: the rule covers the one name that looks like that, and no other.",
        mend="PREFIXED covers all names that begin alike; for other patterns, a rule for each name or prefix.",
        exact=True,
    ),
    Lint(
        id="03",
        name="host-not-an-address",
        severity=_E,
        title="the host is neither `*` nor an address as brokers see it",
        harm="Kafka compares the host with the text of the client's address: a name, a glob or `::1` matches nobody.",
        mend="The address in the form that Kafka prints: IPv6 as eight groups without leading zeros.",
        exact=True,
    ),
    Lint(
        id="04",
        name="cidr-host",
        severity=_E,
        title="the host is a CIDR range, which brokers take for a plain text",
        harm="Without ranges (KIP-1276) the rule matches nobody: an ALLOW gives nothing, a DENY protects nothing.",
        mend="A rule for each address, or brokers that know ranges (`--cidr`).",
        exact=True,
    ),
    Lint(
        id="05",
        name="principal-without-type",
        severity=_E,
        title="the principal has no type",
        harm="Kafka's authorizer throws when it reaches the rule: requests on the resource fail, whoever makes them.",
        mend="A type and a colon before the name: User:alice.",
        exact=True,
    ),
    Lint(
        id="06",
        name="near-miss-principal",
        severity=_E,
        title="the principal is unknown, and another one differs only in case, blanks or a part of its name",
        harm="Principals are compared as they stand: the rule is for nobody, and whoever was meant goes without.",
        mend="The name exactly as the broker logs it.",
        exact=False,
        needs="--accesses",
    ),
    Lint(
        id="07",
        name="unknown-principal-type",
        severity=_E,
        title="the principal is of a type that no client has",
        harm="Kafka's own principal builder makes User and nothing else: a rule for a group or a role matches nobody.",
        mend="A rule for each user; or name the types that your principal builder makes (`--principal-types`).",
        exact=True,
    ),
    Lint(
        id="08",
        name="shadowed",
        severity=_W,
        title="other rules allow all that this ALLOW allows",
        harm="It gives nothing, and whoever removes it to take access away takes nothing. Where only a wide rule for "
        "everyone makes it needless, that one is the suspect: keep this one.",
        mend="Remove it.",
        exact=True,
    ),
    Lint(
        id="09",
        name="overridden-allow",
        severity=_E,
        title="the ALLOW allows nothing: DENY rules override all of it",
        harm="Any DENY that matches wins, however short its prefix: the access that it promises is refused.",
        mend="Narrow the DENY, or remove the ALLOW.",
        exact=True,
    ),
    Lint(
        id="10",
        name="dead-deny",
        severity=_W,
        title="the DENY denies nothing that any rule allows",
        harm="What nobody is allowed is denied without it; it seems to protect, and does not say what.",
        mend="Remove it, unless it stands guard against rules to come.",
        exact=True,
    ),
    Lint(
        id="11",
        name="implied",
        severity=_W,
        title="another ALLOW on the same resource implies this one",
        harm="READ, WRITE, DELETE and ALTER allow DESCRIBE as well, and ALTER_CONFIGS allows DESCRIBE_CONFIGS.",
        mend="Remove it.",
        exact=True,
    ),
    Lint(
        id="12",
        name="unsupported-operation",
        severity=_E,
        title="the operation does not exist on this type of resource",
        harm="No client ever asks for it: the rule gives or denies nothing that it names.",
        mend="The operation that was meant (consuming needs READ on the group), or no rule.",
        exact=True,
    ),
    Lint(
        id="13",
        name="consumer-without-group",
        severity=_W,
        title="a principal may read topics, and no consumer group",
        harm="A consumer that subscribes needs READ on its group as well: it fails with GROUP_AUTHORIZATION_FAILED.",
        mend="READ on the group; none is needed by a reader that assigns partitions by hand.",
        exact=False,
    ),
    Lint(
        id="14",
        name="transaction-without-write",
        severity=_W,
        title="a principal may use a transactional id, and not what a transaction needs",
        harm="A transactional producer needs WRITE on its transactional id and on the topics it writes to.",
        mend="WRITE on the transactional id and on the topics.",
        exact=False,
    ),
    Lint(
        id="15",
        name="idempotent-write",
        severity=_W,
        title="IDEMPOTENT_WRITE on the cluster beside WRITE on a topic",
        harm="Since Kafka 2.8 whoever may write to any topic may write idempotently: the rule is a leftover.",
        mend="Remove it, once no broker is older than 2.8.",
        exact=True,
    ),
    Lint(
        id="16",
        name="everyone-may-write",
        severity=_E,
        title="everyone may write to every resource of a type",
        harm="User:* is every client of any type, and LITERAL `*` every name that exists or will exist.",
        mend="Rules for the principals and names that need it.",
        exact=True,
    ),
    Lint(
        id="17",
        name="cluster-rights",
        severity=_E,
        title="a principal that is neither a broker nor a super user holds rights over the whole cluster",
        harm="ALTER on the cluster changes ACLs, so it is every right; CLUSTER_ACTION reads topics as a replica does.",
        mend="Keep it to brokers (`--broker-principals`) and super users (`--super-users`).",
        exact=True,
    ),
    Lint(
        id="18",
        name="no-such-name",
        severity=_W,
        title="the rule covers no topic, or no group, that exists",
        harm="It is a leftover, or its name has a typo: then those for whom it is go without.",
        mend="A name that exists, or no rule.",
        exact=False,
        needs="--topics or --groups",
    ),
    Lint(
        id="19",
        name="shared-group",
        severity=_W,
        title="several principals may join one consumer group",
        harm="Members of a group share its partitions: one application takes messages from the other.",
        mend="A group for each application.",
        exact=False,
    ),
    Lint(
        id="20",
        name="shared-transactional-id",
        severity=_W,
        title="several principals may use one transactional id",
        harm="A producer fences every other one with its id: two applications keep throwing each other out.",
        mend="A transactional id, or a prefix, for each application.",
        exact=False,
    ),
    Lint(
        id="21",
        name="prefix-without-separator",
        severity=_W,
        title="a prefix ends inside of a word, and covers names of other owners",
        harm="`pay` covers `payroll.out` as well as `pay.in`, today and in future.",
        mend="End the prefix with a separator: `pay.`.",
        exact=False,
        needs="--topics",
    ),
    Lint(
        id="22",
        name="closes-open-resource",
        severity=_E,
        title="rules close a resource to principals that used it when no rule did",
        harm="With allow.everyone.if.no.acl.found the first rule on a resource ends everybody's access but its own.",
        mend="Rules for everybody who uses the resource, before or together with the first one.",
        exact=False,
        needs="--accesses",
    ),
    Lint(
        id="23",
        name="name-below-star",
        severity=_E,
        title="the name begins with a character below `*`",
        harm="Kafka 4.3.1 loops forever, or throws, when it decides on another name with the same first character.",
        mend="A name that begins with none of: blank ! \" # $ % & ' ( ).",
        exact=True,
    ),
    Lint(
        id="24",
        name="illegal-topic-name",
        severity=_E,
        title="no topic can have such a name",
        harm="Topic names have up to 249 of the characters a-z A-Z 0-9 . _ -: the rule covers nothing.",
        mend="The name of the topic.",
        exact=True,
    ),
    Lint(
        id="25",
        name="many-literals",
        severity=_W,
        title="many LITERAL rules of one principal that one PREFIXED rule would replace",
        harm="Each new topic needs another rule, and the list hides what is missing from it.",
        mend="One PREFIXED rule, if all names below the prefix belong together.",
        exact=False,
    ),
    Lint(
        id="26",
        name="grown-reach",
        severity=_W,
        title="a pattern covers more topics than when it was added",
        harm="Topics that came later are open to whoever held the pattern before, though nobody decided that.",
        mend="A longer prefix, or the names that were meant.",
        exact=False,
        needs="a source with a history",
    ),
    Lint(
        id="27",
        name="everyone-reaches-far",
        severity=_E,
        title="everyone holds a right that reaches far",
        harm="User:* is every client of any type, User:ANONYMOUS every one that does not log in: all names of a type, "
        "internal topics, the cluster or all operations are theirs. To describe, or from one host only: a warning.",
        mend="Rules for the principals, names and operations that need it.",
        exact=True,
    ),
)
"""By id, which are the numbers from 1 on."""

BY_ID: Mapping[str, Lint] = MappingProxyType({lint.id: lint for lint in LINTS})

ALL: frozenset[str] = frozenset(BY_ID)


def parse_lints(texts: Iterable[str]) -> frozenset[str]:
    """Return the ids of lints given by id (`08`, `8`) or by name (`shadowed`).

    Raises:
        ConfigError: there is no such lint; the message lists all of them.

    """
    by_text = {text: lint.id for lint in LINTS for text in (lint.id, lint.id.lstrip("0"), lint.name)}
    ids = set()
    for text in texts:
        key = text.strip().lower()
        if key not in by_text:
            names = ", ".join(f"{lint.id} {lint.name}" for lint in LINTS)
            raise ConfigError(f"{text[:40]!r} is no lint: expected one of {names}")
        ids.add(by_text[key])
    return frozenset(ids)


# Findings made from rows of a table, with what the catalogue says about their lint.


class Consequence(NamedTuple):
    """What a lint tells about a rule: what is lost, and the mend if changes can express it."""

    lost: str
    fix: tuple[RuleChange, ...] = ()


def finding(lint: str, rules: Sequence[StandardAcl], consequence: Consequence, *, neutral: bool = False) -> Finding:
    """Return a finding of a lint about some rules, as severe and with the mend that the catalogue says."""
    about = BY_ID[lint]
    return Finding(
        lint=lint,
        severity=about.severity,
        rules=tuple(rules),
        lost=consequence.lost,
        fix=consequence.fix,
        advice=about.mend,
        neutral=neutral,
    )


def findings(
    lint: str, table: RuleTable, rows: Bools, tell: Callable[[StandardAcl], Consequence], *, neutral: bool = False
) -> Iterator[Finding]:
    """Yield a finding for each of the chosen rows."""
    for row in np.flatnonzero(rows).tolist():
        rule = table.rule(row)
        yield finding(lint, (rule,), tell(rule), neutral=neutral)


def replaced(rule: StandardAcl, *by: StandardAcl) -> tuple[RuleChange, ...]:
    """Return the changes that put some rules in the place of one: an added DENY comes before a removal."""
    added = tuple(RuleChange(added=True, acl=each) for each in by if each != rule)
    return (*added, RuleChange(added=False, acl=rule))


def texts_matching(texts: Sequence[str], pattern: str) -> Bools:
    """Return which texts a regular expression finds itself in."""
    search = re.compile(pattern).search
    return np.fromiter(map(search, texts), np.bool_, len(texts))  # a match is true, None is not


def texts_among(texts: Sequence[str], members: Iterable[str]) -> Bools:
    """Return which texts are some of these."""
    return np.fromiter(map(frozenset(members).__contains__, texts), np.bool_, len(texts))


def one_of(characters: str) -> str:
    """Return these characters as they stand in a class of a regular expression."""
    return "".join(f"\\U{ord(each):08x}" for each in characters)


def types_of(principals: Iterable[str]) -> list[str]:
    """Return the type of each principal: what stands before the first colon."""
    return [principal.partition(":")[0] for principal in principals]


# What a rule gives or denies, in words for findings.


_BYTE = r"(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
PLAIN_HOST = rf"^(\*|{_BYTE}(\.{_BYTE}){{3}})\Z"
"""A regular expression for `*` and IPv4 addresses: nearly all hosts, and no question."""

_NOUNS: dict[int, str] = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
    ResourceType.DELEGATION_TOKEN: "delegation token",
    ResourceType.USER: "user",
}


def noun(resource_type: int) -> str:
    """Return what resources of a type are called: `topic`."""
    return _NOUNS.get(resource_type, "resource")


def who(acl: StandardAcl) -> str:
    """Return for whom a rule is, and from where if not from everywhere: `User:a from 10.0.0.1`."""
    return acl.principal if acl.host == "*" else f"{acl.principal} from {acl.host}"


def what(acl: StandardAcl) -> str:
    """Return what a rule is about: `topic 'a'`, `topics 'a'*` for a prefix, `every topic` for LITERAL `*`."""
    kind = noun(acl.resource_type)
    if acl.pattern_type != PatternType.LITERAL:
        return f"{kind}s {acl.resource_name!r}*"
    return f"every {kind}" if acl.resource_name == "*" else f"{kind} {acl.resource_name!r}"


def brief(acl: StandardAcl) -> str:
    """Return a rule in short: `ALLOW READ topics 'a'* to User:a`."""
    if is_allow(acl):
        return f"ALLOW {verb(acl)} {what(acl)} to {who(acl)}"
    return f"DENY {verb(acl)} {what(acl)} to {who(acl)}"


def verb(acl: StandardAcl) -> str:
    """Return the operation: `READ`."""
    return code_name(AclOperation, acl.operation)


def is_allow(acl: StandardAcl) -> bool:
    """Return whether a rule allows; every permission but ALLOW denies."""
    return acl.permission_type == AclPermissionType.ALLOW


def useless(acl: StandardAcl) -> str:
    """Return what a rule that matches nothing fails to do."""
    kind = noun(acl.resource_type)
    if is_allow(acl):
        return f"{who(acl)} gets no {verb(acl)} on any {kind} by it"
    return f"{who(acl)} is denied no {verb(acl)} on any {kind} by it"


# Rows grouped by equal numbers.


def groups_of(
    keys: Int32s | Int64s, rows: Bools, more_keys: Int64s | None = None, *, least: int = 1
) -> Iterator[list[int]]:
    """Yield the chosen rows in groups with equal keys, of at least so many rows, ascending by key."""
    selection = np.flatnonzero(rows)
    if not len(selection):
        return
    first = keys[selection]
    second = first if more_keys is None else more_keys[selection]
    order = np.lexsort((selection, second, first))
    differs = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
    starts = np.concatenate(([0], np.flatnonzero(differs) + 1))
    ends = np.append(starts[1:], len(selection))
    large = ends - starts >= least
    for start, end in zip(starts[large].tolist(), ends[large].tolist(), strict=True):
        yield selection[order[start:end]].tolist()
