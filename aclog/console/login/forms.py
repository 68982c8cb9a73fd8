"""Bodies of forms, read once by the guard and again by who answers."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from anyio.to_thread import run_sync
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from aclog.console.body_budget import BusyError, Share, TooLargeError, collected

_Parsed = TypeVar("_Parsed")

TOKEN_FIELD, TOKEN_HEADER = "csrf_token", "x-csrf-token"
_URL_ENCODED, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_MOST_FIELDS = 1000
_SHORT = 64 << 10
"""Bytes of a form that is parsed between requests; a longer one is parsed in a thread."""


class FormError(Exception):
    """A form that cannot be read, with the status of the answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def is_form(content_type: str) -> bool:
    """Return whether a body is that of a form."""
    return _kind(content_type) in {_URL_ENCODED, _MULTIPART}


async def read_body(receive: Receive, most: int, share: Share | None = None) -> bytes:
    """Return a body, held in a share. Raises FormError: it has more bytes than `most`, or its sender has gone."""
    try:
        return bytes(await collected(Request({"type": "http"}, receive).stream(), most, share))
    except ClientDisconnect as error:
        raise FormError(400, "the request ended early") from error
    except TooLargeError as error:
        raise FormError(413, str(error)) from error
    except BusyError as error:
        raise FormError(503, str(error)) from error


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return what receives a body that was read, and then what comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        """Receive the next message."""
        return waiting.pop() if waiting else await receive()

    return again


def check_fields(content_type: str, body: bytes) -> None:
    """Refuse a form of very many fields, before anything parses it: FormError."""
    if _kind(content_type) == _URL_ENCODED and body.count(b"&") >= _MOST_FIELDS:
        raise FormError(400, f"the form has more than {_MOST_FIELDS:,} fields")


async def token_in(scope: Any, body: bytes, receive: Receive) -> str | None:
    """Return the token in a form with a bounded number of fields. Raises FormError: it is malformed."""
    content_type = Headers(scope=scope).get("content-type", "")
    if _kind(content_type) == _URL_ENCODED:
        name = f"{TOKEN_FIELD}=".encode()
        found = [pair for pair in body.split(b"&") if pair.startswith(name)]
        return found[-1].removeprefix(name).decode("latin-1") if found else None
    return await parsed(body, lambda: _parsed_token(scope, body, receive))


async def parsed(body: bytes, parse: Callable[[], Coroutine[Any, Any, _Parsed]]) -> _Parsed:
    """Return what `parse` makes of a body: between requests, or in a thread if that takes long."""
    return await (parse() if len(body) <= _SHORT else run_sync(lambda: asyncio.run(parse())))


async def _parsed_token(scope: Any, body: bytes, receive: Receive) -> str | None:
    request = Request(scope, replayed(body, receive))
    try:
        async with request.form(max_files=10, max_fields=_MOST_FIELDS, max_part_size=len(body)) as form:
            found = form.get(TOKEN_FIELD)
    except (MultiPartException, HTTPException, ClientDisconnect, ValueError) as error:
        raise FormError(400, "the form cannot be read") from error
    return found if isinstance(found, str) else None


def _kind(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()
