"""From (principal, host) to the pairs that can match it: itself, `User:*`, host `*`, and CIDR ranges where enabled."""

from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL
from aclog.authorizer.cidr import parse_cidr
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.index.base import Subject
from aclog.authorizer.index.columns import pairs_of
from aclog.authorizer.index.decision_mask import State
from aclog.authorizer.index.keys import split_pair
from aclog.metalog.errors import ConfigError

_MOST_SUBJECTS = 1 << 16


def matching_pairs(principal: str, host: str) -> tuple[tuple[str, str], ...]:
    """The (principal, host) texts of rules that are for this subject.

    Raises:
        InvalidRequestError: a principal without a colon, or `User:*`, on which Kafka's authorizer throws.

    """
    if principal == WILDCARD_PRINCIPAL:
        raise InvalidRequestError(f"{principal} is not a session's principal: it stands for all of them in rules")
    if ":" not in principal:
        raise InvalidRequestError(f"{principal!r} is not a principal: expected Type:name")
    hosts = (host,) if host == WILDCARD else (host, WILDCARD)
    return tuple((who, where) for who in (principal, WILDCARD_PRINCIPAL) for where in hosts)


def resolve(state: State, principal: str, host: str) -> Subject:
    """The subject, remembered by the base; raises as `matching_pairs`."""
    memo = state.base.memo
    subject = memo.subjects.get((principal, host))
    if subject is None:
        subject = state.base.subject(matching_pairs(principal, host))
        if len(memo.subjects) >= _MOST_SUBJECTS:
            memo.subjects = {}
        memo.subjects[principal, host] = subject
    return subject


def resolve_ranges(state: State, principal: str, host: str) -> Subject:
    """The subject where hosts of rules may be CIDR ranges, remembered by the state; raises as `matching_pairs`."""
    known: dict[tuple[str, str], Subject] = state.memo.setdefault("range subjects", {})
    subject = known.get((principal, host))
    if subject is None:
        keys = matching_pairs(principal, host)
        ranges = (pair for who in (principal, WILDCARD_PRINCIPAL) for pair in _ranges(state, who))
        subject = state.base.subject((*keys, *(pair for pair in ranges if _contains(pair[1], host))))
        if len(known) >= _MOST_SUBJECTS:
            known.clear()
        known[principal, host] = subject
    return subject


def _ranges(state: State, principal: str) -> set[tuple[str, str]]:
    """The pairs of a principal whose host has a slash."""
    base = state.base
    found = {split_pair(base.pairs.key(pair)) for pair in pairs_of(base, principal)}
    found |= {(principal, host) for host in state.overlay.ranges.get(principal, ())}
    return {(who, where) for who, where in found if "/" in where}


def _contains(text: str, host: str) -> bool:
    try:
        return parse_cidr(text).contains(host)
    except ConfigError:
        return False
