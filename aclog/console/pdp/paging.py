"""Pages of what a search found: in one order, and each with a token for the next."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from attrs import frozen

from aclog.console.pdp.errors import BadRequestError

MOST = 1000
"""Results of a page, unless fewer are asked for."""


@frozen(kw_only=True)
class Page:
    """Which page is asked for: how many results, and those after which key, which is None for the first page."""

    limit: int
    after: str | None
    asked: str
    """A digest of the request without its page: the next one must be the same."""


def parse_page(body: Mapping[str, Any]) -> Page:
    """Return the page that a request asks for.

    Raises:
        BadRequestError: it is none, or goes on with another request.

    """
    asked = sha256(json.dumps({**body, "page": None}, sort_keys=True).encode()).hexdigest()[:32]
    page = body.get("page")
    if page is None:
        return Page(limit=MOST, after=None, asked=asked)
    if not isinstance(page, dict):
        raise BadRequestError("page: expected an object")
    limit, token = page.get("limit"), page.get("token")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise BadRequestError("page.limit: expected a number, 0 or more")
    if token is None or token == "":
        return Page(limit=MOST if limit is None else min(limit, MOST), after=None, asked=asked)
    known, size, after = _opened(token)
    if known != asked or limit not in (None, size):
        raise BadRequestError("page.token: of another request: all but the token must be the same")
    return Page(limit=size, after=after, asked=asked)


def page_of(found: Iterable[Mapping[str, Any]], page: Page) -> dict[str, Any]:
    """Return the answer: the results of a page, sorted, and the token of the next one, empty on the last."""
    by_key = {_key(each): each for each in found}
    keys = sorted(by_key)
    left = keys if page.after is None else [key for key in keys if key > page.after]
    shown = left[: page.limit]
    after = shown[-1] if shown else page.after or ""
    token = _token(page, after) if len(left) > len(shown) else ""
    return {
        "page": {"next_token": token, "count": len(shown), "total": len(keys)},
        "results": [by_key[key] for key in shown],
    }


def _key(entity: Mapping[str, Any]) -> str:
    return json.dumps(entity, sort_keys=True)


def _token(page: Page, after: str) -> str:
    return urlsafe_b64encode(json.dumps([page.asked, page.limit, after]).encode()).decode()


def _opened(token: object) -> tuple[str, int, str]:
    try:
        asked, limit, after = json.loads(urlsafe_b64decode(str(token).encode()))
    except (ValueError, TypeError, RecursionError):
        raise BadRequestError("page.token: not one that a search answered") from None
    if not isinstance(asked, str) or type(limit) is not int or not isinstance(after, str) or not 0 <= limit <= MOST:
        raise BadRequestError("page.token: not one that a search answered")
    return asked, limit, after
