"""Resolution of (principal, host) to the pairs that match: itself, `User:*`, host `*`, and CIDR ranges if enabled."""

from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL
from aclog.authorizer.cidr import in_cidr
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.base import Subject
from aclog.authorizer.index.keys import split_pair

_MAX_SUBJECTS = 1 << 16


def matching_pairs(principal: str, host: str) -> tuple[tuple[str, str], ...]:
    """Return the (principal, host) texts of ACLs that match this subject.

    Raises:
        InvalidRequestError: the principal has no colon or is `User:*`; Kafka's authorizer throws on both.

    """
    if principal == WILDCARD_PRINCIPAL:
        raise InvalidRequestError(
            f"{principal} cannot be the principal of a request: in an ACL it stands for every principal"
        )
    if ":" not in principal:
        raise InvalidRequestError(f"invalid principal {principal!r}: expected principalType:principalName")
    hosts = (host,) if host == WILDCARD else (host, WILDCARD)
    return tuple((who, where) for who in (principal, WILDCARD_PRINCIPAL) for where in hosts)


def resolve(index: AclIndex, principal: str, host: str) -> Subject:
    """Return the subject, memoised by the base. Raises as `matching_pairs`."""
    memo = index.base.memo
    subject = memo.subjects.get((principal, host))
    if subject is None:
        subject = index.base.subject(matching_pairs(principal, host))
        if len(memo.subjects) >= _MAX_SUBJECTS:
            memo.subjects = {}
        memo.subjects[principal, host] = subject
    return subject


def resolve_ranges(index: AclIndex, principal: str, host: str) -> Subject:
    """Return the subject if hosts of ACLs may be CIDR ranges. Raises as `matching_pairs`."""
    # Memoised by this version of the index and not by the base: an added ACL may bring a new range.
    known: dict[tuple[str, str], Subject] = index.memo.setdefault("range subjects", {})
    subject = known.get((principal, host))
    if subject is None:
        keys = matching_pairs(principal, host)
        ranges = (pair for who in (principal, WILDCARD_PRINCIPAL) for pair in _ranges(index, who))
        subject = index.base.subject((*keys, *(pair for pair in ranges if in_cidr(pair[1], host))))
        if len(known) >= _MAX_SUBJECTS:
            known.clear()
        known[principal, host] = subject
    return subject


def _ranges(index: AclIndex, principal: str) -> set[tuple[str, str]]:
    """Return the pairs of a principal whose host has a slash."""
    base = index.base
    found = {split_pair(base.pairs.key(pair)) for pair in base.pairs_of(principal, base.range_pairs)}
    found |= {(principal, host) for host in index.overlay.ranges.get(principal, ())}
    return {(who, where) for who, where in found if "/" in where}
