"""Checks of delegation token requests that brokers and controllers share (KafkaApis, ControllerApis)."""

from typing import Any

from aclog.authorizer.principals import KafkaPrincipal
from aclog.credentials.token_control import Renewer
from aclog.nodes.apis.request import Request, RequestError
from aclog.nodes.session import ANONYMOUS, SecurityProtocol
from aclog.nodes.wire.error_codes import UNKNOWN_SERVER_ERROR
from aclog.nodes.wire.token_responses import token_refused_response

NOT_ALLOWED_TIMESTAMP = -1
"""The timestamp in a response that refuses the client's connection type or its owner principal."""


def may_use_tokens(request: Request) -> bool:
    """Whether the connection may manage tokens (KafkaApis.allowTokenRequests).

    Denied on PLAINTEXT, on SSL without a client certificate, and to clients that logged in with a token themselves.
    """
    session = request.session
    protocol = session.security_protocol
    nobody = protocol is SecurityProtocol.SSL and session.principal == ANONYMOUS
    return not (session.token_authenticated or protocol is SecurityProtocol.PLAINTEXT or nobody)


def owner_of(request: Request) -> KafkaPrincipal:
    """Return the owner of the token to create: the requester unless the request names another principal.

    Raises:
        RequestError: An owner name without an owner type (-1, as in Kafka).

    """
    body: Any = request.body
    name = getattr(body, "owner_principal_name", None)
    if not name:
        return request.session.principal
    if body.owner_principal_type is None:
        raise RequestError(UNKNOWN_SERVER_ERROR)
    return KafkaPrincipal(type=body.owner_principal_type, name=name)


def renewers_of(request: Request) -> tuple[Renewer, ...]:
    """Return the renewers of a CreateDelegationToken request."""
    return tuple(Renewer(type=each.principal_type, name=each.principal_name) for each in request.body.renewers)


def not_created(request: Request, owner: KafkaPrincipal, error_code: int, timestamp: int) -> bytes:
    """Return the response that refuses a CreateDelegationToken request."""
    version, requester = request.header.api_version, str(request.session.principal)
    return token_refused_response(version, str(owner), requester, error_code=error_code, timestamp=timestamp)
