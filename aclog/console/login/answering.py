"""An answer on its way out: cookies and headers are added, and it is written down before it is sent."""

from attrs import define, field
from starlette.types import Message, Send

from aclog.console.line_file import LineFile
from aclog.console.login.cookies import Cookies
from aclog.console.login.headers import with_security
from aclog.console.login.visit import Visit

_FAILED = b"The audit cannot be written, so nothing is answered.\n"


@define(eq=False, kw_only=True)
class Answering:
    """Sends the messages of one answer."""

    visit: Visit
    cookies: Cookies
    audit: LineFile | None
    send: Send
    _told: bool = field(default=False, init=False)
    _failed: bool = field(default=False, init=False)

    async def __call__(self, message: Message) -> None:
        """Send one message."""
        if self._failed:
            return
        if message["type"] != "http.response.start":
            await self.send(message)
            return
        try:
            self.tell(message["status"])
        except OSError:
            self._failed = True
            await self._fail()
            return
        await self.send({**message, "headers": self._headers(message)})

    def tell(self, status: int | None) -> None:
        """Write the request down, once; `status` is None if it was not answered. Raises OSError: it cannot be."""
        if self.audit is not None and not self._told:
            self._told = True
            self.audit.write(self.visit.to_dict(status))

    def _headers(self, message: Message) -> list[tuple[bytes, bytes]]:
        visit, given = self.visit, list(message.get("headers", ()))
        if visit.is_new and not visit.cookies and any(_is_page(name, value) for name, value in given):
            visit.cookies = [self.cookies.set_session(visit.session_id, None)]
        return with_security([*given, *((b"set-cookie", cookie.encode("latin-1")) for cookie in visit.cookies)])

    async def _fail(self) -> None:
        headers = with_security([(b"content-type", b"text/plain; charset=utf-8")])
        await self.send({"type": "http.response.start", "status": 500, "headers": headers})
        await self.send({"type": "http.response.body", "body": _FAILED})


def _is_page(name: bytes, value: bytes) -> bool:
    return name.lower() == b"content-type" and value.lower().startswith(b"text/html")
