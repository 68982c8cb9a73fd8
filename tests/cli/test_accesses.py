"""`--accesses` as lines: JSON, and what Kafka's own authorizers have logged."""

import json
from pathlib import Path

import pytest

from aclog.metalog.errors import ConfigError
from aclog.sources.accesses import read_accesses
from aclog.sources.seen_accesses import read_seen_accesses
from tests.support.cli.command import aclog
from tests.support.cli.shell_sources import SMALL

OLDER = Path(__file__).parents[1] / "pipeline/accesses/data"
LOGGED = SMALL / "expected/authorizer.log"


@pytest.mark.parametrize("path", [LOGGED, *sorted(OLDER.glob("*.log"))], ids=lambda path: path.name)
def test_every_line_that_a_kafka_logged_is_an_access(path):
    lines = path.read_text().splitlines()
    found = read_accesses(str(path))
    assert (sum(found.counts.values()), found.malformed) == (len(lines), 0)
    seen = read_seen_accesses(str(path))
    assert seen.requests == set(found.counts)
    assert seen.principals == {request.principal for request in found.counts}
    assert all(f"Principal = {principal} is " in path.read_text() for principal in seen.principals)


def test_what_else_is_in_such_a_file_is_counted_and_no_access(tmp_path):
    [first, second, *_] = LOGGED.read_bytes().splitlines()
    request = {
        "principal": "User:json", "host": "::1", "operation": "READ", "resourceType": "TOPIC", "resourceName": "t",
    }  # fmt: skip
    lines = [first, b"java.lang.Exception", first, b"\tat kafka.Kafka", second[:60], b"[]", b"[", second + b"\xff"]
    (tmp_path / "log").write_bytes(b"\r\n".join([*lines, json.dumps(request).encode(), b""]))
    found = read_accesses(str(tmp_path / "log"))
    assert sorted(found.counts.values()) == [1, 2]
    assert found.malformed == 6
    assert read_seen_accesses(str(tmp_path / "log")).principals == {"User:admin", "User:json"}


def test_a_file_of_nothing_but_other_lines_is_refused(tmp_path):
    (tmp_path / "log").write_text("[2026-11-21 10:00:00,123] INFO something (kafka.server)\n")
    with pytest.raises(ConfigError, match=r"no line is an access: expected lines as of .* or of kafka-authorizer\.log"):
        read_accesses(str(tmp_path / "log"))
    with pytest.raises(ConfigError, match="no line has a principal"):
        read_seen_accesses(str(tmp_path / "log"))


def test_a_difference_counts_them():
    result = aclog(
        "diff", "--log", SMALL / "__cluster_metadata-0", "--to-super-users", "User:alice;User:bob", "--accesses", LOGGED
    )
    assert result.code == 1
    assert result.lines[-1].endswith(" of the accesses flip")
    assert not result.lines[-1].startswith("0 ")
