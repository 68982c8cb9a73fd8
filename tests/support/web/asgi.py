"""Asks a web application without a socket."""

import asyncio
import json
from typing import Any
from urllib.parse import unquote

from attrs import frozen


@frozen
class Reply:
    """What an application answered."""

    status: int
    headers: dict[str, str]
    body: bytes
    set_cookies: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The body, as text."""
        return self.body.decode()

    @property
    def json(self) -> Any:
        """The body, as JSON."""
        return json.loads(self.body)


def ask(
    app: Any,
    method: str,
    path: str,
    body: bytes | Any = b"",
    headers: dict[str, str] | None = None,
    address: str = "127.0.0.1",
) -> Reply:
    """Send one request from an address; what is not bytes is sent as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"content-type": "application/json", **{key.lower(): value for key, value in (headers or {}).items()}}
    return asyncio.run(_ask(app, method, path, data, fields, address))


def post(app: Any, path: str, body: bytes | Any, headers: dict[str, str] | None = None) -> Reply:
    """Post a body."""
    return ask(app, "POST", path, body, headers)


async def _ask(app: Any, method: str, path: str, data: bytes, headers: dict[str, str], address: str) -> Reply:
    sent: list[dict[str, Any]] = []
    waiting = [{"type": "http.request", "body": data, "more_body": False}]
    plain, _, query = path.partition("?")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": unquote(plain), "raw_path": plain.encode(), "query_string": query.encode(), "root_path": "",
        "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
        "client": (address, 1), "server": ("127.0.0.1", 80),
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0]
    fields = {key.decode().lower(): value.decode() for key, value in start["headers"]}
    cookies = tuple(value.decode() for key, value in start["headers"] if key == b"set-cookie")
    return Reply(start["status"], fields, b"".join(message.get("body", b"") for message in sent[1:]), cookies)
