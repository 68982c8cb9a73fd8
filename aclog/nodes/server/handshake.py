"""The handshake of TLS on a listener, whose failure its client hears of (SslTransportLayer.handshakeFailure).

asyncio closes the socket where a handshake fails, and the alert that tells why never leaves it: a client could not tell
a certificate that is refused from a connection that broke, and would come again at once, for ever.
"""

import asyncio
import contextlib
import socket
from asyncio.sslproto import SSLProtocol
from ssl import MemoryBIO, SSLContext, SSLError, SSLObject, SSLSession, SSLSyscallError, SSLWantReadError
from typing import cast

from attrs import define, field

_UNTIL_CLOSED = 0.1
"""Seconds that a client has to read its alert and to close."""
_RECORD_BYTES = 18 << 10
"""A record of TLS, the largest there may be: asyncio would set 256 KiB aside for whoever connects."""


def prepare(context: SSLContext) -> None:
    """Make a context ready for `Handshake`, and connections with TLS small."""
    context.sslobject_class = _Watched
    SSLProtocol.max_size = _RECORD_BYTES


@define(eq=False, kw_only=True)
class Handshake:
    """One connection's: asyncio takes it for a context, of which it wants an SSLObject and nothing else."""

    context: SSLContext
    connected: socket.socket
    error: SSLError | None = field(default=None, init=False)
    """Why the handshake failed; what asyncio raises then only tells that the connection is gone."""

    def as_context(self) -> SSLContext:
        """Itself, as what asyncio takes it for."""
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
        """Remember why, and end the connection once the client has had time to hear of it."""
        self.error = error
        asyncio.get_running_loop().call_later(_UNTIL_CLOSED, self._shut)

    def _shut(self) -> None:
        with contextlib.suppress(OSError):  # closed already
            self.connected.shutdown(socket.SHUT_RDWR)


class _Watched(SSLObject):
    """Where the handshake fails, it asks for more bytes, which never help: asyncio then sends what there is to send."""

    handshake: Handshake | None = None
    incoming: MemoryBIO | None = None

    def do_handshake(self) -> None:
        """See SSLObject."""
        watching = self.handshake
        if watching is not None and watching.error is not None:
            if self.incoming is not None:
                self.incoming.read()  # what still comes is of no use, and must not pile up
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
