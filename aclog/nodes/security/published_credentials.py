"""The SCRAM credentials and delegation tokens that a node has replayed, as its logins ask for them."""

import os
from collections import OrderedDict
from collections.abc import Callable

from attrs import define, field

from aclog.authorizer.principals import KafkaPrincipal
from aclog.credentials import scram_keys
from aclog.credentials.scram import ScramMechanism
from aclog.credentials.scram_control import credential_record
from aclog.credentials.tokens import token_hmac
from aclog.metalog.clock import current_time_ms
from aclog.metalog.records import UserScramCredentialRecord
from aclog.nodes.security.login_credentials import Credentials, TokenCredential
from aclog.snapshots.publisher import Publisher

_REMEMBERED = 10_000
"""So many tokens' credentials are kept: each takes a millisecond to make, and some 500 bytes."""


@define(eq=False)
class PublishedCredentials(Credentials):
    """Looks into the image that is published (ScramPublisher's CredentialProvider, DelegationTokenPublisher)."""

    publisher: Publisher
    token_secret: str | None = field(default=None, repr=False)
    """delegation.token.secret.key; without it nobody logs in by a token."""
    tokens_enabled: bool = field(init=False)
    clock: Callable[[], int] = current_time_ms
    """ms since 1970"""
    _token_credentials: OrderedDict[tuple[str, ScramMechanism], UserScramCredentialRecord] = field(
        factory=OrderedDict, init=False, repr=False
    )

    @tokens_enabled.default
    def _has_secret(self) -> bool:
        return bool(self.token_secret)

    @property
    def ready(self) -> bool:
        """Whether the log has been replayed up to the high-water mark first learned."""
        return self.publisher.ready

    def scram(self, user: str, mechanism: ScramMechanism) -> UserScramCredentialRecord | None:
        """The user's credential, or None."""
        return self.publisher.current.scram.get(user, mechanism)

    def token(self, token_id: str, mechanism: ScramMechanism) -> TokenCredential | None:
        """The token of this id, unless it has expired; Kafka lets it in, and ends its session at the next request."""
        token = self.publisher.current.tokens.get(token_id)
        if token is None or self.token_secret is None:
            return None
        expiry = min(token.expiration_timestamp, token.max_timestamp)
        if expiry <= self.clock():
            return None
        credential = self._credential(self.token_secret, token_id, mechanism)
        kind, _, name = token.owner.partition(":")
        return TokenCredential(owner=KafkaPrincipal(type=kind, name=name), expiry_ms=expiry, credential=credential)

    def _credential(self, secret: str, token_id: str, mechanism: ScramMechanism) -> UserScramCredentialRecord:
        """What proves the token's HMAC, with the fewest iterations, as in Kafka: the HMAC is not to be guessed."""
        known, key = self._token_credentials, (token_id, mechanism)
        if (found := known.get(key)) is not None:
            known.move_to_end(key)
            return found
        salt, iterations = os.urandom(24), scram_keys.MIN_ITERATIONS
        salted = scram_keys.salted_password(mechanism, token_hmac(secret, token_id), salt, iterations)
        made = credential_record(token_id, mechanism, salt=salt, salted_password=salted, iterations=iterations)
        known[key] = made
        if len(known) > _REMEMBERED:
            known.popitem(last=False)
        return made
