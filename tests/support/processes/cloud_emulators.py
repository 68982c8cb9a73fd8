"""Buckets of Google Cloud Storage and containers of Azure, by their emulators: `make check-clouds` installs both.

Between a client and an emulator is a proxy, which records the requests and may refuse or change them.
"""

import base64
import hashlib
import hmac
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TypeAlias
from urllib.parse import quote, urlencode

from attrs import define, field

from tests.support.kafka.server import free_port
from tests.support.processes.cloud_stores import Traffic

BUILD = Path(__file__).parents[3] / "build"
READY = tuple(BUILD / name / ".ready" for name in ("fake-gcs", "azurite"))
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that Azurite documents; its key is public."""
_PER_PAGE = 3
_SECONDS = 30.0
_OF_CONNECTION = {"connection", "transfer-encoding", "keep-alive", "content-length"}


Response: TypeAlias = tuple[int, dict[str, str], bytes]
"""The status, the headers and the body."""


@define(kw_only=True)
class Proxy:
    """A server that passes requests on; `traffic` sees each first."""

    traffic: Traffic
    port: int
    emulator: int
    """Its port."""
    pages: str = ""
    """The parameter of small pages in requests for lists, without which an emulator sends all in one."""
    is_paged: bool = False
    lost: Callable[[str], bool] = field(default=lambda _: False)
    """Whether the response of a request (METHOD and path) is lost, after its effect."""
    instead: Callable[[str, Mapping[str, str], bytes], Response | None] = field(default=lambda *_: None)
    """Responds in place of the emulator to a request (METHOD and path, headers in lower case, body), or not."""


@contextmanager
def proxy_of(emulator: int, pages: str) -> Iterator[Proxy]:
    """Serve a proxy before a port of this machine."""
    traffic = Traffic()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Print nothing."""

        def handle(self) -> None:
            """Respond until the client ends."""
            with suppress(ConnectionError):
                super().handle()

        def respond(self) -> None:
            """Pass a request on, unless the hook refuses it."""
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = f"{self.command} {self.path}"
            status = traffic.before(request)
            if status is not None:
                self._send(status, {"Content-Type": "text/plain"}, b"refused by the test")
                return
            is_list = self.command == "GET" and "prefix=" in self.path
            path = _paged(self.path, proxy.pages) if is_list and proxy.is_paged else self.path
            named = {key.lower(): value for key, value in self.headers.items()}
            response = proxy.instead(request, named, body)
            if response is None:
                response = _sent(emulator, self.command, path, dict(self.headers.items()), body)
            status, headers, content = response
            if proxy.lost(request):
                self.close_connection = True
                return
            self._send(status, headers, content)

        def __getattr__(self, name: str) -> Callable[[], None]:
            if name.startswith("do_"):
                return self.respond
            raise AttributeError(name)

        def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response_only(status)
            for key, value in headers.items():
                if key.lower() not in _OF_CONNECTION:
                    self.send_header(key, value)
            named = next((value for key, value in headers.items() if key.lower() == "content-length"), "0")
            size = named if self.command == "HEAD" else str(len(body))
            self.send_header("Content-Length", size)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True  # clients keep their connections
    proxy = Proxy(traffic=traffic, port=server.server_port, emulator=emulator, pages=pages)
    serving = Thread(target=server.serve_forever)
    serving.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def _paged(path: str, parameter: str) -> str:
    """Return the path of a list of at most a page."""
    size = re.search(rf"(?<=[?&]){parameter}=([0-9]+)", path)
    if size is None:
        return f"{path}&{parameter}={_PER_PAGE}"
    return path.replace(size[0], f"{parameter}={min(_PER_PAGE, int(size[1]))}")


