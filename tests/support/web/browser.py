"""A browser without a screen: it keeps cookies and the token of the last form, and says where a request comes from."""

import re
from typing import Any
from urllib.parse import urlencode

from attrs import define, field

from tests.support.web.asgi import Reply, ask

_TOKEN = re.compile(r'name="csrf_token" value="([^"]*)"')


@define(eq=False)
class Browser:
    """Asks one application."""

    app: Any
    host: str = "127.0.0.1:8181"
    address: str = "127.0.0.1"
    cookies: dict[str, str] = field(factory=dict)
    token: str = ""

    def get(self, path: str, **headers: str) -> Reply:
        """Open a page."""
        navigation = {"Accept": "text/html", "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}
        return self.ask("GET", path, b"", {**navigation, "Sec-Fetch-Dest": "document", **_named(headers)})

    def post(self, path: str, fields: dict[str, str], **headers: str) -> Reply:
        """Send a form of the last page; fields say what is another than there."""
        body = urlencode({"csrf_token": self.token, **fields}).encode()
        own = {"Origin": f"http://{self.host}", "Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.ask("POST", path, body, {**own, **form, **_named(headers)})

    def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Reply:
        """Send a request with the cookies that there are."""
        jar = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        fields = {"Host": self.host, **({"Cookie": jar} if jar else {}), **headers}
        reply = ask(
            self.app, method, path, body, {name: value for name, value in fields.items() if value}, self.address
        )
        for cookie in reply.set_cookies:
            self._keep(cookie)
        if match := _TOKEN.search(reply.body.decode("utf-8", "replace")):
            self.token = match[1]
        return reply

    def _keep(self, cookie: str) -> None:
        pair, *attributes = cookie.split("; ")
        name, _, value = pair.partition("=")
        if "Max-Age=0" in attributes:
            self.cookies.pop(name, None)
        else:
            self.cookies[name] = value


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-").title(): value for name, value in headers.items()}
