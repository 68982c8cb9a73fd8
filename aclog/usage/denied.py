"""Denied requests of an access log, with the ACLs that deny them, folded into attempts."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Final

import numpy as np
import pyarrow as pa

from aclog.analysis.intents import Intent
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.control import refusal as refusal_of
from aclog.authorizer.index.layout import rule_mask
from aclog.authorizer.settings import Settings
from aclog.metalog.columns import Bools
from aclog.metalog.values import frozen
from aclog.usage.decisions.access_columns import AccessColumns, parse_columns
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer
from aclog.usage.decisions.decisions import ERRORS, REQUEST_COLUMNS, DecisionCode, ParsedAccess
from aclog.usage.decisions.intervals import Rules
from aclog.usage.undecided import undecided
from aclog.usage.window import UnreadAccesses

# Denied accesses of a log in a state, each with the DENY rules that match it.


_ROWS = 1 << 16
"""How many accesses are looked up at once."""


@frozen(kw_only=True)
class Refusal:
    """A distinct access that is denied."""

    access: ParsedAccess
    count: int
    first: int | None
    """In us since 1970; None, as `last`, if no line has a time."""
    last: int | None
    denies: tuple[int, ...]
    """The ordinals of all DENY rules that match; empty if the access is denied because no ALLOW matches."""


@frozen(kw_only=True)
class Refusals:
    """The denied accesses of a log in a state, and the numbers of allowed and undecided ones."""

    refusals: tuple[Refusal, ...]
    refused: int
    allowed: int
    undecided: int
    """Accesses on which Kafka's authorizer throws, for example because the host is not an address."""
    unread: UnreadAccesses
    """Those of them whose request is unknown."""


def refusals(counted: pa.Table, rules: Rules, settings: Settings) -> Refusals:
    """Decide distinct accesses (COUNTED, one row each) by the ACLs of one state."""
    authorizer = BulkAuthorizer.of(rules.intervals, settings)
    codes = authorizer.decide_once([counted.column(name) for name in REQUEST_COLUMNS])
    errors = np.isin(codes, [int(code) for code in ERRORS])
    refused = codes == DecisionCode.DEFAULT_DENY
    of_rule = codes >= 0
    denies = np.asarray(rules.table.column("permissionType").to_numpy()) != "ALLOW"
    refused[of_rule] = denies[codes[of_rule]]
    count = np.asarray(counted.column("count"))
    return Refusals(
        refusals=tuple(_refusals(counted.filter(pa.array(refused)), authorizer)),
        refused=int(count[refused].sum()),
        allowed=int(count[~refused & ~errors].sum()),
        undecided=int(count[errors].sum()),
        unread=undecided(counted, codes).but_of(settings.super_users),
    )


def _refusals(rows: pa.Table, authorizer: BulkAuthorizer) -> list[Refusal]:
    entries = []
    for start in range(0, len(rows), _ROWS):
        block = rows.slice(start, _ROWS)
        accesses, _ = parse_columns([block.column(name) for name in REQUEST_COLUMNS])
        spans = zip(*(block.column(name).to_pylist() for name in ("count", "first", "last")), strict=True)
        denies = _denies(accesses, authorizer)
        for access, (count, first, last), own in zip(accesses.objects(), spans, denies, strict=True):
            is_timed = first <= last
            entries.append(
                Refusal(
                    access=access,
                    count=count,
                    first=first if is_timed else None,
                    last=last if is_timed else None,
                    denies=own,
                )
            )
    return entries


def _denies(accesses: AccessColumns, authorizer: BulkAuthorizer) -> list[tuple[int, ...]]:
    """Return the DENY rules that match each access."""
    matches = authorizer.index.matches(accesses)
    denies: Bools = authorizer.index.denies(matches.row)
    by_access: list[list[int]] = [[] for _ in accesses]
    for access, ordinal in zip(matches.access[denies].tolist(), matches.ordinal[denies].tolist(), strict=True):
        by_access[access].append(ordinal)
    return [tuple(sorted(set(each))) for each in by_access]


