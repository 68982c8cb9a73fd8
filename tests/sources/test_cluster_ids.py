"""The cluster of a log directory, by the files beside the log."""

from pathlib import Path

import pytest

from aclog.metalog.filelog.committed_mark import CommittedMark
from aclog.metalog.filelog.files import METADATA_DIRECTORY
from aclog.metalog.filelog.meta_properties import META_PROPERTIES
from aclog.sources.logs import LogSource, SyncProperties, cluster_id_of, cluster_of, write_sync_properties

SYNCED, NODES, MARKED = "c3luY2VkLWNsdXN0ZXI", "bm9kZXMtY2x1c3Rlci0", "bWFya2VkLWNsdXN0ZXI"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / METADATA_DIRECTORY
    made.mkdir()
    return made


def test_no_file_has_it(directory: Path) -> None:
    assert cluster_id_of(directory) is None
    assert cluster_of(LogSource(directory, print)) is None


def test_a_log_of_sync_has_it(directory: Path) -> None:
    write_sync_properties(directory, SyncProperties(cluster_id=SYNCED, first_poll=1))
    assert cluster_of(LogSource(directory, print)) == SYNCED


def test_a_mark_has_it_where_there_is_no_meta_properties(directory: Path) -> None:
    CommittedMark.beside(directory, cluster_id=MARKED, end_offset=5, epoch=1).write()
    assert cluster_id_of(directory) == MARKED
    (directory.parent / META_PROPERTIES).write_text(f"version=1\nnode.id=1\ncluster.id={NODES}\n")
    assert cluster_id_of(directory) == NODES
