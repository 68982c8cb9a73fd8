"""Create, Renew and ExpireDelegationToken at a controller (ControllerApis; KIP-48, KIP-373)."""

from datetime import timedelta

from attrs import define

from authorizer.acl import AclOperation
from credentials.token_control import TokenCreation
from credentials.tokens import token_hmac_bytes
from metalog.records import DelegationTokenRecord
from nodes.authorization import AuthHelper
from nodes.beside import MANY, beside
from nodes.controller.results import committed
from nodes.controller.token_writer import TokenWriter
from nodes.request import Request
from nodes.token_requests import (
    DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    NOT_ALLOWED_TIMESTAMP,
    may_use_tokens,
    not_created,
    owner_of,
    renewers_of,
)
from nodes.wire.token_answers import created_answer, expiry_answer

_ERROR_TIMESTAMP = 0
"""What Kafka's controller leaves in an answer with an error."""


@define
class TokenApis:
    """Changes tokens through the controller; answered when the records are committed."""

    auth: AuthHelper
    writer: TokenWriter

    async def create(self, request: Request) -> bytes:
        """Make a token, for the client itself or for an owner whom it may CREATE_TOKENS for."""
        owner, requester = owner_of(request), request.session.principal
        if not may_use_tokens(request):
            return not_created(request, owner, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NOT_ALLOWED_TIMESTAMP)
        if owner != requester and not self.auth.on_user(request, AclOperation.CREATE_TOKENS, str(owner)):
            return not_created(request, owner, DELEGATION_TOKEN_AUTHORIZATION_FAILED, NOT_ALLOWED_TIMESTAMP)
        renewers = await beside(len(request.body.renewers) > MANY, renewers_of, request)
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
                return created_answer(request.header.api_version, record, secret)
        return not_created(request, owner, result.error_code, _ERROR_TIMESTAMP)

    async def renew(self, request: Request) -> bytes:
        """Let a token hold for longer; for its owner and its renewers."""
        version, body = request.header.api_version, request.body
        if not may_use_tokens(request):
            return expiry_answer(version, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NOT_ALLOWED_TIMESTAMP)
        requester = str(request.session.principal)
        result = await committed(self.writer.renew(bytes(body.hmac), requester, _ms(body.renew_period)))
        return expiry_answer(version, result.error_code, result.expiry_ms)

    async def expire(self, request: Request) -> bytes:
        """Let a token end sooner, or at once; for its owner and its renewers."""
        version, body = request.header.api_version, request.body
        if not may_use_tokens(request):
            return expiry_answer(version, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NOT_ALLOWED_TIMESTAMP)
        requester = str(request.session.principal)
        result = await committed(self.writer.expire(bytes(body.hmac), requester, _ms(body.expiry_time_period)))
        return expiry_answer(version, result.error_code, result.expiry_ms)


def _ms(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)
