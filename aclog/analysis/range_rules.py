"""The rules of a state whose host is a range of addresses: what another generation of Kafka decides otherwise."""

from collections.abc import Iterator

from aclog.authorizer.acl import AclBindingFilter, StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.cidr import is_cidr
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.keys import split_pair


def range_rules(acls: AclsImage) -> Iterator[StandardAcl]:
    """Yield the rules whose host Kafka 4.4 takes for a range; it costs no look at the others."""
    for principal, host in dict.fromkeys(_range_pairs(acls.index)):
        if is_cidr(host):
            for rule in acls.matching(AclBindingFilter(principal=principal, host=host)):
                yield rule.acl


def _range_pairs(index: AclIndex) -> Iterator[tuple[str, str]]:
    for pair in index.base.range_pairs:
        yield split_pair(index.base.pairs.key(pair))
    for principal, hosts in index.overlay.ranges.items():
        yield from ((principal, host) for host in hosts)
