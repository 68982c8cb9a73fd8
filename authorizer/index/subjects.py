"""From (principal, host) to the pairs that can match it: itself, `User:*`, host `*`, and CIDR ranges where enabled."""

from authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL
from authorizer.errors import InvalidRequestError
from authorizer.index.base import Subject
from authorizer.index.deciding import State

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
    subject = memo.subjects[0].get((principal, host))
    if subject is None:
        subject = state.base.subject(matching_pairs(principal, host))
        if len(memo.subjects[0]) >= _MOST_SUBJECTS:
            memo.subjects = ({}, {})
        memo.subjects[0][principal, host] = subject
    return subject
