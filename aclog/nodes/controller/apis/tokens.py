"""CreateDelegationToken, RenewDelegationToken and ExpireDelegationToken (ControllerApis; KIP-48, KIP-373)."""

from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from typing import TypeAlias

from attrs import define

from aclog.authorizer.acl import AclOperation
from aclog.credentials.token_control import TokenCreation, TokenResult
from aclog.credentials.tokens import token_hmac_bytes
from aclog.metalog.records import DelegationTokenRecord
from aclog.nodes.apis.authorization import AuthHelper
from aclog.nodes.apis.request import Request
from aclog.nodes.apis.token_requests import NOT_ALLOWED_TIMESTAMP, may_use_tokens, not_created, owner_of, renewers_of
from aclog.nodes.controller.write_path.token_writer import TokenWriter
from aclog.nodes.offload import MANY, committed, offload_if
from aclog.nodes.wire.error_codes import DELEGATION_TOKEN_AUTHORIZATION_FAILED, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
from aclog.nodes.wire.token_responses import token_created_response, token_expiry_response

_Change: TypeAlias = Callable[[bytes, str, int], "Future[TokenResult]"]
"""Changes the token with an HMAC on behalf of a requester, for a period in ms."""

_ERROR_TIMESTAMP = 0
"""The timestamp in error responses of Kafka's controller."""


@define
class TokenApis:
    """Changes tokens through the controller; responds once the records are committed."""

    auth: AuthHelper
    writer: TokenWriter

    async def create(self, request: Request) -> bytes:
        """Create a token for the client itself, or for an owner on whom it has CREATE_TOKENS."""
        owner, requester = owner_of(request), request.session.principal
        if not may_use_tokens(request):
            return not_created(request, owner, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NOT_ALLOWED_TIMESTAMP)
        if owner != requester and not self.auth.on_user(request, AclOperation.CREATE_TOKENS, str(owner)):
            return not_created(request, owner, DELEGATION_TOKEN_AUTHORIZATION_FAILED, NOT_ALLOWED_TIMESTAMP)
        renewers = await offload_if(len(request.body.renewers) > MANY, renewers_of, request)
        creation = TokenCreation(
            owner=str(owner),
            requester=str(requester),
            renewers=renewers,
            max_lifetime_ms=_ms(request.body.max_lifetime),
        )
        result = await committed(self.writer.create(creation))
        for record in result.records:
            if isinstance(record, DelegationTokenRecord):
                secret = token_hmac_bytes(self.writer.settings.secret or "", record.token_id)
                return token_created_response(request.header.api_version, record, secret)
        return not_created(request, owner, result.error_code, _ERROR_TIMESTAMP)

    async def renew(self, request: Request) -> bytes:
        """Extend a token's expiry; allowed to its owner and renewers."""
        return await self._change(request, self.writer.renew, request.body.renew_period)

    async def expire(self, request: Request) -> bytes:
        """Bring forward a token's expiry or remove the token; allowed to its owner and renewers."""
        return await self._change(request, self.writer.expire, request.body.expiry_time_period)

    async def _change(self, request: Request, change: _Change, period: timedelta) -> bytes:
        version = request.header.api_version
        if not may_use_tokens(request):
            return token_expiry_response(version, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NOT_ALLOWED_TIMESTAMP)
        result = await committed(change(bytes(request.body.hmac), str(request.session.principal), _ms(period)))
        return token_expiry_response(version, result.error_code, result.expiry_ms)


def _ms(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)
