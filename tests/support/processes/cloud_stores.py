"""A bucket of S3 with its traffic, by the object store of the tests."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from attrs import define, field

from tests.support.processes.object_store import object_store

Hook = Callable[[str], int | None]
"""Gets METHOD and path of a request, before it; returns the HTTP status of a refusal, or None."""


def no_hook(_: str) -> int | None:
    """Change nothing."""
    return None


@define(kw_only=True)
class Traffic:
    """What passes between a client and a server."""

    hook: Hook = no_hook
    requests: list[str] = field(factory=list)
    """METHOD and path of each request."""

    def before(self, request: str) -> int | None:
        """Record a request; return the status of its refusal, or None."""
        self.requests.append(request)
        return self.hook(request)


@define(kw_only=True)
class S3Bucket:
    """A bucket `logs` of the object store of the tests: `root` is its address, `options` comes after an address."""

    traffic: Traffic
    options: str
    objects: dict[str, bytes]
    root: str = "s3://logs"

    def put(self, name: str, content: bytes) -> None:
        """Create or replace an object."""
        self.objects[f"logs/{name}"] = content

    def remove(self, name: str) -> None:
        """Delete an object."""
        self.objects.pop(f"logs/{name}", None)


@contextmanager
def s3_bucket() -> Iterator[S3Bucket]:
    """Yield a bucket of S3."""
    traffic, objects = Traffic(), {"logs/.keep": b""}

    def fault(when: str, request: str) -> int | None:
        return traffic.before(request) if when == "before" else None

    with object_store(objects, fault=fault) as options:
        yield S3Bucket(traffic=traffic, options=options, objects=objects)
