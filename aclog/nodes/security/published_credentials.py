"""The SCRAM credentials and delegation tokens of the published image."""

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
from aclog.nodes.security.decoy_key import decoy_key, decoy_salt
from aclog.nodes.security.login_credentials import Credentials, TokenCredential
from aclog.snapshots.publisher import Publisher

_REMEMBERED = 10_000
"""Size of the cache of token credentials, which take 1 ms and about 500 bytes each."""


@define(eq=False, kw_only=True)
class PublishedCredentials(Credentials):
    """Reads credentials from the published image (ScramPublisher's CredentialProvider, DelegationTokenPublisher)."""

    publisher: Publisher
    replayed: Callable[[], bool]
    """Whether the image covers everything that was committed when this node started."""
    cluster_id: str
    token_secret: str | None = field(default=None, repr=False)
    """delegation.token.secret.key; without it token logins are disabled."""
    decoy_secret: str | None = field(default=None, repr=False)
    """aclog.scram.decoy.secret."""
    tokens_enabled: bool = field(init=False)
    clock: Callable[[], int] = current_time_ms
    """Returns ms since 1970."""
    _token_credentials: OrderedDict[tuple[str, ScramMechanism], UserScramCredentialRecord] = field(
        factory=OrderedDict, init=False, repr=False
    )

    @tokens_enabled.default
    def _has_secret(self) -> bool:
        return bool(self.token_secret)

    @property
    def ready(self) -> bool:
        """See `replayed`."""
        return self.replayed()

    @property
    def decoy_key(self) -> bytes:
        """See Credentials."""
        return decoy_key(self.cluster_id, self.publisher.current.provenance.voters, self.decoy_secret)

    def scram(self, user: str, mechanism: ScramMechanism) -> UserScramCredentialRecord | None:
        """The user's credential, or None."""
        return self.publisher.current.scram.get(user, mechanism)

    def token(self, token_id: str, mechanism: ScramMechanism) -> TokenCredential | None:
        """The token with this id unless it has expired.

        Kafka accepts the login with an expired token and closes the session at its first request.
        """
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
        """Return the SCRAM credential for the token's HMAC.

        The minimum of iterations suffices, as in Kafka: unlike a password, an HMAC cannot be guessed.
        """
        known, key = self._token_credentials, (token_id, mechanism)
        if (found := known.get(key)) is not None:
            known.move_to_end(key)
            return found
        # The salt does not tell whether there is such a token.
        salt, iterations = decoy_salt(self.decoy_key, mechanism, token_id), scram_keys.MIN_ITERATIONS
        salted = scram_keys.salted_password(mechanism, token_hmac(secret, token_id), salt, iterations)
        made = credential_record(token_id, mechanism, salt=salt, salted_password=salted, iterations=iterations)
        known[key] = made
        if len(known) > _REMEMBERED:
            known.popitem(last=False)
        return made
