"""A node's log directories: which are formatted, for whom, and which are empty (MetaPropertiesEnsemble)."""

from pathlib import Path

from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog.file_names import list_segments
from aclog.metalog.filelog.filesystem import TEMPORARY_SUFFIX, log_error
from aclog.metalog.filelog.locks import LOCK_FILE
from aclog.nodes.config.node_config import NodeConfig
from aclog.nodes.storage.format_files import BOOTSTRAP_CHECKPOINT, FIRST_CHECKPOINT, METADATA_DIRECTORY
from aclog.nodes.storage.meta_properties import META_PROPERTIES, MetaProperties, read_meta_properties

_NOT_OURS_TO_MIND = {".lock", "lost+found", LOCK_FILE}
_OF_FORMATTING = {BOOTSTRAP_CHECKPOINT, BOOTSTRAP_CHECKPOINT + TEMPORARY_SUFFIX, META_PROPERTIES + TEMPORARY_SUFFIX}


def log_directories(config: NodeConfig) -> tuple[Path, ...]:
    """Every directory that gets a meta.properties, in order of name."""
    return tuple(sorted({*config.log_dirs, config.metadata_log_dir}, key=str))


def directories_to_format(config: NodeConfig, cluster_id: str, *, ignore_formatted: bool) -> tuple[Path, ...]:
    """The directories that are to be formatted.

    Raises:
        ConfigError: one is formatted already, and that is not to be ignored, or formatted for another node or cluster;
            or it has no meta.properties, but a metadata log.
        LogError: one cannot be read.

    """
    left = []
    for directory in log_directories(config):
        meta = read_meta_properties(directory)
        if meta is None:
            _check_no_log(directory)
            left.append(directory)
            continue
        check_meta_properties(directory, meta, node_id=config.node_id, cluster_id=cluster_id)
        if not ignore_formatted:
            raise ConfigError(
                f"Log directory {directory} is already formatted. "
                "Use --ignore-formatted to ignore this directory and format the others."
            )
    return tuple(left)


def _check_no_log(directory: Path) -> None:
    log = directory / METADATA_DIRECTORY
    if log.is_dir() and list_segments(log):
        raise ConfigError(f"{directory}: no {META_PROPERTIES}, but a log in {METADATA_DIRECTORY}: expected none")


def check_meta_properties(directory: Path, meta: MetaProperties, *, node_id: int, cluster_id: str | None) -> None:
    """Stop at a directory that was formatted for another node or cluster.

    Raises:
        ConfigError: so it is.

    """
    path = directory / META_PROPERTIES
    if cluster_id is not None and meta.cluster_id != cluster_id:
        raise ConfigError(f"Invalid cluster.id in: {path}. Expected {cluster_id}, but read {meta.cluster_id}")
    if meta.node_id != node_id:
        raise ConfigError(f"Invalid node.id in: {path}. Expected {node_id}, but read {meta.node_id}")


def foreign_file(directory: Path) -> str | None:
    """The name of a file that neither a file system, a lock nor an interrupted formatting left there; None if empty.

    Raises:
        LogError: the directory cannot be read.

    """
    for name in _listed(directory):
        if name == METADATA_DIRECTORY:
            others = [inner for inner in _listed(directory / name) if not _is_first_checkpoint(inner)]
            if others:
                return f"{name}/{others[0]}"
        elif name not in _NOT_OURS_TO_MIND | _OF_FORMATTING:
            return name
    return None


def _is_first_checkpoint(name: str) -> bool:
    """Whether it is the 0-0 checkpoint, or what an interrupted writer left of it."""
    return name.startswith(FIRST_CHECKPOINT.partition(".")[0]) and ".checkpoint" in name


def _listed(directory: Path) -> list[str]:
    try:
        return sorted(path.name for path in directory.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise log_error(error, directory, "cannot list") from error
