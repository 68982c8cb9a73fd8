"""The limit of open files: raised where that is allowed, and connections kept within it."""

import resource

import pytest

from aclog.nodes.server import file_limit as files
from aclog.nodes.server.file_limit import OWN_FILES, connections_within_files


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "served", "raised"),
    [
        (1 << 20, 1 << 20, 10_000, 10_000, None),
        (1024, 1 << 20, 10_000, 10_000, 10_000 + OWN_FILES),
        (1024, 4096, 10_000, 4096 - OWN_FILES, 4096),
        (1024, 1024, 100, 100, None),
        (100, 100, 10, 1, 100),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, 10_000, 10_000, None),
        (1024, resource.RLIM_INFINITY, 10_000, 10_000, 10_000 + OWN_FILES),
    ],
)
def test_connections_stay_within_files(monkeypatch, caplog, soft, hard, wanted, served, raised):
    asked = []
    monkeypatch.setattr(files.resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(files.resource, "setrlimit", lambda _, limits: asked.append(limits))
    assert connections_within_files(wanted) == served
    assert asked == ([] if raised is None else [(raised, hard)])
    assert ("ulimit -n" in caplog.text) is (served < wanted)
