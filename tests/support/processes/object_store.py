"""An object store on a loopback port, with the few requests of S3 that reading takes: list, head and get."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_PAGE = 3
"""Objects of a page of a list: every list of more has several."""


@contextmanager
def object_store(objects: Mapping[str, bytes]) -> Iterator[str]:
    """Serve objects by BUCKET/KEY; yield the options of an address, `?endpoint_override=...`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Print nothing."""

        def do_HEAD(self) -> None:
            """Answer with the size of an object."""
            self._object(unquote(urlsplit(self.path).path)[1:])

        def do_GET(self) -> None:
            """Answer with an object, or a page of a list."""
            url = urlsplit(self.path)
            name, query = unquote(url.path)[1:], {key: each[0] for key, each in parse_qs(url.query).items()}
            if "list-type" in query:
                self._list(name.rstrip("/"), query)
            else:
                self._object(name)

        def _object(self, name: str) -> None:
            data = objects.get(name)
            if data is None:
                self._answer(404, b"" if self.command == "HEAD" else b"<Error><Code>NoSuchKey</Code></Error>")
                return
            first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
            part = data[int(first) : int(last) + 1 if last else len(data)]
            self._answer(206 if "Range" in self.headers else 200, part)

        def _list(self, bucket: str, query: Mapping[str, str]) -> None:
            if not any(each.startswith(f"{bucket}/") for each in objects):
                self._answer(404, b"<Error><Code>NoSuchBucket</Code><Message>no such bucket</Message></Error>")
                return
            keys = [each.removeprefix(f"{bucket}/") for each in sorted(objects) if each.startswith(f"{bucket}/")]
            after = query.get("continuation-token", "")
            left = [each for each in keys if each.startswith(query.get("prefix", "")) and each > after]
            some = left[: min(_PAGE, int(query.get("max-keys", _PAGE)))]
            contents = "".join(
                f"<Contents><Key>{escape(each)}</Key><Size>{len(objects[f'{bucket}/{each}'])}</Size></Contents>"
                for each in some
            )
            is_cut = len(some) < len(left)
            token = f"<NextContinuationToken>{escape(some[-1])}</NextContinuationToken>" if is_cut else ""
            head = (
                f"<Name>{bucket}</Name><KeyCount>{len(some)}</KeyCount><IsTruncated>{str(is_cut).lower()}</IsTruncated>"
            )
            body = f"<ListBucketResult>{head}{token}{contents}</ListBucketResult>"
            self._answer(200, f'<?xml version="1.0" encoding="UTF-8"?>{body}'.encode())

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", '"0"')
            self.send_header("Last-Modified", "Sat, 21 Nov 2026 10:00:00 GMT")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"?endpoint_override=127.0.0.1:{server.server_port}&scheme=http"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
