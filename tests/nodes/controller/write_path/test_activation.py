"""Cancelled starts, and directories that a single-voter controller must refuse."""

import asyncio
import shutil
import threading

import pytest
from attrs import evolve

from aclog.metalog.control_records import KRaftVersion
from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.committed_mark import read_committed
from aclog.metalog.filelog.files import QuorumState, list_segments, write_quorum_state
from aclog.server.controller import controller_server as server_module
from aclog.server.controller.activation import LOG_DIRECTORY, open_controller_log
from aclog.snapshots.checkpoints import read_checkpoint
from tests.support.nodes.controllers import controller_server, formatted, running


def test_a_start_cancelled_while_opening_the_log_leaves_no_lock(tmp_path, monkeypatch):
    config, opening, going_on = formatted(tmp_path), threading.Event(), threading.Event()

    def slowly(asked):
        opening.set()
        going_on.wait(10)
        return open_controller_log(asked)

    async def scenario():
        monkeypatch.setattr(server_module, "open_controller_log", slowly)
        server = controller_server(config)
        starting = asyncio.create_task(server.start())
        await asyncio.to_thread(opening.wait, 10)
        starting.cancel()
        going_on.set()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await server.stop()
        monkeypatch.undo()
        async with running(config) as again:
            assert again.ready

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("kraft_version", "state"),
    [
        (0, QuorumState(leader_id=1, leader_epoch=5, voters=(1, 2, 3))),
        (0, QuorumState(leader_id=-1, leader_epoch=5, voters=(2,))),
        (1, QuorumState(leader_id=2, leader_epoch=5)),
    ],
)
def test_a_log_with_other_voters_is_refused(tmp_path, kraft_version, state):
    config = formatted(tmp_path, kraft_version=kraft_version)
    log = tmp_path / LOG_DIRECTORY
    asyncio.run(start(config))
    write_quorum_state(log, state)
    before = list_segments(log)[-1].path.read_bytes()
    with pytest.raises(ConfigError, match=r"quorum-state: the quorum includes 2.* expected controller 1 alone"):
        asyncio.run(start(config))
    assert list_segments(log)[-1].path.read_bytes() == before


def test_other_voters_recorded_in_the_log_are_refused(tmp_path):
    config = formatted(tmp_path)
    asyncio.run(start(config))
    directory = tmp_path / LOG_DIRECTORY
    voters = read_checkpoint(next(directory.glob("*.checkpoint"))).provenance.voters
    other = evolve(voters.voters[0], voter_id=2)
    with open_log(directory, force=True) as log:
        both = evolve(voters, voters=(*voters.voters, other))
        log.append_control(KRaftVersion(kraft_version=1), both, timestamp=1).result()
    with pytest.raises(ConfigError, match=r"__cluster_metadata-0: the quorum includes 2: "):
        asyncio.run(start(config))


async def start(config):
    async with running(config):
        pass


def test_the_mark_of_another_cluster_is_refused_before_anything_is_written(tmp_path):
    config = formatted(tmp_path)
    log = tmp_path / LOG_DIRECTORY
    asyncio.run(start(config))
    evolve(read_committed(log), cluster_id="another").write()
    before = list_segments(log)[-1].path.read_bytes()
    with pytest.raises(LogError, match=r"aclog\.committed: of cluster another, but meta\.properties beside it is of"):
        asyncio.run(start(config))
    assert list_segments(log)[-1].path.read_bytes() == before


def test_a_log_that_was_removed_before_there_was_a_mark_is_refused(tmp_path):
    """As of a directory that only a Kafka has used: what formatting wrote beside the log is gone with it."""
    config = formatted(tmp_path)
    shutil.rmtree(tmp_path / LOG_DIRECTORY)
    with pytest.raises(LogError, match="neither a log nor the checkpoint with the voters that formatting writes"):
        asyncio.run(start(config))
    assert not (tmp_path / LOG_DIRECTORY).exists()
