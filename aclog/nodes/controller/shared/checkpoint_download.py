"""A checkpoint from the active controller, for one that has none: so that it need not read its log from the start."""

import os
import shutil
from pathlib import Path

from aclog.metalog.filelog.file_names import PARTIAL_SUFFIX, CheckpointFile
from aclog.metalog.filelog.filesystem import FILE_MODE, fsync_directory, log_error
from aclog.nodes.config.node_config import NodeConfig
from aclog.nodes.observer.quorum_log import QuorumLog

WORTH_A_DOWNLOAD = 10_000
"""Fewer records than this are read from the log itself in less time."""


def download_checkpoint(
    config: NodeConfig, cluster_id: str, directory: Path, *, seconds: float
) -> CheckpointFile | None:
    """Have the active controller's newest checkpoint beside this one's; None if it has none. Blocks.

    It is looked for at the other voters' addresses, for `seconds` at most.

    Raises:
        MetadataError: no controller is active, none gives one, or it cannot be written.

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
    partial = path.with_name(f"{path.stem}-0{path.suffix}{PARTIAL_SUFFIX}")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE), "wb") as copy:
            with found.path.open("rb") as original:
                shutil.copyfileobj(original, copy)
            copy.flush()
            os.fsync(copy.fileno())
        partial.replace(path)
        fsync_directory(directory)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise log_error(error, path, "cannot write") from error
    return CheckpointFile(end_offset=found.end_offset, epoch=found.epoch, path=path)
