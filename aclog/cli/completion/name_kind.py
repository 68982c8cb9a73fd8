"""The kinds of names that flags take."""

from enum import StrEnum


class NameKind(StrEnum):
    """What a name names."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"
    DELEGATION_TOKEN = "delegation-token"  # noqa: S105 - a kind
    PRINCIPAL = "principal"