def _sent(port: int, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Response:
    connection = HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    try:
        connection.request(method, path, body or None, dict(headers))
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


@contextmanager
def emulator(command: list[str | Path], port: int) -> Iterator[None]:
    """Run an emulator until the end of the `with`; it responds on this port."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _SECONDS
        while True:
            with suppress(OSError):
                _sent(port, "GET", "/", {}, b"")
                break
            assert process.poll() is None, command
            assert time.monotonic() < deadline, command
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(_SECONDS)


# Google Cloud Storage.


@define(kw_only=True)
class GcsBucket:
    """A bucket `logs`: `root` is its address, `options` comes after an address."""

    proxy: Proxy
    root: str = "gs://logs"

    @property
    def traffic(self) -> Traffic:
        """What passes between a client and the emulator."""
        return self.proxy.traffic

    @property
    def options(self) -> str:
        """The options of an address."""
        return f"?endpoint_override=127.0.0.1:{self.proxy.port}&scheme=http&anonymous=true"

    def put(self, name: str, content: bytes, encoding: str = "") -> None:
        """Create or replace an object."""
        query = {"uploadType": "media", "name": name} | ({"contentEncoding": encoding} if encoding else {})
        path = f"/upload/storage/v1/b/logs/o?{urlencode(query, quote_via=quote)}"
        kind = {"Content-Type": "application/octet-stream"}
        status, _, text = _sent(self.proxy.emulator, "POST", path, kind, content)
        assert status == 200, text

    def remove(self, name: str) -> None:
        """Delete an object."""
        _sent(self.proxy.emulator, "DELETE", f"/storage/v1/b/logs/o/{quote(name, safe='')}", {}, b"")


@contextmanager
def gcs_bucket() -> Iterator[GcsBucket]:
    """Yield a bucket of Google Cloud Storage."""
    port = free_port()
    command = [BUILD / "fake-gcs" / "fake-gcs-server", "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    command += ["-backend", "memory", "-external-url", f"http://127.0.0.1:{port}"]
    with emulator(command, port), proxy_of(port, "maxResults") as proxy:
        body = json.dumps({"name": "logs"}).encode()
        status, _, text = _sent(port, "POST", "/storage/v1/b?project=p", {"Content-Type": "application/json"}, body)
        assert status == 200, text
        yield GcsBucket(proxy=proxy)


# Azure.


@define(kw_only=True)
class AzureContainer:
    """A container `logs`: `root` is its address, `options` comes after an address."""

    proxy: Proxy
    root: str = f"abfss://logs@{ACCOUNT}.dfs.core.windows.net"

    @property
    def traffic(self) -> Traffic:
        """What passes between a client and the emulator."""
        return self.proxy.traffic

    @property
    def options(self) -> str:
        """The options of an address."""
        kinds = "&".join(
            f"{kind}_storage_authority=127.0.0.1:{self.proxy.port}&{kind}_storage_scheme=http"
            for kind in ("blob", "dfs")
        )
        return f"?{kinds}"

    def put(self, name: str, content: bytes, *, container: str = "logs", is_marker: bool = False) -> Response:
        """Create or replace an object; a marker is a directory of Hadoop's client."""
        headers = {"x-ms-blob-type": "BlockBlob"} | ({"x-ms-meta-hdi_isfolder": "true"} if is_marker else {})
        response = self._signed("PUT", quote(f"{container}/{name}"), "", headers, content)
        assert response[0] == 201, response
        return response

    def remove(self, name: str) -> None:
        """Delete an object."""
        self._signed("DELETE", quote(f"logs/{name}"), "", {}, b"")

    def names(self) -> list[str]:
        """Return the names of all objects."""
        _, _, text = self._signed("GET", "logs", "comp=list\nrestype=container", {}, b"")
        return re.findall(r"<Name>(.*?)</Name>", text.decode())

    def create(self, container: str, *, is_public: bool = False) -> None:
        """Create a container."""
        headers = {"x-ms-blob-public-access": "container"} if is_public else {}
        response = self._signed("PUT", container, "restype=container", headers, b"")
        assert response[0] == 201, response

    def _signed(self, method: str, path: str, query: str, more: Mapping[str, str], body: bytes) -> Response:
        """Send a request with the key of the account: "Authorize with Shared Key" of Azure's documentation."""
        date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        headers = {"x-ms-date": date, "x-ms-version": "2021-12-02", **more}
        size, kind = str(len(body)) if body else "", "application/octet-stream" if body else ""
        named = "".join(f"{key}:{headers[key]}\n" for key in sorted(headers))
        resource = f"/{ACCOUNT}/{ACCOUNT}/{path}" + (f"\n{query.replace('=', ':')}" if query else "")
        text = "\n".join([method, "", "", size, "", kind, "", "", "", "", "", "", f"{named}{resource}"])
        headers |= {"Authorization": f"SharedKey {ACCOUNT}:{signature(text)}", "Content-Type": kind}
        headers["Content-Length"] = str(len(body))
        url = f"/{ACCOUNT}/{path}" + (f"?{query}" if query else "").replace("\n", "&")
        return _sent(self.proxy.emulator, method, url, {k: v for k, v in headers.items() if v}, body)


def signature(text: str) -> str:
    """Sign a text with the key of the account."""
    return base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)).decode()


def sas_token(permissions: str = "rl") -> str:
    """Return a token by which a client may read and list all containers of the account, for a while."""
    parts = {"sv": "2020-08-04", "ss": "b", "srt": "sco", "sp": permissions, "se": "2099-01-01T00:00:00Z"}
    text = "\n".join([ACCOUNT, parts["sp"], parts["ss"], parts["srt"], "", parts["se"], "", "", parts["sv"], ""])
    return urlencode(parts | {"sig": signature(text)})


@contextmanager
def azure_container() -> Iterator[AzureContainer]:
    """Yield a container of Azure, for clients with AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN."""
    port = free_port()
    command = [BUILD / "azurite" / "node_modules" / ".bin" / "azurite-blob", "--blobHost", "127.0.0.1"]
    command += ["--blobPort", str(port), "--inMemoryPersistence", "--silent", "--disableTelemetry"]
    command += ["--skipApiVersionCheck"]
    with emulator(command, port), proxy_of(port, "maxresults") as proxy:
        container = AzureContainer(proxy=proxy)
        container.create("logs")
        yield container
