"""Finds the token of an HMAC (org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache)."""

import hashlib
import hmac
from collections.abc import Iterable

from attrs import define, field

from aclog.credentials.tokens import TokensImage, token_hmac_bytes
from aclog.metalog.records import DelegationTokenRecord

_HMAC_BYTES = 64


@define
class TokenIndex:
    """Finds tokens by HMAC; its owner adds and removes token ids as tokens are created and removed.

    It stores digests of the HMACs keyed with a secret of this process, looks up the digest of what a client sends, and
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
