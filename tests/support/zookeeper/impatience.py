"""A lost connection that is not waited for: it takes no session timeout until a change of a store is given up."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock


@contextmanager
def impatient() -> Iterator[None]:
    """Until the end of the `with`, an hour passes between two looks at the clock by whoever changes a store."""
    with mock.patch("aclog.zookeeper.acl_store.time", SimpleNamespace(monotonic=itertools.count(0, 3600).__next__)):
        yield
