"""Kafka's enum names as other tools spell them."""

from enum import IntEnum


def camel_name(value: IntEnum) -> str:
    """Return TRANSACTIONAL_ID as TransactionalId (SecurityUtils.resourceTypeName and its like)."""
    return value.name.title().replace("_", "")
