"""Which token an HMAC belongs to (org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache)."""

import hashlib
import hmac
from collections.abc import Iterable

from attrs import define, field

from aclog.credentials.tokens import TokensImage, token_hmac_bytes
from aclog.metalog.records import DelegationTokenRecord

_HMAC_BYTES = 64


@define
class TokenIndex:
    """Finds tokens by HMAC for whoever writes them: tell it of every token that is made and removed.

    It holds digests of the HMACs under a key of this process; what a client sends is digested before it is looked up,
    and compared in constant time then: how long that takes tells nothing of the HMACs there are.
    """

    _secret: str = field(repr=False)
    _key: bytes = field(repr=False)
    """Random, up to 64 bytes."""
    _ids: dict[bytes, str] = field(factory=dict, init=False, repr=False)

    def add(self, token_ids: Iterable[str]) -> None:
        """These tokens are there."""
        for token_id in token_ids:
            self._ids[self._digest(token_hmac_bytes(self._secret, token_id))] = token_id

    def remove(self, token_ids: Iterable[str]) -> None:
        """These tokens are gone; nothing where they were not there."""
        for token_id in token_ids:
            self._ids.pop(self._digest(token_hmac_bytes(self._secret, token_id)), None)

    def find(self, image: TokensImage, token_hmac: bytes) -> DelegationTokenRecord | None:
        """The token of the image that has this HMAC, or None."""
        if len(token_hmac) != _HMAC_BYTES:
            return None
        token_id = self._ids.get(self._digest(token_hmac))
        if token_id is None or not hmac.compare_digest(token_hmac_bytes(self._secret, token_id), token_hmac):
            return None
        return image.get(token_id)

    def _digest(self, token_hmac: bytes) -> bytes:
        return hashlib.blake2b(token_hmac, key=self._key, digest_size=16).digest()
