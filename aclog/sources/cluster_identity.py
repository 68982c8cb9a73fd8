"""The cluster that a log directory belongs to."""

from pathlib import Path

from aclog.metalog.filelog.locks import kafka_log_dir
from aclog.nodes.storage.meta_properties import read_meta_properties
from aclog.sources.sync_properties import read_sync_properties


def cluster_id_of(directory: Path) -> str | None:
    """Return the id of the cluster whose log this is; None if nothing beside the log tells.

    Raises:
        MetadataError: what should tell is malformed, or cannot be read.

    """
    synced = read_sync_properties(directory)
    if synced is not None:
        return synced.cluster_id
    place = kafka_log_dir(directory)
    found = None if place is None else read_meta_properties(place)
    return None if found is None else found.cluster_id
