"""What brokers and controllers look at alike in requests about delegation tokens (KafkaApis, ControllerApis)."""

from typing import Any

from aclog.authorizer.principals import KafkaPrincipal
from aclog.credentials.token_control import Renewer
from aclog.nodes.apis.request import Request, RequestError
from aclog.nodes.session import ANONYMOUS, SecurityProtocol
from aclog.nodes.wire.error_codes import UNKNOWN_SERVER_ERROR
from aclog.nodes.wire.token_responses import token_refused_response

NOT_ALLOWED_TIMESTAMP = -1
"""What stands for a time where a request was refused for how its client is connected, or for whom it may act."""


def may_use_tokens(request: Request) -> bool:
    """Whether the client is known well enough: not by PLAINTEXT, not without a certificate, not by a token itself."""
    session = request.session
    protocol = session.security_protocol
    nobody = protocol is SecurityProtocol.SSL and session.principal == ANONYMOUS
    return not (session.token_authenticated or protocol is SecurityProtocol.PLAINTEXT or nobody)


def owner_of(request: Request) -> KafkaPrincipal:
    """Whom a creation makes a token for: its client, unless it names another.

    Raises:
        RequestError: a name without a type (-1, as in Kafka).

    """
    body: Any = request.body
    name = getattr(body, "owner_principal_name", None)
    if not name:
        return request.session.principal
    if body.owner_principal_type is None:
        raise RequestError(UNKNOWN_SERVER_ERROR)
    return KafkaPrincipal(type=body.owner_principal_type, name=name)


def renewers_of(request: Request) -> tuple[Renewer, ...]:
    """Who may renew the token that a creation makes."""
    return tuple(Renewer(type=each.principal_type, name=each.principal_name) for each in request.body.renewers)


def not_created(request: Request, owner: KafkaPrincipal, error_code: int, timestamp: int) -> bytes:
    """The answer to a creation that is refused."""
    version, requester = request.header.api_version, str(request.session.principal)
    return token_refused_response(version, str(owner), requester, error_code, timestamp)
