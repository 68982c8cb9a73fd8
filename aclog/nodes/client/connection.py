"""A connection to a Kafka server, theirs or ours: many requests may be under way, answers come in their order."""

import asyncio
import os
import re
import ssl
from asyncio import Future, StreamReader, StreamWriter, Task
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from attrs import define, field

from aclog.metalog.errors import ConfigError, DecodeError
from aclog.nodes.client.errors import LoginError, UnreachableError
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.wire.api_versions import ApiVersion
from aclog.nodes.wire.frames import FrameBuffer, frame
from aclog.nodes.wire.headers import RequestHeader, decode_response_header, encode_header
from aclog.nodes.wire.messages import decode_response, encode_request

MAX_ANSWER_BYTES = 256 << 20
"""An answer beyond this is refused: no server of Kafka's sends one."""

_READ_BYTES = 1 << 20
_LEAST_ANSWER = 4
_ERRNO = re.compile(r"\[Errno (\d+)\]")


@define(kw_only=True, eq=False)
class _Asked:
    """A request on its way: what its answer's header depends on, and who waits for it."""

    header: RequestHeader
    answer: "Future[tuple[bytes, int]]"


@define(eq=False)
class Connection:
    """One connection, owned by one event loop; made and logged in by `aclog.nodes.client.login.connect`.

    After any failure it is of no more use: whoever waits, and whoever asks later, is told what happened.
    """

    address: HostPort
    client_id: str
    timeout: float
    _reader: StreamReader
    _writer: StreamWriter
    apis: Mapping[int, ApiVersion] = field(factory=dict)
    """What the server serves; nothing before the login."""
    _next_id: int = field(default=0, init=False)
    _asked: deque[_Asked] = field(factory=deque, init=False)
    _failure: UnreachableError | None = field(default=None, init=False)
    _receiver: "Task[None] | None" = field(default=None, init=False)

    @classmethod
    async def open(cls, address: HostPort, context: ssl.SSLContext | None, *, client_id: str, timeout: float) -> Self:
        """A connection on which nothing has been said; `timeout`, in seconds, holds for this and for each answer.

        Raises:
            UnreachableError: nobody answers there.
            LoginError: the server's certificate is not trusted, or it wants one of ours.

        """
        name = None if context is None else address.host
        try:
            async with asyncio.timeout(timeout):
                opened = await asyncio.open_connection(
                    address.host, address.port, ssl=context, server_hostname=name, limit=_READ_BYTES
                )
        except TimeoutError:
            raise UnreachableError(f"{address}: no connection within {timeout:g} s") from None
        except ssl.SSLError as error:
            raise LoginError(f"{address}: TLS: {_reason(error)}") from None
        except (OSError, UnicodeError) as error:
            raise UnreachableError(f"{address}: no connection: {_what(error)}") from None
        connection = cls(address, client_id, timeout, *opened)
        connection._receiver = asyncio.create_task(connection._receive())
        return connection

    @property
    def failure(self) -> UnreachableError | None:
        """Why the connection is of no more use; None while it is."""
        return self._failure

    def version(self, api_key: int, oldest: int, newest: int) -> int:
        """The newest version of an API, of those that we speak, that the server speaks too.

        Raises:
            ConfigError: there is none.

        """
        served = self.apis.get(api_key)
        best = -1 if served is None else min(newest, served.max_version)
        if served is None or best < max(oldest, served.min_version):
            has = "none" if served is None else f"{served.min_version} to {served.max_version}"
            raise ConfigError(
                f"{self.address}: API {api_key} is served in versions {has}: expected one of {oldest} to {newest}"
            )
        return best

    async def ask(self, message: Any, timeout: float | None = None, *, whole: bool = False) -> Any:
        """The answer to a request, both as kio's messages; `timeout` in seconds, that of the connection unless said.

        With `whole`, an answer that is followed by more bytes is none: for those whose lists must not be cut short.

        Raises:
            UnreachableError: the connection was cut, or no answer came in time.
            DecodeError: the answer is none to this request. The connection is closed then.
            EncodeError: a value that its field cannot hold.

        """
        api_key, version = int(message.__api_key__), int(message.__version__)
        payload, position = await self.send(api_key, version, encode_request(message), timeout)
        try:
            return decode_response(api_key, version, payload, position, whole=whole)
        except DecodeError as error:
            self._fail(UnreachableError(f"{self.address}: closed after an answer that is none: {error}"))
            raise error.at(path=str(self.address)) from None

    async def send(self, api_key: int, version: int, body: bytes, timeout: float | None = None) -> tuple[bytes, int]:
        """The answer to a request whose body is given: the whole payload, and the position of its body.

        Raises as `ask`. If the caller is cancelled, the answer is dropped as it comes.
        """
        if self._failure is not None:
            raise self._failure
        header = RequestHeader(
            api_key=api_key, api_version=version, correlation_id=self._next_id, client_id=self.client_id
        )
        asked = _Asked(header=header, answer=asyncio.get_running_loop().create_future())
        self._writer.write(frame(encode_header(header) + body))
        self._next_id = (self._next_id + 1) & 0x7FFFFFFF
        self._asked.append(asked)
        seconds = self.timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(seconds):
                await self._drain()
                return await asked.answer
        except TimeoutError:
            raise self._fail(UnreachableError(f"{self.address}: no answer within {seconds:g} s")) from None

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError as error:
            self._fail(UnreachableError(f"{self.address}: the connection was cut: {_what(error)}"))

    async def _receive(self) -> None:
        """Hand each answer to who asked, until the connection ends."""
        frames = FrameBuffer(max_bytes=MAX_ANSWER_BYTES, min_bytes=_LEAST_ANSWER)
        try:
            while data := await self._reader.read(_READ_BYTES):
                frames.feed(data)
                while (payload := frames.next()) is not None:
                    self._answer(payload)
            self._fail(UnreachableError(f"{self.address}: the server closed the connection"))
        except OSError as error:
            self._fail(UnreachableError(f"{self.address}: the connection was cut: {_what(error)}"))
        except DecodeError as error:
            self._fail(UnreachableError(f"{self.address}: not an answer of Kafka's: {error}"))

    def _answer(self, payload: bytes) -> None:
        if not self._asked:
            raise DecodeError("an answer to nothing")
        header, answer = self._asked[0].header, self._asked[0].answer
        found, position = decode_response_header(header.api_key, header.api_version, payload)
        if found != header.correlation_id:
            raise DecodeError(f"an answer of correlation id {found}: expected {header.correlation_id}")
        self._asked.popleft()
        if not answer.done():
            answer.set_result((payload, position))

    def _fail(self, failure: UnreachableError) -> UnreachableError:
        """Of no more use from here on; the first failure is the one that is told, and given back."""
        self._failure = failure = self._failure or failure
        self._writer.close()
        while self._asked:
            asked = self._asked.popleft()
            if not asked.answer.done():
                asked.answer.set_exception(failure)
                asked.answer.exception()  # whoever waited may have been cancelled: nobody needs to hear of it then
        return failure

    async def close(self) -> None:
        """Close and wait for it, a second at most; a second close is nothing."""
        self._fail(UnreachableError(f"{self.address}: closed"))
        if self._receiver is not None:
            self._receiver.cancel()
            await asyncio.gather(self._receiver, return_exceptions=True)
        try:
            async with asyncio.timeout(1):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


def _reason(error: ssl.SSLError) -> str:
    return getattr(error, "verify_message", None) or error.reason or str(error)


def _what(error: OSError | UnicodeError) -> str:
    """The one reason in an operating system's words; asyncio puts those of several addresses together."""
    numbers = set(_ERRNO.findall(str(error)))
    return os.strerror(int(numbers.pop())) if len(numbers) == 1 else str(error) or type(error).__name__
