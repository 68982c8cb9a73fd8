"""The credentials that logins are verified against."""

from typing import Protocol

from attrs import field, frozen

from aclog.authorizer.principals import KafkaPrincipal
from aclog.credentials.scram import ScramMechanism
from aclog.metalog.records import UserScramCredentialRecord


@frozen(kw_only=True)
class TokenCredential:
    """A delegation token as a SCRAM credential (KIP-48): the user is the token id, the password the token's HMAC.

    `expiry_ms` is in ms since 1970.
    """

    owner: KafkaPrincipal
    expiry_ms: int
    credential: UserScramCredentialRecord = field(repr=False)


class Credentials(Protocol):
    """The credentials that a node has replayed. An implementation without tokens keeps the defaults."""

    tokens_enabled: bool = False
    """Whether clients may log in with delegation tokens."""

    @property
    def ready(self) -> bool:
        """Whether the log has been replayed, so that an absent credential means an unknown user."""
        ...

    @property
    def decoy_key(self) -> bytes:
        """The key that the salts of unknown users are derived from, the same on all nodes of a cluster."""
        ...

    def scram(self, user: str, mechanism: ScramMechanism) -> UserScramCredentialRecord | None:
        """The user's credential, or None."""
        ...

    def token(self, token_id: str, mechanism: ScramMechanism) -> TokenCredential | None:  # noqa: ARG002
        """The unexpired token with this id, or None; called only if tokens are enabled."""
        return None
