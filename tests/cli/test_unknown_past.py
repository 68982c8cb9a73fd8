"""Times before a log's first record: the state is unknown, and no command, shell or library call takes it for empty."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import aclog as library
from tests.support.cli.command import aclog

SMALL = Path(__file__).parents[1] / "data/kafka-4.3.1-small/__cluster_metadata-0"
BEFORE, SINCE = "2026-11-21T02:23:46.248000Z", "2026-11-21T02:23:46.249000Z"
ASKED = ("--principal", "User:bob", "--operation", "READ", "--topic", "t")
UNKNOWN = "the state is unknown: the log's first record is of "


@pytest.mark.parametrize(
    "command",
    [
        ("acls", "list"),
        ("authorize", *ASKED),
        ("explain", *ASKED),
        ("shell",),
        ("export", "--format", "jsonl"),
        ("export", "--format", "jsonl", "--history"),
    ],
)
def test_no_command_answers_for_a_time_before_the_first_record(command):
    refused = aclog(*command, "--log", SMALL, "--as-of", BEFORE)
    assert (refused.code, refused.out) == (2, "")
    assert f"as of {BEFORE}: {UNKNOWN}" in refused.complaint
    assert aclog(*command, "--log", SMALL, "--as-of", 0).code in {0, 1}
    assert aclog(*command, "--log", SMALL, "--as-of", SINCE).code in {0, 1}


def test_a_checkpoint_is_not_written_of_an_unknown_state(tmp_path):
    refused = aclog("snapshot", "create", "--log", SMALL, "--as-of", BEFORE, "--out", tmp_path)
    assert (refused.code, list(tmp_path.iterdir())) == (2, [])


def test_an_imported_log_begins_in_the_middle_of_the_clusters_life(tmp_path):
    rules = SMALL.parent / "expected" / "acls.jsonl"
    aclog("import", rules, "--log", tmp_path / "log").ok()
    yesterday = datetime.now(UTC) - timedelta(days=1)
    refused = aclog("acls", "list", "--log", tmp_path / "log", "--as-of", yesterday.isoformat())
    assert (refused.code, refused.out) == (2, "")
    assert UNKNOWN in refused.complaint


def test_the_shell_stays_where_it_is():
    out = aclog("shell", "--log", SMALL, stdin=f"at {BEFORE}\nat\n".encode())
    assert UNKNOWN in out.out + out.err
    assert "at latest: " in out.out


def test_the_library_refuses_such_a_time():
    with library.open_log(SMALL) as log:
        with pytest.raises(library.MetadataError, match=UNKNOWN):
            log.image(as_of=datetime.fromisoformat(BEFORE))
        assert len(log.image(as_of=0)) == 0