# Denials folded into attempts: the intent of a principal on one resource, from all its hosts.
#
# A client requests DESCRIBE before it reads or writes, so both are one attempt, and one ACL allows both.


_ALLOW: Final = AclPermissionType.ALLOW


@frozen(kw_only=True)
class Attempt:
    """The denials of a principal on one resource."""

    principal: str
    intent: Intent | None
    """The intent; None for a lone DESCRIBE of a topic, or for requests that no intent combines."""
    operations: tuple[AclOperation, ...]
    resource_type: ResourceType
    resource_name: str
    hosts: tuple[str, ...]
    attempts: int
    """The number of attempts; a DESCRIBE and the request after it count once."""
    accesses: int
    first: int | None
    """In us since 1970; None, as `last`, if no line has a time."""
    last: int | None
    missing: tuple[StandardAcl, ...]
    """The fewest ACLs that would allow the attempt, as far as no DENY overrules them."""
    denies: tuple[int, ...]
    """The ordinals of the DENY rules that overrule the rest."""
    overruled: int
    """The number of accesses that these overrule."""
    without_rule: int
    """The number of other accesses that no ACL of `missing` allows: Kafka would refuse it, or it would be too wide."""


@frozen(kw_only=True)
class _Key:
    principal: str
    resource_type: int
    resource_name: str


def attempts_of(entries: Iterable[Refusal], *, any_host: bool = False) -> list[Attempt]:
    """Fold denials, the most frequent attempts first; with `any_host`, the ACLs allow every host."""
    of_key: dict[_Key, list[Refusal]] = defaultdict(list)
    groups: dict[str, set[str]] = defaultdict(set)
    transacts: set[str] = set()
    for refusal in entries:
        access = refusal.access
        key = _Key(principal=access.principal, resource_type=access.resource_type, resource_name=access.resource_name)
        of_key[key].append(refusal)
        if access.resource_type == ResourceType.GROUP:
            groups[access.principal].add(access.resource_name)
        elif access.resource_type == ResourceType.TRANSACTIONAL_ID:
            transacts.add(access.principal)
    attempts = []
    for key, own in of_key.items():
        by_intent = _by_intent(
            key, own, is_internal=_is_internal(key, groups[key.principal]), transacts=key.principal in transacts
        )
        attempts += [_attempt(key, intent, part, any_host=any_host) for intent, part in by_intent.items()]
    return sorted(attempts, key=_order)


_INTERNAL: Final = ("-changelog", "-repartition")


def _is_internal(key: _Key, groups: set[str]) -> bool:
    """Return whether a topic is internal to a Kafka Streams application, whose id is one of these groups."""
    if key.resource_type != ResourceType.TOPIC or not key.resource_name.endswith(_INTERNAL):
        return False
    return any(key.resource_name.startswith(f"{group}-") for group in groups)


def _by_intent(
    key: _Key, own: Sequence[Refusal], *, is_internal: bool, transacts: bool
) -> "dict[Intent | None, list[Refusal]]":
    """Return the denials by intent; a DESCRIBE belongs to the other requests from its host, or from any."""
    parts: dict[Intent | None, list[Refusal]] = defaultdict(list)
    intents: dict[str, Intent | None] = {}
    described = []
    for refusal in own:
        if refusal.access.operation == AclOperation.DESCRIBE:
            described.append(refusal)
        else:
            intent = _intent(refusal, is_internal=is_internal, transacts=transacts)
            intents[refusal.access.host] = intent
            parts[intent].append(refusal)
    other = min(parts, key=str) if parts else _DESCRIBES.get(ResourceType(key.resource_type))
    for refusal in described:
        parts[intents.get(refusal.access.host, other)].append(refusal)
    return parts


_DESCRIBES: Final = {ResourceType.GROUP: Intent.CONSUME, ResourceType.TRANSACTIONAL_ID: Intent.TRANSACT}
"""The intent of a lone DESCRIBE."""


