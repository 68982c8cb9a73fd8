"""Requests, handlers, and the errors that handlers raise."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from attrs import field, frozen

from aclog.authorizer.interface import RequestContext
from aclog.metalog.errors import MetadataError
from aclog.protocol.headers import RequestHeader
from aclog.protocol.session import Session


@frozen(kw_only=True)
class Request:
    """A decoded request: header, body (the kio message of that API and version) and session.

    `frame` holds the received bytes including the header, without the length prefix; an Envelope carries it verbatim.
    `body` and `frame` are left out of the repr because they may contain passwords.
    """

    header: RequestHeader
    body: Any = field(repr=False)
    session: Session
    frame: bytes = field(repr=False)
    _context: RequestContext | None = field(default=None, init=False, eq=False, repr=False)

    @property
    def context(self) -> RequestContext:
        """The RequestContext passed to the authorizer."""
        if self._context is None:
            object.__setattr__(self, "_context", self._make_context())  # made once: a handler reads it repeatedly
        return self._context  # type: ignore[return-value]

    def _make_context(self) -> RequestContext:
        return RequestContext(
            principal=self.session.principal_text,
            host=self.session.host,
            request_type=self.header.api_key,
            listener_name=self.session.listener_name,
            client_id=self.header.client_id or "",
            correlation_id=self.header.correlation_id,
        )


Handler: TypeAlias = Callable[[Request], Awaitable[bytes]]
"""Handles a request and returns the encoded response body, without a header.

RequestError, AuthorizerNotReadyError and AclRequestError become an error response for the whole request
(protocol.responses). MalformedRequestError and OutcomeUnknownError close the connection without a response. Any
other error is logged and becomes UNKNOWN_SERVER_ERROR.
"""


class RequestError(MetadataError):
    """The request fails as a whole with an error code of org.apache.kafka.common.protocol.Errors."""

    def __init__(self, code: int, message: str | None = None) -> None:
        """`message` goes into the response if its schema has an error message."""
        self.code, self.message = code, message
        super().__init__(message or f"error {code}")


class OutcomeUnknownError(MetadataError):
    """The request may or may not have been applied, now or later; no Kafka error code expresses that.

    The connection is closed without a response, as if the node had crashed, and the client decides whether to retry
    (Kafka's Admin does, within `retries`). Any error code would assert an outcome.
    """


class MalformedRequestError(MetadataError):
    """The request decodes but is invalid, such as an ACL of resource type 0 (UNKNOWN).

    Kafka's request classes throw while parsing it, so the connection is closed without a response.
    """
