"""How a controller comes to a log that it shares: a reader that knows where the log ends, and a checkpoint."""

import asyncio
import logging
from pathlib import Path

from aclog.metalog.errors import LogError, MetadataError
from aclog.nodes.config.node_config import NodeConfig
from aclog.nodes.controller.shared.checkpoint_download import WORTH_A_DOWNLOAD, download_checkpoint
from aclog.nodes.controller.shared.followed_log import check_checkpoints, checkpoints_in
from aclog.nodes.controller.shared.log import SharedLog, SharedReader

_AGAIN_SECONDS = 1.0
_DOWNLOAD_SECONDS = 5.0

_log = logging.getLogger(__name__)


async def open_reader(shared: SharedLog) -> SharedReader:
    """A reader of the log, once its mark is known: brokers that do not answer are waited for.

    Raises:
        ConfigError: the log is not fit, or cannot be reached as it is configured.
        DecodeError: what it holds is no log.

    """
    reader, told = None, ""
    try:
        while True:
            try:
                if reader is None:
                    await asyncio.to_thread(shared.ensure)
                    reader = shared.open_reader()
                await asyncio.to_thread(reader.wait_known, _AGAIN_SECONDS)
            except LogError as error:
                if str(error) != told:
                    told = str(error)
                    _log.warning("%s; trying again", told)
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                return reader
    except BaseException:
        if reader is not None:
            reader.close()
        raise


async def have_checkpoint(config: NodeConfig, cluster_id: str, directory: Path, reader: SharedReader) -> None:
    """See to it that there is a checkpoint to begin with, where the log is long; a node can do without.

    Raises:
        LogError: there is one that knows of more than the log.

    """
    await asyncio.to_thread(check_checkpoints, directory, reader)
    newest = max((each.end_offset for each in checkpoints_in(directory)), default=0)
    if reader.high_watermark() - newest < WORTH_A_DOWNLOAD:
        return
    try:
        found = await asyncio.to_thread(download_checkpoint, config, cluster_id, directory, seconds=_DOWNLOAD_SECONDS)
    except MetadataError as error:
        _log.warning("no checkpoint from another controller: %s; the log is read from offset %d", error, newest)
    else:
        if found is not None:
            _log.info("begins with a checkpoint of another controller: %s", found.path.name)
