"""The headers of every answer."""

from collections.abc import Iterable

CSP_REPORT = "/csp-report"
CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        f"report-uri {CSP_REPORT}",
    )
)
"""No script and no style but what is a file of the console's own: neither in a page nor from elsewhere."""

_ALWAYS = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
_UNLESS_SET = ((b"cache-control", b"no-store"),)


def with_security(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer with these; only Cache-Control may be the answer's own, as a static file's is."""
    ours = {name for name, _ in _ALWAYS}
    kept = [(name, value) for name, value in headers if name.lower() not in ours]
    given = {name.lower() for name, _ in kept}
    return [*kept, *_ALWAYS, *((name, value) for name, value in _UNLESS_SET if name not in given)]
