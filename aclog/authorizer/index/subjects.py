"""Resolution of (principal, host) to the pairs that match: itself, `User:*`, host `*`, and CIDR ranges if enabled."""

from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL
from aclog.authorizer.cidr import address_number
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.base import Base, Subject
from aclog.authorizer.index.keys import split_pair
from aclog.authorizer.index.range_hosts import RangeHosts

_NO_HOSTS: tuple[str, ...] = ()


def check_principal(principal: str) -> None:
    """Check the principal of a request.

    Raises:
        InvalidRequestError: it has no colon or is `User:*`; Kafka's authorizer throws on both.

    """
    if principal == WILDCARD_PRINCIPAL:
        raise InvalidRequestError(
            f"{principal} cannot be the principal of a request: in an ACL it stands for every principal"
        )
    if ":" not in principal:
        raise InvalidRequestError(f"invalid principal {principal!r}: expected principalType:principalName")


def matching_pairs(principal: str, host: str) -> tuple[tuple[str, str], ...]:
    """Return the (principal, host) texts of ACLs that match this subject. Raises as `check_principal`."""
    check_principal(principal)
    if host == WILDCARD:
        return (principal, host), (WILDCARD_PRINCIPAL, host)
    return (principal, host), (principal, WILDCARD), (WILDCARD_PRINCIPAL, host), (WILDCARD_PRINCIPAL, WILDCARD)


def resolve(index: AclIndex, principal: str, host: str) -> Subject:
    """Return the subject, memoised by the base. Raises as `check_principal`."""
    memo, key = index.base.memo.subjects, (principal, host)
    subject = memo.young.get(key)
    if subject is None:
        subject = memo.old.get(key)
        # Without its chain masks: those of a subject that is always in use would never be dropped.
        subject = index.base.subject(matching_pairs(principal, host)) if subject is None else subject.renewed()
        memo.put(key, subject)
    return subject


def resolve_ranges(index: AclIndex, principal: str, host: str) -> Subject:
    """Return the subject if hosts of ACLs may be CIDR ranges. Raises as `check_principal`."""
    # Memoised by the base, together with what the overlay had then: an added ACL may bring a new range. Most updates
    # bring none and leave these tuples as they are.
    memo, added = index.base.memo.range_subjects, index.overlay.ranges
    own, everybodys = added.get(principal, _NO_HOSTS), added.get(WILDCARD_PRINCIPAL, _NO_HOSTS)
    key = principal, host
    known = memo.young.get(key)
    if known is None and (known := memo.old.get(key)) is not None:
        known = known[0].renewed(), known[1], known[2]
        memo.put(key, known)
    if known is not None and known[1] is own and known[2] is everybodys:
        return known[0]
    keys = matching_pairs(principal, host)
    address = address_number(host)
    if address is not None:
        for who, hosts in (principal, own), (WILDCARD_PRINCIPAL, everybodys):
            ranges = _ranges(index.base, who, hosts)
            if ranges is not None:
                keys += tuple((who, where) for where in dict.fromkeys(ranges.containing(address)))
    subject = index.base.subject(keys)
    memo.put(key, (subject, own, everybodys))
    return subject


def _ranges(base: Base, principal: str, added: tuple[str, ...]) -> RangeHosts | None:
    """Return the ranges of a principal, in the base and of an overlay; None if there are none."""
    known = base.memo.range_hosts.get(principal)
    if known is None:
        pairs = base.pairs_of(principal, base.range_pairs) if len(base.range_pairs) else []
        if not pairs and not added:
            return None  # not remembered: clients choose principals
        known = RangeHosts()
        known.add(split_pair(base.pairs.key(pair))[1] for pair in pairs)
        base.memo.range_hosts[principal] = known
    known.add_overlay(added)
    return known
