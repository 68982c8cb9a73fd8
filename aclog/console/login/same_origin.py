"""Whether a request comes from this console's own pages, by what its browser says."""

from starlette.datastructures import Headers

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def is_of_own_page(headers: Headers) -> bool:
    """Return whether a request may change something, as far as its browser tells (Sec-Fetch-Site, Origin).

    What is no browser sends neither; its token has to be right all the same. Origins are compared by host and port,
    since a proxy may have taken TLS away.
    """
    site = headers.get("sec-fetch-site")
    if site is not None and site not in {"same-origin", "none"}:
        return False
    origin = headers.get("origin")
    if origin is None:
        return True
    scheme, mark, authority = origin.partition("://")
    return bool(mark) and scheme in {"http", "https"} and authority.lower() == headers.get("host", "").lower()


def may_read(method: str, headers: Headers) -> bool:
    """Return whether a request may be answered at all: other sites may link here, and embed or fetch nothing."""
    site = headers.get("sec-fetch-site")
    if site in {None, "same-origin", "none"}:
        return True
    opened = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return opened and method in SAFE
