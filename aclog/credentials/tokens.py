"""Delegation tokens (KIP-48): their image, lookup by HMAC, and requests that create, renew or expire them."""

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Self, TypeAlias

from attrs import evolve, field

from aclog.metalog.persistent_map import Map
from aclog.metalog.records import DelegationTokenRecord, RemoveDelegationTokenRecord
from aclog.metalog.values import define, frozen

# The delegation tokens of an image: immutable, keyed by token id (org.apache.kafka.image.DelegationTokenImage).


TokenChange: TypeAlias = DelegationTokenRecord | RemoveDelegationTokenRecord


def token_hmac(secret: str, token_id: str) -> str:
    """Return the token's HMAC in base64: the password of a SCRAM login whose user name is the token id."""
    return b64encode(token_hmac_bytes(secret, token_id)).decode("ascii")


def token_hmac_bytes(secret: str, token_id: str) -> bytes:
    """Return the HmacSHA512 of the token id, keyed by `delegation.token.secret.key` (KIP-48); never in the log."""
    return hmac.digest(secret.encode(), token_id.encode(), hashlib.sha512)


def _number(values: Map[Any, Any]) -> str:
    return str(len(values))


@frozen(kw_only=True)
class TokensImage:
    """All delegation tokens at one offset, including expired ones until the controller removes them."""

    EMPTY: ClassVar["TokensImage"]

    _tokens: Map[str, DelegationTokenRecord] = field(factory=Map, alias="tokens", repr=_number)

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, token_id: str) -> DelegationTokenRecord | None:
        """Return the token with this id, or None."""
        return self._tokens.get(token_id)

    def records(self) -> Iterator[DelegationTokenRecord]:
        """Yield the records of this image, sorted by token id."""
        return (self._tokens[token_id] for token_id in sorted(self._tokens))

    def owned_by(self, principals: Iterable[str]) -> Iterator[DelegationTokenRecord]:
        """Yield the tokens that one of these principals owns, requested or may renew (Kafka's describe by owner)."""
        owners = frozenset(principals)
        for record in self.records():
            if not owners.isdisjoint((record.owner, record.requester, *record.renewers)):
                yield record

    def apply(self, changes: Iterable[TokenChange]) -> Self:
        """Return the image after these changes, in order."""
        tokens = self._tokens.mutate()
        for change in changes:
            if isinstance(change, DelegationTokenRecord):
                tokens[change.token_id] = change
            else:
                # No error if it is missing: Kafka itself writes logs that remove an absent token.
                tokens.pop(change.token_id, None)
        return type(self)(tokens=tokens.finish())


TokensImage.EMPTY = TokensImage()


# Finds the token of an HMAC (org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache).


_HMAC_BYTES = 64


@define
class TokenIndex:
    """Finds tokens by HMAC; its owner adds and removes token ids as tokens are created and removed.

    It stores digests of the HMACs keyed with a secret of this process, looks up the digest of a client's HMAC, and
    then compares in constant time, so that timing reveals nothing about existing HMACs.
    """

    _secret: str = field(repr=False)
    _key: bytes = field(repr=False)
    """Random, up to 64 bytes."""
    _ids: dict[bytes, str] = field(factory=dict, init=False, repr=False)

    def add(self, token_ids: Iterable[str]) -> None:
        """Add tokens."""
        for token_id in token_ids:
            self._ids[self._digest(token_hmac_bytes(self._secret, token_id))] = token_id

    def remove(self, token_ids: Iterable[str]) -> None:
        """Remove tokens; unknown ones are ignored."""
        for token_id in token_ids:
            self._ids.pop(self._digest(token_hmac_bytes(self._secret, token_id)), None)

    def find(self, image: TokensImage, token_hmac: bytes) -> DelegationTokenRecord | None:
        """Return the token of the image with this HMAC, or None."""
        if len(token_hmac) != _HMAC_BYTES:
            return None
        token_id = self._ids.get(self._digest(token_hmac))
        # A digest of 16 bytes selects the candidate; only the full comparison authenticates.
        if token_id is None or not hmac.compare_digest(token_hmac_bytes(self._secret, token_id), token_hmac):
            return None
        # The index may be ahead of the image: only a token that the image contains is valid.
        return image.get(token_id)

    def _digest(self, token_hmac: bytes) -> bytes:
        return hashlib.blake2b(token_hmac, key=self._key, digest_size=16).digest()


# Token control: turns a request to create, renew or expire a token into records, or the error that Kafka returns.
#
# Pure: the caller must append the records as one batch before another change is decided on the same image
# (org.apache.kafka.controller.DelegationTokenControlManager, KIP-48, KIP-373). Times are ms since 1970; principals
# are texts such as `User:alice`.


UNSUPPORTED_VERSION, INVALID_PRINCIPAL_TYPE = 35, 67
DELEGATION_TOKEN_AUTH_DISABLED, DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_OWNER_MISMATCH = 61, 62, 63
DELEGATION_TOKEN_EXPIRED = 66

MAX_SWEPT = 1000
"""Maximum number of expired tokens to remove in one batch (MAX_RECORDS_PER_EXPIRATION)."""

USER_TYPE = "User"
"""The only valid principal type of a renewer."""

_MAX_LONG = (1 << 63) - 1


@frozen(kw_only=True)
class TokenSettings:
    """The delegation.token.* settings; tokens are disabled without a secret. The repr omits the secret."""

    secret: str | None = field(default=None, repr=False)
    """delegation.token.secret.key, the same on every node"""
    max_lifetime_ms: int = 7 * 24 * 3_600_000
    """delegation.token.max.lifetime.ms"""
    expiry_time_ms: int = 24 * 3_600_000
    """delegation.token.expiry.time.ms: how long a token is valid before it must be renewed"""
    expiry_check_interval_ms: int = 3_600_000
    """delegation.token.expiry.check.interval.ms"""


