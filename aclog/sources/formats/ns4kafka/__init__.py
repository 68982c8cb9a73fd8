"""ns4kafka's AccessControlEntry, Namespace and KafkaStream resources, as it makes ACLs of them."""

from aclog.sources.formats.ns4kafka.reader import claims, read

__all__ = ["claims", "read"]
