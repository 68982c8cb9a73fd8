"""Principals as text: `Type:name` (org.apache.kafka.common.security.auth.KafkaPrincipal)."""

from typing import Self

from attrs import frozen

from aclog.authorizer.errors import InvalidRequestError


@frozen(kw_only=True)
class KafkaPrincipal:
    """A principal: a type (`User`, or whatever a principal builder returns) and a name; either may be empty."""

    type: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a text, split at its first colon: the name of `User:a:b` is `a:b`.

        Raises:
            InvalidRequestError: there is no colon; the message is that of Kafka's StandardAcl.

        """
        kind, colon, name = text.partition(":")
        if not colon:
            raise InvalidRequestError(no_colon(text))
        return cls(type=kind, name=name)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


def no_colon(text: str) -> str:
    """Return Kafka's message about a principal without a colon."""
    return (
        f"Could not parse principal from `{text}` "
        "(no colon is present separating the principal type from the principal name)"
    )
