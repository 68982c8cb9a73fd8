"""What a place makes visible together."""

from enum import StrEnum


class Batching(StrEnum):
    """How much of a change becomes visible at once."""

    ALL = "ALL"
    """All of it: one batch, or one metadata transaction, of a log of ours."""
    RESOURCE = "RESOURCE"
    """What changes on one resource: a znode in ZooKeeper."""
    RULE = "RULE"
    """One ACL: a Kafka publishes each record of a request by itself."""