@frozen(kw_only=True)
class Renewer:
    """A principal that may renew a token, as in a request."""

    type: str
    name: str


@frozen(kw_only=True)
class TokenCreation:
    """A token to create for `owner` at the request of `requester`; a lifetime of 0 or less means the longest."""

    owner: str
    requester: str
    renewers: tuple[Renewer, ...]
    max_lifetime_ms: int


@frozen(kw_only=True)
class TokenResult:
    """The records to append, and the response: code 0 and the token's expiry time, or the error."""

    error_code: int = 0
    records: tuple[TokenChange, ...] = ()
    expiry_ms: int = 0


Lifetime: TypeAlias = int
"""Duration in ms, as in a request."""


def refusal(settings: TokenSettings, *, supported: bool) -> int:
    """Return the error for every token request if tokens are unavailable, else 0.

    `supported`: whether the metadata.version has tokens (3.6-IV2).
    """
    if not settings.secret:
        return DELEGATION_TOKEN_AUTH_DISABLED
    return 0 if supported else UNSUPPORTED_VERSION


def all_users(renewers: Iterable[Renewer]) -> bool:
    """Return whether all renewers are users; if not, a creation fails with 67, INVALID_PRINCIPAL_TYPE."""
    return all(renewer.type == USER_TYPE for renewer in renewers)


def create_token(creation: TokenCreation, *, token_id: str, now: int, settings: TokenSettings) -> TokenResult:
    """Return the record of a new token with this id, the text of a random uuid."""
    if not all_users(creation.renewers):
        return TokenResult(error_code=INVALID_PRINCIPAL_TYPE)
    max_timestamp = _sum(now, _shorter(settings.max_lifetime_ms, creation.max_lifetime_ms))
    record = DelegationTokenRecord(
        owner=creation.owner,
        requester=creation.requester,
        renewers=tuple(f"{renewer.type}:{renewer.name}" for renewer in creation.renewers),
        issue_timestamp=now,
        max_timestamp=max_timestamp,
        # The first period is expiry_time_ms, unless the token's whole lifetime is shorter.
        expiration_timestamp=min(max_timestamp, _sum(now, settings.expiry_time_ms)),
        token_id=token_id,
    )
    return TokenResult(records=(record,), expiry_ms=record.expiration_timestamp)


def renew_token(
    token: DelegationTokenRecord | None, requester: str, period: Lifetime, *, now: int, settings: TokenSettings
) -> TokenResult:
    """Extend the token by a period, never beyond its max timestamp; a period of 0 or less means the longest.

    Expiry is checked before the requester's permission, as in Kafka.
    """
    if token is None:
        return TokenResult(error_code=DELEGATION_TOKEN_NOT_FOUND)
    if is_expired(token, now):
        return TokenResult(error_code=DELEGATION_TOKEN_EXPIRED)
    if not _may_renew(token, requester):
        return TokenResult(error_code=DELEGATION_TOKEN_OWNER_MISMATCH)
    return _until(token, _sum(now, _shorter(settings.expiry_time_ms, period)))


def expire_token(token: DelegationTokenRecord | None, requester: str, period: Lifetime, *, now: int) -> TokenResult:
    """Let the token expire after a period, or remove it at once if the period is negative.

    The requester's permission is checked before expiry, as in Kafka (the opposite order of a renewal).
    """
    if token is None:
        return TokenResult(error_code=DELEGATION_TOKEN_NOT_FOUND)
    if not _may_renew(token, requester):
        return TokenResult(error_code=DELEGATION_TOKEN_OWNER_MISMATCH)
    # KIP-48: a negative period means now. Kafka allows it even for a token that has expired.
    if period < 0:
        return TokenResult(records=(RemoveDelegationTokenRecord(token_id=token.token_id),), expiry_ms=now)
    if is_expired(token, now):
        return TokenResult(error_code=DELEGATION_TOKEN_EXPIRED)
    return _until(token, _sum(now, period))


def sweep(image: TokensImage, now: int) -> tuple[RemoveDelegationTokenRecord, ...]:
    """Return the removals of expired tokens, at most MAX_SWEPT; if that many are returned, there may be more."""
    removals: list[RemoveDelegationTokenRecord] = []
    for token in image.records():
        if is_expired(token, now):
            removals.append(RemoveDelegationTokenRecord(token_id=token.token_id))
            if len(removals) == MAX_SWEPT:
                break
    return tuple(removals)


def is_expired(token: DelegationTokenRecord, now: int) -> bool:
    """Return whether the token has expired; at the exact ms of its expiry it is still valid, as in Kafka."""
    return min(token.max_timestamp, token.expiration_timestamp) < now


def _may_renew(token: DelegationTokenRecord, principal: str) -> bool:
    return principal == token.owner or principal in token.renewers


def _until(token: DelegationTokenRecord, timestamp: int) -> TokenResult:
    renewed = evolve(token, expiration_timestamp=min(token.max_timestamp, timestamp))
    return TokenResult(records=(renewed,), expiry_ms=renewed.expiration_timestamp)


def _shorter(longest: Lifetime, requested: Lifetime) -> Lifetime:
    return min(longest, requested) if requested > 0 else longest


def _sum(now: int, duration: Lifetime) -> int:
    """Add, saturating at the largest long: a requested lifetime may be Long.MAX_VALUE."""
    return min(now + duration, _MAX_LONG)
