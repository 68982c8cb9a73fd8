"""TLS handshakes that send their alert on failure (SslTransportLayer.handshakeFailure).

When a handshake fails, asyncio closes the socket without sending the alert. Clients then cannot tell a rejected
certificate from a broken connection, and reconnect in a tight loop.
"""

import asyncio
import contextlib
import socket
from asyncio.sslproto import SSLProtocol
from ssl import MemoryBIO, SSLContext, SSLError, SSLObject, SSLSession, SSLSyscallError, SSLWantReadError
from typing import cast

from attrs import define, field

_UNTIL_CLOSED = 0.1
"""Seconds for a client to read the alert and close."""
_RECORD_BYTES = 18 << 10
"""The size of the largest TLS record; asyncio's default would reserve 256 KiB for every connection."""


def prepare(context: SSLContext) -> None:
    """Prepare a context for `Handshake`, and reduce asyncio's buffer per TLS connection."""
    context.sslobject_class = _Watched
    SSLProtocol.max_size = _RECORD_BYTES


@define(eq=False, kw_only=True)
class Handshake:
    """The handshake of one connection. Poses as an SSLContext: asyncio uses nothing but its wrap_bio."""

    context: SSLContext
    connected: socket.socket
    error: SSLError | None = field(default=None, init=False)
    """Why the handshake failed; asyncio itself only reports a closed connection."""

    def as_context(self) -> SSLContext:
        """Return self with the type that asyncio expects."""
        return cast("SSLContext", self)

    def wrap_bio(
        self,
        incoming: MemoryBIO,
        outgoing: MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: SSLSession | None = None,
    ) -> SSLObject:
        """See SSLContext."""
        made = self.context.wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        if isinstance(made, _Watched):
            made.handshake, made.incoming = self, incoming
        return made

    def failed(self, error: SSLError) -> None:
        """Record the error, and close the connection after giving the client time to read the alert."""
        self.error = error
        asyncio.get_running_loop().call_later(_UNTIL_CLOSED, self._shut)

    def _shut(self) -> None:
        with contextlib.suppress(OSError):  # closed already
            self.connected.shutdown(socket.SHUT_RDWR)


class _Watched(SSLObject):
    """Turns a failed handshake into SSLWantReadError, upon which asyncio flushes the outgoing BIO with the alert."""

    handshake: Handshake | None = None
    incoming: MemoryBIO | None = None

    def do_handshake(self) -> None:
        """See SSLObject."""
        watching = self.handshake
        if watching is not None and watching.error is not None:
            if self.incoming is not None:
                self.incoming.read()  # discarded: the input must not accumulate
            raise SSLWantReadError
        try:
            super().do_handshake()
        except (SSLWantReadError, SSLSyscallError):
            raise
        except SSLError as error:
            if watching is None:
                raise
            watching.failed(error)
            raise SSLWantReadError from error
        self.handshake = self.incoming = None
