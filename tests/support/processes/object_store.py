"""An object store on a loopback port, with the few requests of S3 that reading and writing files take."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

_PAGE = 3
"""Objects of a page of a list: every list of more has several."""
_ERROR = b"<Error><Code>InternalError</Code></Error>"
_STAMP = "<LastModified>2026-11-21T10:00:00.000Z</LastModified>"


def _without_chunks(data: bytes) -> bytes:
    """The content of the AWS encoding: chunks with their sizes, then perhaps trailing headers."""
    content, at = b"", 0
    while True:
        end = data.index(b"\r\n", at)
        size = int(data[at:end].split(b";")[0], 16)
        if not size:
            return content
        content += data[end + 2 : end + 2 + size]
        at = end + 2 + size + 2


def _tag(data: bytes) -> str:
    """The ETag of an object: another one for other bytes."""
    return f'"{sha256(data).hexdigest()[:32]}"'


@contextmanager
def object_store(
    objects: Mapping[str, bytes],
    *,
    denied: Collection[str] = (),
    seen: list[str] | None = None,
    requests: list[str] | None = None,
    ignored: Collection[str] = (),
    fault: Callable[[str, str], int | tuple[int, bytes] | None] = lambda _when, _request: None,
) -> Iterator[str]:
    """Serve objects by BUCKET/KEY; yield the options of an address, `?endpoint_override=...`.

    Of a mutable mapping, objects can also be put (in parts, too), copied and deleted, each in one step. Reading
    `denied` objects, and lists of `denied` buckets, is refused. `seen` gets the Authorization header of each read,
    `requests` the kind and the address of each request: HEAD, GET, LIST, PAGE (a further one of a list), PUT, ...

    A put is refused by its conditions, If-Match and If-None-Match, unless their names are `ignored`. `fault` returns an
    HTTP status in place of the answer, or one and a body, 0 for a connection that ends without one, or None: "before"
    or "after" the effect of a request (`PUT /...`), or "within" the content of an object, which then ends halfway.
    """
    uploads: dict[str, dict[int, bytes]] = {}
    lock = Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Print nothing."""

        def parse_request(self) -> bool:
            """Record a request."""
            is_parsed = super().parse_request()
            if is_parsed and requests is not None:
                is_list, is_next = "list-type=" in self.path, "continuation-token=" in self.path
                kind = "PAGE" if is_next else "LIST" if is_list else self.command
                requests.append(f"{kind} {self.path}")
            return is_parsed

        def do_HEAD(self) -> None:
            """Answer with the size of an object."""
            if seen is not None:
                seen.append(self.headers.get("Authorization", ""))
            self._object(unquote(urlsplit(self.path).path)[1:])

        def do_GET(self) -> None:
            """Answer with an object, or a page of a list."""
            name, query = self._address()
            if seen is not None:
                seen.append(self.headers.get("Authorization", ""))
            if "list-type" in query:
                self._list(name.rstrip("/"), query)
            else:
                self._object(name)

        def do_PUT(self) -> None:
            """Put or copy an object, or put a part of one."""
            name, query = self._address()
            source = self.headers.get("x-amz-copy-source")
            body = self._body()
            if self._fails("before"):
                return
            with lock:
                copied = body if source is None else objects.get(unquote(source).lstrip("/"))
                if copied is None:
                    self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
                    return
                if "uploadId" in query:
                    uploads[query["uploadId"]][int(query["partNumber"])] = copied
                elif not self._put(name, copied):
                    return
            stamp = f"{_STAMP}<ETag>{_tag(copied)}</ETag>"
            copy = b"" if source is None else f"<CopyObjectResult>{stamp}</CopyObjectResult>".encode()
            if not self._fails("after"):
                self._answer(200, copy, _tag(copied))

        def do_POST(self) -> None:
            """Delete several objects, or begin or complete an upload in parts."""
            name, query = self._address()
            body = self._body()
            if "delete" in query:
                bucket = name.rstrip("/")
                for key in re.findall(rb"<Key>(.*?)</Key>", body):
                    _writable().pop(f"{bucket}/{unescape(key.decode())}", None)
                self._answer(200, b"<DeleteResult></DeleteResult>")
            elif "uploads" in query:
                number = str(len(uploads))
                uploads[number] = {}
                text = f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId></InitiateMultipartUploadResult>"
                self._answer(200, text.encode())
            else:
                parts = uploads[query["uploadId"]]
                with lock:
                    if not self._put(name, b"".join(parts[number] for number in sorted(parts))):
                        return
                text = '<CompleteMultipartUploadResult><ETag>"0"</ETag></CompleteMultipartUploadResult>'
                self._answer(200, text.encode())

        def do_DELETE(self) -> None:
            """Delete an object, or give up an upload in parts."""
            name, query = self._address()
            if self._fails("before"):
                return
            if "uploadId" in query:
                uploads.pop(query["uploadId"], None)
            else:
                _writable().pop(name, None)
            if not self._fails("after"):
                self._answer(204, b"")

        def _put(self, name: str, content: bytes) -> bool:
            expected = None if "If-Match" in ignored else self.headers.get("If-Match")
            is_new = "If-None-Match" not in ignored and self.headers.get("If-None-Match") == "*"
            if expected is not None and name not in objects:
                self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
                return False
            if (is_new and name in objects) or (expected is not None and _tag(objects[name]) != expected):
                self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                return False
            _writable()[name] = content
            return True

        def _fails(self, when: str) -> bool:
            """Whether a fault takes the place of the answer."""
            answer = fault(when, f"{self.command} {self.path}")
            status, body = answer if isinstance(answer, tuple) else (answer, _ERROR)
            if status:
                self._answer(status, body)
            elif status is not None:
                self.close_connection = True
            return status is not None

        def _address(self) -> tuple[str, dict[str, str]]:
            url = urlsplit(self.path)
            pairs = parse_qs(url.query, keep_blank_values=True).items()
            return unquote(url.path)[1:], {key: each[0] for key, each in pairs}

        def _body(self) -> bytes:
            size = int(self.headers.get("Content-Length", 0))
            data = self.rfile.read(size)
            if len(data) < size:
                raise ConnectionError("the client ended within a body, which has no effect")
            return _without_chunks(data) if "aws-chunked" in self.headers.get("Content-Encoding", "") else data

        def _deny(self) -> None:
            self._answer(403, b"" if self.command == "HEAD" else b"<Error><Code>AccessDenied</Code></Error>")

        def _object(self, name: str) -> None:
            if name in denied:
                self._deny()
                return
            if self._fails("before"):
                return
            data = objects.get(name)
            if data is None:
                self._answer(404, b"" if self.command == "HEAD" else b"<Error><Code>NoSuchKey</Code></Error>")
                return
            first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
            part = data[int(first) : int(last) + 1 if last else len(data)]
            if self.headers.get("If-Match", _tag(data)) != _tag(data):
                self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                return
            self._size = len(data)
            status = 206 if "Range" in self.headers else 200
            is_cut = self.command == "GET" and fault("within", f"GET {self.path}") is not None
            self._answer(status, part, _tag(data), cut=len(part) // 2 if is_cut else None)

        def _list(self, bucket: str, query: Mapping[str, str]) -> None:
            if bucket in denied:
                self._deny()
                return
            if not any(each.startswith(f"{bucket}/") for each in objects):
                self._answer(404, b"<Error><Code>NoSuchBucket</Code><Message>no such bucket</Message></Error>")
                return
            prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
            names = set()
            for each in sorted(objects):
                key = each.removeprefix(f"{bucket}/")
                if each.startswith(f"{bucket}/") and key.startswith(prefix):
                    first, cut, _ = (
                        key[len(prefix) :].partition(delimiter) if delimiter else (key[len(prefix) :], "", "")
                    )
                    names.add(prefix + first + cut)
            after = query.get("continuation-token", query.get("start-after", ""))
            left = sorted(each for each in names if each > after)
            some = left[: min(_PAGE, int(query.get("max-keys", _PAGE)))]
            contents = "".join(
                f"<Contents><Key>{escape(each)}</Key><Size>{len(objects[f'{bucket}/{each}'])}</Size>{_STAMP}"
                f"<ETag>{_tag(objects[f'{bucket}/{each}'])}</ETag></Contents>"
                if f"{bucket}/{each}" in objects
                else f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>"
                for each in some
            )
            is_cut = len(some) < len(left)
            token = f"<NextContinuationToken>{escape(some[-1])}</NextContinuationToken>" if is_cut else ""
            head = (
                f"<Name>{bucket}</Name><KeyCount>{len(some)}</KeyCount><IsTruncated>{str(is_cut).lower()}</IsTruncated>"
            )
            body = f"<ListBucketResult>{head}{token}{contents}</ListBucketResult>"
            self._answer(200, f'<?xml version="1.0" encoding="UTF-8"?>{body}'.encode())

        def _answer(self, status: int, body: bytes, tag: str = '"0"', cut: int | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", tag)
            if status == 206:
                first = self.headers["Range"].removeprefix("bytes=").partition("-")[0]
                self.send_header("Content-Range", f"bytes {first}-{int(first) + len(body) - 1}/{self._size}")
            self.send_header("Last-Modified", "Sat, 21 Nov 2026 10:00:00 GMT")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[:cut])
            if cut is not None:
                self.close_connection = True

    def _writable() -> MutableMapping[str, bytes]:
        assert isinstance(objects, MutableMapping)
        return objects

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"?endpoint_override=127.0.0.1:{server.server_port}&scheme=http"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
