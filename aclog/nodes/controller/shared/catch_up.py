"""Catching up with a shared log at startup: a reader with a known high-water mark, and a checkpoint."""

import asyncio
import logging
import shutil
from pathlib import Path

from aclog.metalog.errors import LogError, MetadataError
from aclog.metalog.filelog.file_names import CheckpointFile
from aclog.metalog.filelog.filesystem import log_error
from aclog.metalog.filelog.partial_files import written_whole
from aclog.nodes.config.node_config import NodeConfig
from aclog.nodes.controller.shared.fenced_log import SharedLog, SharedReader
from aclog.nodes.controller.shared.followed_log import checkpoints_in
from aclog.nodes.controller.shared.identity_keeper import IdentityKeeper
from aclog.nodes.observer.quorum_log import QuorumLog

WORTH_A_DOWNLOAD = 10_000
"""Below this many records, reading the log is faster than downloading a checkpoint."""

_RETRY_SECONDS = 1.0
_DOWNLOAD_SECONDS = 5.0

_log = logging.getLogger(__name__)


async def open_reader(shared: SharedLog, keeper: IdentityKeeper) -> SharedReader:
    """Open a reader of the log and wait until its high-water mark is known, however long brokers are unavailable.

    Raises:
        ConfigError: The topic or the client configuration is unusable; OtherLogError if the topic is not the log that
            this controller has followed.
        DecodeError: The topic does not contain a metadata log.

    """
    reader, last_error = None, ""
    try:
        while True:
            try:
                if reader is None:
                    await asyncio.to_thread(keeper.establish)
                    reader = shared.open_reader()
                await asyncio.to_thread(reader.wait_known, _RETRY_SECONDS)
                await asyncio.to_thread(keeper.check_contents, reader)
            except LogError as error:
                if str(error) != last_error:
                    last_error = str(error)
                    _log.warning("%s; retrying", last_error)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return reader
    except BaseException:
        if reader is not None:
            reader.close()
        raise


async def ensure_checkpoint(config: NodeConfig, cluster_id: str, directory: Path, reader: SharedReader) -> None:
    """Download a checkpoint from another controller if reading the log would take long; failing that, continue."""
    newest = max((each.end_offset for each in checkpoints_in(directory)), default=0)
    if reader.high_watermark() - newest < WORTH_A_DOWNLOAD:
        return
    try:
        found = await asyncio.to_thread(download_checkpoint, config, cluster_id, directory, seconds=_DOWNLOAD_SECONDS)
    except MetadataError as error:
        _log.warning("no checkpoint from another controller: %s; reading the log from offset %d", error, newest)
    else:
        if found is not None:
            _log.info("starting from another controller's checkpoint: %s", found.path.name)


def download_checkpoint(
    config: NodeConfig, cluster_id: str, directory: Path, *, seconds: float
) -> CheckpointFile | None:
    """Download the active controller's newest checkpoint into `directory`; None if it has none. Blocks.

    The active controller is looked for at the other voters' addresses, for `seconds` at most.

    Raises:
        MetadataError: No controller is active or serves a checkpoint, or the file cannot be written.

    """
    others = tuple(address for voter, address in config.voters.items() if voter != config.node_id)
    if not others:
        return None
    with QuorumLog(
        servers=others, security=config.controller_client, client_id=str(config.node_id), cluster_id=cluster_id
    ) as log:
        log.wait_known(seconds)
        found = log.latest_snapshot()
        return None if found is None else _copied(found, directory)


def _copied(found: CheckpointFile, directory: Path) -> CheckpointFile:
    path = directory / found.path.name
    try:
        with found.path.open("rb") as original, written_whole(path) as fd, open(fd, "wb", closefd=False) as copy:
            shutil.copyfileobj(original, copy)
    except OSError as error:
        raise log_error(error, path, "cannot write") from error
    return CheckpointFile(end_offset=found.end_offset, epoch=found.epoch, path=path)
