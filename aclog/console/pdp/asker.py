"""Who sent a request."""

from attrs import frozen
from starlette.requests import HTTPConnection

REQUEST_ID = "X-Request-ID"


@frozen(kw_only=True)
class Asker:
    """The other end of a connection, and what it calls a request of its."""

    address: str
    """Such as 127.0.0.1:50006, or [::1]:50006."""
    request_id: str | None

    @staticmethod
    def of(request: HTTPConnection) -> "Asker":
        """Return who sent a request."""
        client = request.client
        host, port = ("", 0) if client is None else client
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return Asker(address=address, request_id=request.headers.get(REQUEST_ID))
