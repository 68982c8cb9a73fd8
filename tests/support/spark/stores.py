"""Stores that `aclog spark` is tested on: S3, and HDFS of one NameNode and one DataNode."""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlencode, urlsplit

from attrs import define, field, frozen

from tests.support.kafka.jvm import BUILD, QUICK, compiled, program
from tests.support.processes.object_store import object_store

S3_JARS = BUILD.parent / "hadoop-aws"
HDFS_JARS = BUILD.parent / "hadoop-minicluster"


class Store(Protocol):
    """The files of a store by their names below `uri`."""

    @property
    def uri(self) -> str:
        """The URI of a directory, which the files are in."""
        ...

    @property
    def settings(self) -> Mapping[str, str]:
        """What a session of Spark needs to reach the store."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """What its process needs."""
        ...

    def put(self, name: str, content: bytes) -> None:
        """Create a file, or replace its content."""
        ...

    def append(self, name: str, content: bytes) -> None:
        """Add to a file what a writer does in this store: an object is put anew."""
        ...

    def replace(self, name: str, content: bytes) -> None:
        """Put another file in the place of one, with the same time."""
        ...

    def remove(self, name: str) -> None:
        """Delete a file, or a directory with its files."""
        ...

    def names(self, directory: str) -> list[str]:
        """The names of the files in a directory and those below it, relative to it."""
        ...

    def read(self, name: str) -> bytes:
        """The content of a file."""
        ...


@frozen(kw_only=True)
class S3Store:
    """Objects of a bucket, which a server of the test process serves; their times are all the same."""

    uri: str = "s3a://lake"
    settings: Mapping[str, str]
    environment: Mapping[str, str] = field(
        default={
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
    )
    objects: dict[str, bytes]
    requests: list[str]
    """The kind and the address of each request."""

    def put(self, name: str, content: bytes) -> None:
        """Put an object."""
        self.objects[f"lake/{name}"] = content

    def append(self, name: str, content: bytes) -> None:
        """Put a longer object."""
        self.put(name, self.read(name) + content)

    def replace(self, name: str, content: bytes) -> None:
        """Put an object."""
        self.put(name, content)

    def remove(self, name: str) -> None:
        """Delete objects."""
        for each in list(self.objects):
            if each == f"lake/{name}" or each.startswith(f"lake/{name}/"):
                del self.objects[each]

    def names(self, directory: str) -> list[str]:
        """Without the objects that S3A has for directories."""
        prefix = f"lake/{directory}/"
        names = (each.removeprefix(prefix) for each in list(self.objects) if each.startswith(prefix))
        return sorted(name for name in names if name and not name.endswith("/"))

    def read(self, name: str) -> bytes:
        """The content of an object."""
        return self.objects[f"lake/{name}"]


@contextmanager
def s3_store() -> Iterator[S3Store]:
    """Yield a bucket, on a loopback port."""
    objects, requests = {"lake/.keep": b""}, list[str]()
    with object_store(objects, requests=requests) as options:
        address = options.partition("=")[2].partition("&")[0]
        settings = {
            "spark.jars": ",".join(map(str, sorted(S3_JARS.glob("*.jar")))),
            "spark.hadoop.fs.s3a.endpoint": f"http://{address}",
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }
        yield S3Store(settings=settings, objects=objects, requests=requests)


@define(kw_only=True)
class HdfsStore:
    """A directory of HDFS, which the test reads and changes by WebHDFS."""

    uri: str
    settings: Mapping[str, str] = field(factory=dict)
    environment: Mapping[str, str] = field(factory=dict)
    address: str
    """HOST:PORT of the NameNode's WebHDFS."""

    def put(self, name: str, content: bytes) -> None:
        """Create a file, or replace one."""
        self._send("PUT", name, content, op="CREATE", overwrite="true")

    def append(self, name: str, content: bytes) -> None:
        """Append, which keeps the id of the file."""
        self._send("POST", name, content, op="APPEND")

    def replace(self, name: str, content: bytes) -> None:
        """Rename another file to this name, with the time of the first one."""
        modified = self._json("GET", name, op="GETFILESTATUS")["FileStatus"]["modificationTime"]
        self.put(f"{name}.new", content)
        self._json("PUT", f"{name}.new", op="SETTIMES", modificationtime=str(modified))
        self.remove(name)
        self._json("PUT", f"{name}.new", op="RENAME", destination=f"/lake/{name}")

    def remove(self, name: str) -> None:
        """Delete a file or a directory."""
        self._json("DELETE", name, op="DELETE", recursive="true")

    def names(self, directory: str) -> list[str]:
        """The names in the tree of a directory; a directory that is deleted meanwhile has none."""
        found = self._json("GET", directory, op="LISTSTATUS").get("FileStatuses", {"FileStatus": []})
        names = []
        for status in found["FileStatus"]:
            name = status["pathSuffix"]
            if status["type"] == "DIRECTORY":
                names += [f"{name}/{below}" for below in self.names(f"{directory}/{name}")]
            else:
                names.append(name)
        return sorted(names)

    def read(self, name: str) -> bytes:
        """The content of a file."""
        return self._send("GET", name, None, op="OPEN")

    def _json(self, method: str, name: str, **query: str) -> dict[str, Any]:
        status, _, body = _request(method, self.address, self._path(name, query), None)
        assert status in {200, 404}, body
        return dict(json.loads(body)) if body else {}

    def _send(self, method: str, name: str, content: bytes | None, **query: str) -> bytes:
        """Send a request to the DataNode that the NameNode names; the answer has the content of a file."""
        status, location, body = _request(method, self.address, self._path(name, query), None)
        assert status == 307, body
        node = urlsplit(location)
        status, _, body = _request(method, node.netloc, f"{node.path}?{node.query}", content)
        assert status in {200, 201}, body
        return body

    def _path(self, name: str, query: Mapping[str, str]) -> str:
        return f"/webhdfs/v1/lake/{quote(name)}?{urlencode(query)}"


def _request(method: str, address: str, path: str, content: bytes | None) -> tuple[int, str, bytes]:
    connection = HTTPConnection(address, timeout=120)
    try:
        connection.request(method, path, content)
        response: HTTPResponse = connection.getresponse()
        return response.status, response.getheader("Location", ""), response.read()
    finally:
        connection.close()


@contextmanager
def hdfs_store(scratch: Path) -> Iterator[HdfsStore]:
    """Yield a directory of HDFS, whose servers run until the end and keep their files in `scratch`."""
    classes = compiled("classes-hdfs", ("tests/jvm/java-hdfs/*.java",), f"{HDFS_JARS}/*")
    command = [program("java"), *QUICK, "-Xmx512m", "-cp", f"{classes}:{HDFS_JARS}/*", "Hdfs", str(scratch / "hdfs")]
    pipe, errors = subprocess.PIPE, scratch / "hdfs.log"
    with (
        errors.open("wb") as file,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=file, text=True) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            uri, _, web = server.stdout.readline().strip().partition(" ")
            assert web, errors.read_text()
            yield HdfsStore(uri=f"{uri}/lake", address=urlsplit(web).netloc)
        finally:
            server.stdin.close()
            try:
                server.wait(60)
            except subprocess.TimeoutExpired:
                server.kill()


def wait_for_name(store: Store, directory: str, part: str, process: "subprocess.Popen[str]") -> None:
    """Wait until a file whose name has `part` is in a directory, or a process has ended."""
    while process.poll() is None and not any(part in name for name in store.names(directory)):
        time.sleep(0.01)
