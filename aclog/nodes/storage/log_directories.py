"""A node's log directories: which are formatted, for which node, and which are empty (MetaPropertiesEnsemble)."""

from pathlib import Path

from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog.committed_mark import COMMITTED_FILE
from aclog.metalog.filelog.file_names import METADATA_DIRECTORY, list_segments
from aclog.metalog.filelog.filesystem import TEMPORARY_SUFFIX, log_error
from aclog.metalog.filelog.locks import LOCK_FILE
from aclog.nodes.config.node_config import NodeConfig
from aclog.nodes.storage.format_files import BOOTSTRAP_CHECKPOINT, FIRST_CHECKPOINT
from aclog.nodes.storage.meta_properties import META_PROPERTIES, MetaProperties, read_meta_properties

_IGNORED = {".lock", "lost+found", LOCK_FILE}
_WRITTEN_BY_FORMAT = {BOOTSTRAP_CHECKPOINT, BOOTSTRAP_CHECKPOINT + TEMPORARY_SUFFIX, META_PROPERTIES + TEMPORARY_SUFFIX}


def log_directories(config: NodeConfig) -> tuple[Path, ...]:
    """Return every directory that gets a meta.properties, sorted by name."""
    return tuple(sorted({*config.log_dirs, config.metadata_log_dir}, key=str))


def require_formatted(config: NodeConfig) -> MetaProperties:
    """Return the meta.properties of the metadata log's directory, without which a node does not start.

    Mirrors KafkaRaftServer.initializeLogDirs. An empty directory is as likely a volume that is not mounted, or data
    that was deleted, as a new node: formatting it in silence would make a cluster without any rules.

    Raises:
        ConfigError: the directory is not formatted, or belongs to another node.
        LogError: it cannot be read.

    """
    directory = config.metadata_log_dir
    meta = read_meta_properties(directory)
    if meta is None:
        raise ConfigError(
            f"No `{META_PROPERTIES}` found in {directory} (have you run `aclog format CONFIG` to format the directory?)"
            ". If this node had data before, restore it, or mount its volume. `aclog serve --format-if-empty` formats "
            "an empty directory"
        )
    check_meta_properties(directory, meta, node_id=config.node_id, cluster_id=None)
    return meta


def directories_to_format(config: NodeConfig, cluster_id: str, *, ignore_formatted: bool) -> tuple[Path, ...]:
    """Return the directories that are not formatted.

    Raises:
        ConfigError: one is already formatted without `ignore_formatted`, belongs to another node or cluster, or
            contains a metadata log but no meta.properties.
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


def check_unchanged(directory: Path, meta: MetaProperties) -> None:
    """Check that a running node's directory is still the one it started on.

    Raises:
        ConfigError: its meta.properties was removed or changed.
        LogError: it cannot be read.

    """
    if read_meta_properties(directory) != meta:
        raise ConfigError(
            f"{directory / META_PROPERTIES}: removed or changed while the node runs: expected the one of node "
            f"{meta.node_id} of cluster {meta.cluster_id}; nothing more is acknowledged"
        )


def _check_no_log(directory: Path) -> None:
    if (directory / COMMITTED_FILE).exists():
        raise ConfigError(
            f"{directory}: no {META_PROPERTIES}, but {COMMITTED_FILE} says that a log was committed in it: restore it; "
            "to start over without it, remove what is in the directory"
        )
    log = directory / METADATA_DIRECTORY
    # Formatting would make these records the log of a new cluster.
    if log.is_dir() and list_segments(log):
        raise ConfigError(
            f"{directory}: no {META_PROPERTIES}, but a log in {METADATA_DIRECTORY}: expected an empty directory"
        )


def check_meta_properties(directory: Path, meta: MetaProperties, *, node_id: int, cluster_id: str | None) -> None:
    """Check that a directory belongs to this node and cluster.

    Raises:
        ConfigError: it does not.

    """
    path = directory / META_PROPERTIES
    if cluster_id is not None and meta.cluster_id != cluster_id:
        raise ConfigError(f"Invalid cluster.id in: {path}. Expected {cluster_id}, but read {meta.cluster_id}")
    if meta.node_id != node_id:
        raise ConfigError(f"Invalid node.id in: {path}. Expected {node_id}, but read {meta.node_id}")


def foreign_file(directory: Path) -> str | None:
    """Return a file name that is not from a file system, a lock or an interrupted formatting; None if there is none.

    Raises:
        LogError: the directory cannot be read.

    """
    for name in _listed(directory):
        if name == METADATA_DIRECTORY:
            others = [inner for inner in _listed(directory / name) if not _is_first_checkpoint(inner)]
            if others:
                return f"{name}/{others[0]}"
        elif name not in _IGNORED | _WRITTEN_BY_FORMAT:
            return name
    return None


def _is_first_checkpoint(name: str) -> bool:
    """Whether it is the 0-0 checkpoint, or a partial one left by a crash."""
    return name.startswith(FIRST_CHECKPOINT.partition(".")[0]) and ".checkpoint" in name


def _listed(directory: Path) -> list[str]:
    try:
        return sorted(path.name for path in directory.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise log_error(error, directory, "cannot list") from error
