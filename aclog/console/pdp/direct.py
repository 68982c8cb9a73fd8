"""Requests for decisions that are answered where they arrive, without h11, Starlette and a task.

A request takes this path only if it is one that no two servers could read differently: one of four request lines,
headers of printable ASCII without folds, exactly one Host and one Content-Length, no Transfer-Encoding, and a short
body of exactly that length with nothing behind it. All other bytes, and what needs another state than the newest, go
to the connection's own parser and the application, from their first byte on: its answers are the same.
"""

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Protocol

import h11

from aclog.console.connections import TimedConnection
from aclog.console.http import BusyError, Share
from aclog.console.pdp.authzen import EVALUATION, EVALUATIONS
from aclog.console.pdp.opa import ALLOW, PATH
from aclog.metalog.values import frozen

SHORT = 16 << 10
"""Bytes of a body that is answered at once; a longer one, or one about the past, is answered in a thread."""
AT_ONCE = (EVALUATION, EVALUATIONS, PATH, ALLOW)
"""The paths whose short bodies are answered at once."""

_MOST_HEAD = 8 << 10
"""Bytes of a head, with the empty line at its end."""
_PATHS = {f"POST {path} HTTP/1.1".encode(): path for path in AT_ONCE}
# The blanks before a value are taken once and for all: other matches would take a time quadratic in their number.
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*+((?:[!-~](?:[ -~]*[!-~])?)?)[ \t]*")
_LENGTH = re.compile(rb"[0-9]{1,5}")
_ONCE = frozenset({b"content-length", b"host", b"connection"})
_KEEP_ALIVE = b"keep-alive"
_CHANGE_THE_END = (b"transfer-encoding", b"expect", b"upgrade")
"""Headers that change where a request ends, or what the other side waits for."""


@frozen
class DirectRequest:
    """The head of a request."""

    path: str
    length: int
    """Bytes of the body."""
    host: str
    authorization: str | None
    request_id: str | None
    size: int
    """Bytes of the head."""


@frozen
class DirectAnswer:
    """An answer as it is sent: its status, headers after the server's own, and body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Answering(Protocol):
    """Answers requests on the event loop."""

    def admits(self, request: DirectRequest, connection: TimedConnection) -> bool:
        """Return whether the sender may have an answer, and count the connection as its; a refusal has no effect."""

    def share(self, connection: TimedConnection) -> Share:
        """Return an empty share of the budget of bodies, for a body that is not whole yet."""

    def answer_directly(self, request: DirectRequest, body: bytes, connection: TimedConnection) -> DirectAnswer | None:
        """Answer a whole request; None, without any effect, leaves it to the application."""


def parse_head(data: bytes) -> DirectRequest | None:
    """Return the head at the beginning of some bytes; None: it is not whole, or a request of another kind."""
    end = data.find(b"\r\n\r\n", 0, _MOST_HEAD)
    first, *lines = data[: max(end, 0)].split(b"\r\n")
    path = _PATHS.get(first)
    headers = None if path is None else _parse_headers(lines)
    if path is None or headers is None:
        return None
    host, length = headers.get(b"host"), headers.get(b"content-length", b"")
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if not host or _LENGTH.fullmatch(length) is None or int(length) > SHORT or kind != b"application/json":
        return None
    return DirectRequest(
        path=path,
        length=int(length),
        host=host.decode(),
        authorization=_text(headers.get(b"authorization")),
        request_id=_text(headers.get(b"x-request-id")),
        size=end + 4,
    )


def _parse_headers(lines: Sequence[bytes]) -> dict[bytes, bytes] | None:
    """Return the first value of each header; None: a line or a header that only h11 reads."""
    headers: dict[bytes, bytes] = {}
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match is None:
            return None
        name = match[1].lower()
        if name in headers and name in _ONCE:
            return None
        headers.setdefault(name, match[2])
    keeps_open = headers.get(b"connection", _KEEP_ALIVE).lower() == _KEEP_ALIVE
    return headers if keeps_open and headers.keys().isdisjoint(_CHANGE_THE_END) else None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def _is_held(share: Share, size: int) -> bool:
    """Take so many bytes more; False: the budget has not so many left, and the application is to refuse them."""
    try:
        share.take(size)
    except BusyError:
        return False
    return True


_STATUS_LINES = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus}


class DirectConnection(TimedConnection):
    """A connection that answers requests for decisions itself, and leaves others to h11 and the application."""

    answering: Answering
    """Set before the connection is made."""
    _begun: tuple[DirectRequest, bytearray, Share] | None = None
    """A request whose body is not whole, all of its bytes so far, and what they take of the budget of bodies."""
    _has_answered = False
    """Whether a request was answered here."""

    def data_received(self, data: bytes) -> None:
        """Answer a request that is whole, or wait for the rest of its body; leave other bytes to h11."""
        if self._begun is not None:
            request, received, share = self._begun
            received += data
            if len(received) < request.size + request.length and _is_held(share, len(data)):
                return
            self._end_waiting()
            data = bytes(received)
        else:
            begun = parse_head(data) if self._is_free() else None
            if begun is None:
                super().data_received(data)
                return
            request = begun
            if len(data) < request.size + request.length and self.answering.admits(request, self):
                share = self.answering.share(self)
                if _is_held(share, len(data) - request.size):
                    self._unset_keepalive_if_required()
                    self._begun = (request, bytearray(data), share)
                    self._note()
                    return
        if len(data) != request.size + request.length or not self._answered(request, data):
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release a body that will not be whole."""
        self._end_waiting()
        super().connection_lost(exc)

    def _end_waiting(self) -> None:
        if self._begun is not None:
            self._begun[2].release()
            self._begun = None

    def _is_free(self) -> bool:
        """Return whether all that came before was answered, and the next answer can be written."""
        conn = self.conn
        return not (
            self._is_asked
            or conn.their_state is not h11.IDLE
            or conn.our_state is not h11.IDLE
            or conn.trailing_data[0]
            or self._has_ended
            or self.flow.write_paused
            or self.transport.is_closing()
        )

    def _answered(self, request: DirectRequest, data: bytes) -> bool:
        """Answer a whole request; False: the application does."""
        if self.arrival is not None:
            self.arrival.busy(True)  # as h11 would have noted: an idle connection may be ended for another one
        try:
            answer = self.answering.answer_directly(request, data[request.size :], self)
        except Exception:  # noqa: BLE001 - it fails in the application as well, which logs it and answers
            return False
        if answer is None:
            return False
        self._unset_keepalive_if_required()
        lines = [_STATUS_LINES[answer.status]]
        for name, value in (*self.server_state.default_headers, *answer.headers):
            lines += (name, b": ", value, b"\r\n")
        self.transport.write(b"".join((*lines, b"\r\n", answer.body)))
        self.transport.flush()  # it is whole
        self._has_answered = True
        self.conn.their_http_version = b"1.1"  # as h11 would know, so that it frames an error of the next one so
        self.on_response_complete()
        return True

    @property
    def _is_asked(self) -> bool:
        return self._begun is not None or super()._is_asked

    @property
    def _is_first(self) -> bool:
        return super()._is_first and not self._has_answered

    def _is_half_sent(self) -> bool:
        return self._begun is not None or super()._is_half_sent()
