"""The header of a request (RequestHeader versions 0 to 2)."""

from attrs import frozen


@frozen(kw_only=True)
class RequestHeader:
    """Which API in which version, and what the answer must echo."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
