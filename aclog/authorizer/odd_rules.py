"""Odd ACLs: those that only a record can hold, because CreateAcls refuses them. What Kafka 4.3.1 does with them."""

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.creation_checks import filter_value, unknown_field


def failure_in_kafka(acl: StandardAcl) -> str | None:
    """Return what fails in a Kafka 4.3.1 whose log holds this ACL; None if Kafka throws on nothing.

    Seen on a real one (tests/data/kafka-4.3.1-admin/odd-rules.json): StandardAcl.toBinding throws on ANY and MATCH,
    before any filter is asked; the checks of responses on UNKNOWN; StandardAcl.kafkaPrincipal without a colon.
    """
    if filter_value(acl) is not None:
        return "every listing and every removal of ACLs, whatever they ask for"
    if unknown_field(acl) is not None:
        return "every listing and every removal that selects it"
    if ":" not in acl.principal:
        return "every decision that reaches it"
    return None
