"""Requests whose end is not certain: two servers in a row could see it at two places (request smuggling)."""

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_TWO_LENGTHS = "Content-Length and Transfer-Encoding exclude each other (RFC 9112, section 6.3).\n"
_OLD = "HTTP/1.0 has no Transfer-Encoding (RFC 9112, section 6.1).\n"


def well_framed(app: ASGIApp) -> ASGIApp:
    """Return an application that gets no request with two lengths: such a one is 400, and its connection ends.

    h11 takes the chunks and ignores the Content-Length; a proxy in front may have done otherwise.
    """

    async def framed(scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        problem = _problem(scope) if scope["type"] == "http" else None
        answer = app if problem is None else PlainTextResponse(problem, 400, {"Connection": "close"})
        await answer(scope, receive, send)

    return framed


def _problem(scope: Scope) -> str | None:
    names = {name.lower() for name, _ in scope["headers"]}
    if b"transfer-encoding" not in names:
        return None
    if b"content-length" in names:
        return _TWO_LENGTHS
    return _OLD if scope.get("http_version") == "1.0" else None
