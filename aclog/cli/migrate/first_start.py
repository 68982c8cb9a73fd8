"""Which file the first start of a formatted directory reads, and so which one a migration may write."""

from pathlib import Path

from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog.file_names import METADATA_DIRECTORY
from aclog.nodes.controller.write_path.formatted_log import is_begun
from aclog.nodes.storage.meta_properties import META_PROPERTIES
from aclog.snapshots.bootstrap_records import FIRST_CHECKPOINT, find_bootstrap, read_bootstrap
from aclog.snapshots.checkpoint_reader import BOOTSTRAP_NAME

_FLAG = "expected --bootstrap-checkpoint"


def first_start_file(path: Path) -> Path:
    """Return the file to write: `path`, or of a directory the file that its first start reads.

    A file of another name is for a directory that is not known yet.

    Raises:
        ConfigError: a first start would ignore what is written there.
        CheckpointError: a file that formatting left is damaged, or was written by a newer Kafka.
        LogError: the directory cannot be listed.

    """
    if path.is_dir():
        return _file_of_directory(path)
    if path.name == FIRST_CHECKPOINT:
        _check_first_checkpoint(path)
    elif path.name == BOOTSTRAP_NAME:
        _check_legacy(path)
    return path


def _file_of_directory(path: Path) -> Path:
    log = path if path.name == METADATA_DIRECTORY else path / METADATA_DIRECTORY
    _check_not_begun(log)
    found = find_bootstrap(log)
    if found is None:
        what = f"neither {BOOTSTRAP_NAME} nor {METADATA_DIRECTORY}/{FIRST_CHECKPOINT} with records is there"
        raise ConfigError(f"{path}: {what}: {_FLAG} of a formatted directory of a controller")
    return found.path


def _check_first_checkpoint(path: Path) -> None:
    _check_not_begun(path.parent)
    if not path.is_file():
        raise ConfigError(f"{path}: no such file: {_FLAG} with the file that `kafka-storage format` of Kafka 4.4 wrote")
    if not read_bootstrap(path).records:
        legacy = path.absolute().parent.parent / BOOTSTRAP_NAME
        raise ConfigError(
            f"{path}: formatted by a Kafka before 4.4 or by aclog, whose first start reads no records here: "
            f"{_FLAG} {legacy}"
        )


def _check_legacy(path: Path) -> None:
    log = path.absolute().parent / METADATA_DIRECTORY
    _check_not_begun(log)
    found = find_bootstrap(log)
    if found is not None and found.in_first_checkpoint:
        raise ConfigError(
            f"{path.parent}: formatted by Kafka 4.4 or later, whose first start reads {found.path} and ignores "
            f"{BOOTSTRAP_NAME}: {_FLAG} {found.path}"
        )
    if found is None and (path.parent / META_PROPERTIES).exists():
        raise ConfigError(
            f"{path.parent}: formatted without {BOOTSTRAP_NAME}, so its first start would ignore one: {_FLAG} of a "
            "controller's metadata.log.dir"
        )


def _check_not_begun(log: Path) -> None:
    if is_begun(log):
        raise ConfigError(
            f"{log.parent}: a node has started there, and no later start reads {BOOTSTRAP_NAME} or "
            f"{FIRST_CHECKPOINT}: expected --bootstrap-controller with the running quorum, or a directory in which no "
            "node has started"
        )
