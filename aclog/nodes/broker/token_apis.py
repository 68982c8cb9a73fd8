"""Delegation token APIs of a broker: describe locally, check and forward writes (kafka.server.KafkaApis)."""

import asyncio
from contextlib import suppress

from attrs import define, evolve

from aclog.authorizer.acl import AclOperation
from aclog.authorizer.principals import KafkaPrincipal
from aclog.credentials.token_control import (
    DELEGATION_TOKEN_AUTH_DISABLED,
    INVALID_PRINCIPAL_TYPE,
    TokenSettings,
    all_users,
)
from aclog.credentials.tokens import TokensImage, token_hmac_bytes
from aclog.metalog.records import DelegationTokenRecord
from aclog.nodes.apis.authorization import AuthHelper
from aclog.nodes.apis.request import Request
from aclog.nodes.apis.token_requests import NOT_ALLOWED_TIMESTAMP, may_use_tokens, not_created, owner_of, renewers_of
from aclog.nodes.broker.forwarder import Forwarder
from aclog.nodes.offload import MANY, offload_if
from aclog.nodes.wire.api_keys import CREATE_DELEGATION_TOKEN
from aclog.nodes.wire.error_codes import DELEGATION_TOKEN_AUTHORIZATION_FAILED, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
from aclog.nodes.wire.messages import decode_response
from aclog.nodes.wire.token_responses import describe_tokens_response, token_expiry_response
from aclog.snapshots.publisher import Publisher

_CREATED = bytes(2)
"""Error code 0 at the start of a response body."""

_REPLAY_SECONDS, _POLL_SECONDS = 1.0, 0.002


@define(kw_only=True)
class BrokerTokenApis:
    """Describes tokens from the published image, and forwards writes of clients that may make them."""

    publisher: Publisher
    auth: AuthHelper
    forwarder: Forwarder
    settings: TokenSettings

    async def create(self, request: Request) -> bytes:
        """Forward a token creation that the client may make; responds once the token can be used on this broker."""
        owner = owner_of(request)
        if error_code := await self._creation_error(request, owner):
            return not_created(request, owner, error_code, NOT_ALLOWED_TIMESTAMP)
        body = await self.forwarder.forward(request)
        if body.startswith(_CREATED):
            version = request.header.api_version
            await self._wait_until_replayed(decode_response(CREATE_DELEGATION_TOKEN, version, body, 0).token_id)
        return body

    async def _wait_until_replayed(self, token_id: str) -> None:
        """Wait up to a second until the token is replayed here: clients log in with it as soon as they have it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_REPLAY_SECONDS):
                while self.publisher.current.tokens.get(token_id) is None:
                    await asyncio.sleep(_POLL_SECONDS)

    async def _creation_error(self, request: Request, owner: KafkaPrincipal) -> int:
        if not may_use_tokens(request):
            return DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        another = owner != request.session.principal
        if another and not self.auth.on_user(request, AclOperation.CREATE_TOKENS, str(owner)):
            return DELEGATION_TOKEN_AUTHORIZATION_FAILED
        renewers = await offload_if(len(request.body.renewers) > MANY, renewers_of, request)
        return 0 if all_users(renewers) else INVALID_PRINCIPAL_TYPE

    async def change(self, request: Request) -> bytes:
        """Forward the renewal or expiry of a token."""
        if not may_use_tokens(request):
            version = request.header.api_version
            return token_expiry_response(version, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NOT_ALLOWED_TIMESTAMP)
        return await self.forwarder.forward(request)

    async def describe(self, request: Request) -> bytes:
        """Describe the tokens of the requested owners that the client may see; all owners if the list is null."""
        version, secret = request.header.api_version, self.settings.secret
        if not may_use_tokens(request):
            return describe_tokens_response(version, (), DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        if not secret:
            return describe_tokens_response(version, (), DELEGATION_TOKEN_AUTH_DISABLED)
        tokens, pinned = self.publisher.current.tokens, evolve(self, auth=self.auth.pinned())
        many = len(tokens) + len(request.body.owners or ()) > MANY
        return await offload_if(many, pinned._described, request, tokens, secret)

    def _described(self, request: Request, tokens: TokensImage, secret: str) -> bytes:
        owners = request.body.owners
        asked = (
            tokens.records()
            if owners is None
            else tokens.owned_by(f"{owner.principal_type}:{owner.principal_name}" for owner in owners)
        )
        shown = ((each, token_hmac_bytes(secret, each.token_id)) for each in asked if self._may_see(request, each))
        return describe_tokens_response(request.header.api_version, shown)

    def _may_see(self, request: Request, token: DelegationTokenRecord) -> bool:
        if str(request.session.principal) in (token.owner, token.requester, *token.renewers):
            return True
        return self.auth.on_token(request, AclOperation.DESCRIBE, token.token_id) or self.auth.on_user(
            request, AclOperation.DESCRIBE_TOKENS, token.owner
        )
