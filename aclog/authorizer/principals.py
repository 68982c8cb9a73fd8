"""Principals as text: `Type:name` (org.apache.kafka.common.security.auth.KafkaPrincipal)."""

from typing import Self

from attrs import frozen

from aclog.authorizer.errors import InvalidRequestError


@frozen(kw_only=True)
class KafkaPrincipal:
    """Who: a type (`User`, `Group`, whatever a principal builder made) and a name; either may be empty."""

    type: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """The principal of a text, split at its first colon: the name of `User:a:b` is `a:b`.

        Raises:
            InvalidRequestError: no colon; with the words that Kafka's StandardAcl has for it.

        """
        kind, colon, name = text.partition(":")
        if not colon:
            raise InvalidRequestError(no_colon(text))
        return cls(type=kind, name=name)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


def no_colon(text: str) -> str:
    """What Kafka says of a principal without a colon."""
    return (
        f"Could not parse principal from `{text}` "
        "(no colon is present separating the principal type from the principal name)"
    )