def _intent(refusal: Refusal, *, is_internal: bool, transacts: bool) -> Intent | None:
    kind, operation = refusal.access.resource_type, refusal.access.operation
    if kind == ResourceType.TOPIC and is_internal:
        return Intent.STREAM
    if operation == AclOperation.WRITE:
        return Intent.TRANSACT if transacts or kind == ResourceType.TRANSACTIONAL_ID else Intent.PRODUCE
    if operation == AclOperation.READ:
        return Intent.CONSUME
    if operation == AclOperation.IDEMPOTENT_WRITE:
        return Intent.PRODUCE
    return Intent.ADMIN if kind == ResourceType.TOPIC else None


def _attempt(key: _Key, intent: Intent | None, own: Sequence[Refusal], *, any_host: bool) -> Attempt:
    of_host: dict[str, list[Refusal]] = defaultdict(list)
    for refusal in own:
        of_host[refusal.access.host].append(refusal)
    operations_of: dict[str, set[int]] = defaultdict(set)
    for refusal in own:
        if not refusal.denies:
            operations_of[WILDCARD if any_host else refusal.access.host].add(refusal.access.operation)
    missing = {host: _least_rules(key, host, operations_of[host]) for host in sorted(operations_of)}
    allowed = {host: _allowed(rules) for host, rules in missing.items()}
    overruled = sum(each.count for each in own if each.denies)
    without = (
        each.count
        for each in own
        if not each.denies and not allowed[WILDCARD if any_host else each.access.host] >> each.access.operation & 1
    )
    times = [(each.first, each.last) for each in own if each.first is not None and each.last is not None]
    return Attempt(
        principal=key.principal,
        intent=intent,
        operations=tuple(AclOperation(code) for code in sorted({each.access.operation for each in own})),
        resource_type=ResourceType(key.resource_type),
        resource_name=key.resource_name,
        hosts=tuple(sorted(of_host)),
        attempts=sum(map(_attempts, of_host.values())),
        accesses=sum(each.count for each in own),
        first=min((first for first, _ in times), default=None),
        last=max((last for _, last in times), default=None),
        missing=tuple(rule for rules in missing.values() for rule in rules),
        denies=tuple(sorted({ordinal for each in own for ordinal in each.denies})),
        overruled=overruled,
        without_rule=sum(without),
    )


def _attempts(own: Sequence[Refusal]) -> int:
    described = sum(each.count for each in own if each.access.operation == AclOperation.DESCRIBE)
    return max(described, sum(each.count for each in own) - described)


def least(operations: Iterable[int]) -> list[int]:
    """Return the smallest subset of these operations whose ALLOWs allow all."""
    codes = set(operations)
    implied = {code for code in codes for other in codes if other != code and rule_mask(other, _ALLOW) >> code & 1}
    return sorted(codes - implied)


def _least_rules(key: _Key, host: str, operations: Iterable[int]) -> list[StandardAcl]:
    # an operation that no ACL may have implies nothing: an ACL for ALL would imply everything
    rules = {code: rule for code in operations if (rule := _rule(key, host, code))}
    return [rules[code] for code in least(rules)]


def _allowed(rules: Iterable[StandardAcl]) -> int:
    """Return the operations that ACLs allow, as a mask of bits."""
    return reduce(or_, (rule_mask(rule.operation, _ALLOW) for rule in rules), 0)


def _rule(key: _Key, host: str, operation: int) -> StandardAcl | None:
    """Return the ACL; None if Kafka would refuse to create it, or if it would allow more than this resource."""
    rule = StandardAcl(
        resource_type=key.resource_type,
        resource_name=key.resource_name,
        pattern_type=PatternType.LITERAL,
        principal=key.principal,
        host=host,
        operation=operation,
        permission_type=_ALLOW,
    )
    is_wider = key.resource_name == WILDCARD or operation == AclOperation.ALL
    return None if is_wider or refusal_of(rule) else rule


def _order(attempt: Attempt) -> tuple[int, str, str, int, str]:
    intent = "" if attempt.intent is None else attempt.intent.value
    return (-attempt.attempts, attempt.principal, intent, int(attempt.resource_type), attempt.resource_name)
