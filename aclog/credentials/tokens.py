"""The delegation tokens of an image: immutable, keyed by token id (org.apache.kafka.image.DelegationTokenImage)."""

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Self, TypeAlias

from attrs import field, frozen

from aclog.metalog.persistent_map import Map
from aclog.metalog.records import DelegationTokenRecord, RemoveDelegationTokenRecord

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
        wanted = frozenset(principals)
        for record in self.records():
            if not wanted.isdisjoint((record.owner, record.requester, *record.renewers)):
                yield record

    def apply(self, changes: Iterable[TokenChange]) -> Self:
        """Return the image after these changes, in order."""
        tokens = self._tokens.mutate()
        for change in changes:
            if isinstance(change, DelegationTokenRecord):
                tokens[change.token_id] = change
            else:
                # No error if there is none: Kafka itself writes logs that remove an absent token.
                tokens.pop(change.token_id, None)
        return type(self)(tokens=tokens.finish())


TokensImage.EMPTY = TokensImage()
