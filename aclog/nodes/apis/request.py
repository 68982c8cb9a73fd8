"""One request on its way through a node, and what handles it."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from attrs import field, frozen

from aclog.authorizer.interface import RequestContext
from aclog.metalog.errors import MetadataError
from aclog.nodes.session import Session
from aclog.nodes.wire.headers import RequestHeader


@frozen(kw_only=True)
class Request:
    """A decoded request: its header, its body as kio's message of that API and version, and who sent it.

    `frame` is the request as it came, header included, without the length before it: what an Envelope carries.
    `body` is not shown in a repr: it may hold passwords.
    """

    header: RequestHeader
    body: Any = field(repr=False)
    session: Session
    frame: bytes = field(repr=False)

    @property
    def context(self) -> RequestContext:
        """The request as the authorizer sees it."""
        return RequestContext(
            principal=str(self.session.principal),
            host=self.session.host,
            request_type=self.header.api_key,
            listener_name=self.session.listener_name,
            client_id=self.header.client_id or "",
            correlation_id=self.header.correlation_id,
        )


Handler: TypeAlias = Callable[[Request], Awaitable[bytes]]
"""Answers a request with the encoded body of its response, without a header (nodes.wire.messages.encode_response).

It may raise RequestError, AuthorizerNotReadyError and AclRequestError for the request as a whole: whoever called it
answers with nodes.wire.error_responses. After a MalformedRequestError or an OutcomeUnknownError the connection is
closed
without an answer. Any other error is answered with UNKNOWN_SERVER_ERROR and logged.
"""


class RequestError(MetadataError):
    """A request that fails as a whole, with the error code that its answer carries (protocol.Errors)."""

    def __init__(self, code: int, message: str | None = None) -> None:
        """`message` is the text in the answer, where the answer has room for one."""
        self.code, self.message = code, message
        super().__init__(message or f"error {code}")


class OutcomeUnknownError(MetadataError):
    """A request that may have been carried out, or be carried out yet: nobody here knows, and no error code says so.

    The client's connection is closed without an answer, as if the node had died; it then does what it does whenever a
    server dies, which is for it to decide (Kafka's Admin asks again, unless `retries` says otherwise).
    """


class MalformedRequestError(MetadataError):
    """A request that decodes, but that Kafka does not take for one, such as an ACL of resource type 0 (UNKNOWN).

    Kafka's classes throw on it while they parse, so that the connection is closed without an answer.
    """
