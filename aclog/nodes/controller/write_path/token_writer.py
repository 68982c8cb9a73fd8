"""Writes to delegation tokens (org.apache.kafka.controller.DelegationTokenControlManager)."""

import asyncio
import logging
import os
from concurrent.futures import Future

from attrs import define, field

from aclog.credentials.token_control import (
    MAX_SWEPT,
    Lifetime,
    TokenCreation,
    TokenResult,
    TokenSettings,
    create_token,
    expire_token,
    refusal,
    renew_token,
    sweep,
)
from aclog.credentials.token_index import TokenIndex
from aclog.metalog.errors import MetadataError
from aclog.metalog.uuids import uuid_text
from aclog.nodes.controller.write_path.quorum_controller import QuorumController
from aclog.nodes.controller.write_path.write_event import ControllerResult
from aclog.nodes.offload import MANY, committed
from aclog.snapshots.features import METADATA_VERSION
from aclog.snapshots.image import Image

TOKENS_SINCE = 14
"""The feature level of metadata.version 3.6-IV2, the first with delegation tokens."""

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class TokenWriter:
    """The only writer of tokens; created on the event loop when the controller becomes active."""

    settings: TokenSettings
    controller: QuorumController
    _index: TokenIndex = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._index = TokenIndex(self.settings.secret or "", os.urandom(32))
        if self.settings.secret:
            self._index.add(token.token_id for token in self.controller.publisher.latest.tokens.records())

    def create(self, creation: TokenCreation) -> "Future[TokenResult]":
        """Create a token (aclog.credentials.token_control)."""

        def operation(image: Image) -> ControllerResult[TokenResult]:
            """See Operation."""
            if refused := self._refusal(image):
                return refused
            token_id, now = uuid_text(self.controller.new_id()), self.controller.clock()
            result = create_token(creation, token_id=token_id, now=now, settings=self.settings)
            if result.records:
                # Before the commit: a renewal that is queued behind this creation must find the token.
                self._index.add([token_id])
            return ControllerResult(records=result.records, response=result)

        return self.controller.write(operation, offload=len(creation.renewers) > MANY)

    def renew(self, token_hmac: bytes, requester: str, period: Lifetime) -> "Future[TokenResult]":
        """Extend a token's expiry by `period`."""

        def operation(image: Image) -> ControllerResult[TokenResult]:
            """See Operation."""
            if refused := self._refusal(image):
                return refused
            token, now = self._index.find(image.tokens, token_hmac), self.controller.clock()
            result = renew_token(token, requester, period, now=now, settings=self.settings)
            return ControllerResult(records=result.records, response=result)

        return self.controller.write(operation)

    def expire(self, token_hmac: bytes, requester: str, period: Lifetime) -> "Future[TokenResult]":
        """Set a token's expiry to the end of `period`; a negative period removes it at once."""

        def operation(image: Image) -> ControllerResult[TokenResult]:
            """See Operation."""
            if refused := self._refusal(image):
                return refused
            token = self._index.find(image.tokens, token_hmac)
            result = expire_token(token, requester, period, now=self.controller.clock())
            if token is not None and result.records and period < 0:
                self._index.remove([token.token_id])
            return ControllerResult(records=result.records, response=result)

        return self.controller.write(operation)

    def sweep(self) -> "Future[int]":
        """Remove at most MAX_SWEPT expired tokens; the future holds how many."""

        def operation(image: Image) -> ControllerResult[int]:
            """See Operation."""
            if self._refusal(image):
                return ControllerResult(records=(), response=0)
            records = sweep(image.tokens, self.controller.clock())
            self._index.remove(record.token_id for record in records)
            return ControllerResult(records=records, response=len(records))

        return self.controller.write(operation, offload=len(self.controller.publisher.latest.tokens) > MANY)

    async def run(self) -> None:
        """Remove expired tokens at each interval until cancelled or the controller fails; returns if tokens are off."""
        if not self.settings.secret:
            return
        while True:
            await asyncio.sleep(self.settings.expiry_check_interval_ms / 1000)
            try:
                await self._sweep_all()
            except MetadataError as error:
                _log.error("cannot remove expired delegation tokens: %s", error)
                return

    async def _sweep_all(self) -> None:
        removed = MAX_SWEPT
        while removed == MAX_SWEPT:
            removed = await committed(self.sweep())
            if removed:
                _log.info("removed %d expired delegation tokens", removed)

    def _refusal(self, image: Image) -> ControllerResult[TokenResult] | None:
        level = image.features.level(METADATA_VERSION)
        code = refusal(self.settings, supported=level == 0 or level >= TOKENS_SINCE)
        return ControllerResult(records=(), response=TokenResult(error_code=code)) if code else None
