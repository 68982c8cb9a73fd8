"""Commands on a node that is not there, and on one that is not named, or beside another source."""

import pytest

import aclog as library
from tests.support.cli.command import aclog


@pytest.mark.parametrize("flag", ["--bootstrap-server", "--bootstrap-controller"])
def test_an_unreachable_server_is_reported(flag, monkeypatch):
    monkeypatch.setattr("aclog.sources.live._KNOWN_SECONDS", 3600)
    refused = aclog("acls", "list", flag, "localhost:1")
    assert refused.code == 2
    assert "localhost:1" in refused.err


def test_status_requires_exactly_one_target():
    refused = aclog("status")
    assert (refused.code, refused.out) == (2, "")
    assert "exactly one must be given" in refused.err


def test_a_path_excludes_a_cluster():
    with pytest.raises(library.ConfigError, match="not both"):
        library.open_log("here", bootstrap_server="localhost:1")
