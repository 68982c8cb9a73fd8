"""What logins are checked against."""

from typing import Protocol

from attrs import field, frozen

from aclog.authorizer.principals import KafkaPrincipal
from aclog.credentials.scram import ScramMechanism
from aclog.metalog.records import UserScramCredentialRecord


@frozen(kw_only=True)
class TokenCredential:
    """A delegation token as a SCRAM login sees it: who its owner is, until when it holds, and what proves it.

    `expiry_ms` is in ms since 1970; the credential's name is the token's id, its password the token's hmac (KIP-48).
    """

    owner: KafkaPrincipal
    expiry_ms: int
    credential: UserScramCredentialRecord = field(repr=False)


class Credentials(Protocol):
    """The credentials that a node has replayed. Where tokens are not served, a subclass leaves them as they are."""

    tokens_enabled: bool = False
    """Whether a client may log in by a delegation token."""

    @property
    def ready(self) -> bool:
        """Whether the log has been replayed far enough for an absent credential to mean something."""
        ...

    def scram(self, user: str, mechanism: ScramMechanism) -> UserScramCredentialRecord | None:
        """The user's credential, or None."""
        ...

    def token(self, token_id: str, mechanism: ScramMechanism) -> TokenCredential | None:  # noqa: ARG002
        """The token of this id, or None where there is none that holds; asked only where tokens are enabled."""
        return None
