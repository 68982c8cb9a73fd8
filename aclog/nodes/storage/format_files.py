"""The files of a formatted log directory, byte for byte as kafka-storage writes them (Formatter.doFormat).

Up to Kafka 4.3 bootstrap.checkpoint in every directory, and the 0-0 checkpoint with the voters in the metadata log's;
from 4.4 on that checkpoint alone, with the records in it. And meta.properties in each.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias
from uuid import UUID

from attrs import frozen

from aclog.authorizer.generation import Generation
from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.control_records import (
    ControlRecord,
    KRaftVersion,
    KRaftVoters,
    SnapshotFooter,
    SnapshotHeader,
    control_batch,
    snapshot_header_records,
)
from aclog.metalog.filelog.file_names import METADATA_DIRECTORY, checkpoint_name
from aclog.metalog.filelog.filesystem import DIRECTORY_MODE, fsync_directory, log_error, replace_durably, write_all
from aclog.metalog.filelog.partial_files import written_whole
from aclog.metalog.records import FeatureLevelRecord, UserScramCredentialRecord
from aclog.metalog.uuids import random_uuid
from aclog.nodes.config.node_config import NodeConfig
from aclog.nodes.storage.initial_voter import InitialVoter
from aclog.nodes.storage.meta_properties import MetaProperties, write_meta_properties

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
FIRST_CHECKPOINT = checkpoint_name(0, 0)
READ_ONLY = 0o400

BootstrapRecord: TypeAlias = FeatureLevelRecord | UserScramCredentialRecord


@frozen(kw_only=True)
class FormatPlan:
    """What all directories get: `records` in bootstrap.checkpoint, `voter` in the metadata log's 0-0 checkpoint.

    From Kafka 4.4 on (KIP-1170) the records are in the 0-0 checkpoint too, which only a controller has.
    """

    cluster_id: str
    release: str
    generation: Generation
    records: tuple[BootstrapRecord, ...]
    voter: InitialVoter | None
    kraft_version: int
    now_ms: int
    token_bytes: Callable[[int], bytes]


def bootstrap_bytes(records: Sequence[BootstrapRecord], *, now_ms: int) -> bytes:
    """Return bootstrap.checkpoint: the records that a new cluster's controller writes first (BootstrapDirectory)."""
    # 0, unlike in the 0-0 checkpoint, because Kafka's BootstrapDirectory writes it so.
    header = SnapshotHeader(last_contained_log_timestamp=0)
    end = len(records) + 1
    return b"".join(
        (
            control_batch(header, base_offset=0, leader_epoch=0, timestamp=now_ms),
            build_batch(list(map(encode_record, records)), base_offset=1, leader_epoch=0, timestamp=now_ms),
            control_batch(SnapshotFooter(), base_offset=end, leader_epoch=0, timestamp=now_ms),
        )
    )


def first_checkpoint_bytes(voters: KRaftVoters, *, now_ms: int) -> bytes:
    """Return the 0-0 checkpoint: kraft.version 1 and the voters (Formatter.writeDynamicQuorumSnapshot)."""
    header = snapshot_header_records(last_contained_log_timestamp=now_ms, kraft_version=1, voters=voters)
    return b"".join(
        (
            control_batch(*header, base_offset=0, leader_epoch=0, timestamp=now_ms),
            control_batch(SnapshotFooter(), base_offset=len(header), leader_epoch=0, timestamp=now_ms),
        )
    )


def template_bytes(
    records: Sequence[BootstrapRecord], *, kraft_version: int, voters: KRaftVoters | None, now_ms: int
) -> bytes:
    """Return the 0-0 checkpoint of Kafka 4.4: the voters, and the records that the first leader writes (Formatter)."""
    opening: tuple[ControlRecord, ...] = (SnapshotHeader(last_contained_log_timestamp=now_ms),)
    if kraft_version:
        # Without initial controllers too: the voters of the quorum that this node joins are in its log.
        opening += (KRaftVersion(kraft_version=kraft_version), *(() if voters is None else (voters,)))
    end = len(opening) + len(records)
    return b"".join(
        (
            control_batch(*opening, base_offset=0, leader_epoch=0, timestamp=now_ms),
            build_batch(list(map(encode_record, records)), base_offset=len(opening), leader_epoch=0, timestamp=now_ms),
            control_batch(SnapshotFooter(), base_offset=end, leader_epoch=0, timestamp=now_ms),
        )
    )


def format_directory(config: NodeConfig, directory: Path, plan: FormatPlan) -> str:
    """Format one log directory; return kafka-storage's output line.

    Raises:
        LogError: the disk is full, or the directory cannot be written.

    """
    kind, directory_id = _kind(config, directory, plan)
    _make(directory)
    if plan.generation is Generation.V4_3:
        replace_durably(directory / BOOTSTRAP_CHECKPOINT, bootstrap_bytes(plan.records, now_ms=plan.now_ms))
    if directory == config.metadata_log_dir and (data := _first_checkpoint(config, plan)) is not None:
        _write_first_checkpoint(directory, data)
    # Last: a directory without meta.properties is not formatted, so a crash before this line is repaired by a second
    # run.
    meta = MetaProperties(cluster_id=plan.cluster_id, node_id=config.node_id, directory_id=directory_id)
    write_meta_properties(directory, meta, now_ms=plan.now_ms)
    return f"Formatting {kind} {directory} with metadata.version {plan.release}."


def _first_checkpoint(config: NodeConfig, plan: FormatPlan) -> bytes | None:
    """Return what the 0-0 checkpoint of the metadata log's directory has; None if there is none."""
    voters = None if plan.voter is None else plan.voter.as_voters(config.controller_listener_names[0])
    if plan.generation is not Generation.V4_3:
        if not config.is_controller:
            return None
        return template_bytes(plan.records, kraft_version=plan.kraft_version, voters=voters, now_ms=plan.now_ms)
    return None if voters is None else first_checkpoint_bytes(voters, now_ms=plan.now_ms)


def _kind(config: NodeConfig, directory: Path, plan: FormatPlan) -> tuple[str, UUID]:
    """Return Kafka's name for the directory, and its id: the voter's for the voter's own metadata log directory."""
    if directory == config.metadata_log_dir and plan.voter is not None:
        if plan.voter.node_id == config.node_id:
            return "dynamic metadata voter directory", plan.voter.directory_id
        return "dynamic metadata directory", random_uuid(plan.token_bytes)
    kind = "metadata directory" if directory == config.metadata_log_dir else "data directory"
    return kind, random_uuid(plan.token_bytes)


def _write_first_checkpoint(directory: Path, data: bytes) -> None:
    log = directory / METADATA_DIRECTORY
    _make(log)
    path = log / FIRST_CHECKPOINT
    try:
        with written_whole(path) as fd:
            os.fchmod(fd, READ_ONLY)
            write_all(fd, data)
    except OSError as error:
        raise log_error(error, path, "cannot write") from error


def _make(directory: Path) -> None:
    try:
        directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        # Else a crash could lose the new directory together with the files synced in it.
        fsync_directory(directory.parent)
    except OSError as error:
        raise log_error(error, directory, "cannot create") from error
