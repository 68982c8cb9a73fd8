"""Strimzi's KafkaUser resources, as its User Operator makes ACLs of them."""

from aclog.sources.formats.strimzi.reader import claims, read

__all__ = ["claims", "read"]
