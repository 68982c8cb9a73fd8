"""A log or a checkpoint on disk: whether it can be read, what its end is like, who holds it, and the disk."""

import os
import shutil
import time
from collections.abc import Generator, Iterator
from pathlib import Path

from aclog.metalog.errors import MetadataError
from aclog.metalog.filelog.file_names import list_checkpoints, list_segments
from aclog.metalog.filelog.locks import KAFKA_LOCK_FILE, LOCK_FILE, holder_of, kafka_log_dir
from aclog.metalog.filelog.verify_checkpoint import verify_checkpoint
from aclog.snapshots.image import Image
from aclog.sources.choice import ChosenSource
from aclog.sources.cluster_kafka import ClusterKafka, of_registrations
from aclog.sources.doctor.finding import Finding, fail, ok, text_of, warn
from aclog.terminal.timestamps import time_text

_LEAST_FREE_BYTES = 1 << 30
_CHECKED_CHECKPOINTS = 3
"""The newest ones: recovery falls back from one to the next."""


def log_health(directory: Path, chosen: ChosenSource, notes: list[str]) -> Iterator[Finding]:
    """Yield what is found about a directory of segments and checkpoints; `notes` get what its reading tells."""
    if not directory.is_dir():
        yield fail("log", f"{directory}: no such directory")
        return
    if not os.access(directory, os.R_OK | os.X_OK):
        yield fail("log", f"{directory}: not readable by this user", "run as its owner, or copy the directory")
        return
    image = yield from state_health("log", str(directory), chosen, notes)
    if image is not None:
        yield from kafka_finding(of_registrations(image))
    yield from _checkpoints(directory)
    yield _holder(directory)
    yield _disk(directory)


def state_health(
    check: str, name: str, chosen: ChosenSource, notes: list[str]
) -> Generator[Finding, None, Image | None]:
    """Yield whether a source can be read as a whole, and what reading it tells; return its state, if it can."""
    began = time.monotonic()
    try:
        image = chosen.image()
    except (MetadataError, OSError) as error:
        yield fail(
            check, text_of(error), "" if check != "log" else f"`aclog log verify {name}` shows all that is wrong"
        )
        return None
    yield ok(check, f"{name}: {_contents(image)}, read in {time.monotonic() - began:.1f} s")
    for text in notes:
        yield warn(check, text, f"`aclog log verify {name}` tells more" if check == "log" else "see docs/operations.md")
    return image


def kafka_finding(kafka: ClusterKafka) -> Iterator[Finding]:
    """Yield which Kafka the nodes run, if anything is known of it, and whether they decide alike."""
    warning = kafka.warning()
    if warning is not None:
        todo = (
            "upgrade all nodes; `aclog diff SOURCE --to-kafka-version 4.4` shows what differs"
            if kafka.nodes.of_generation
            else "name it with --kafka-version, in a context or in aclog.toml"
        )
        yield warn("kafka", warning, todo)
    elif text := kafka.text():
        todo = "upgrade the others too" if kafka.nodes.difference() else ""
        yield ok("kafka", text, todo) if kafka.decides_alike else warn("kafka", text, "see docs/operations.md")


def _contents(image: Image) -> str:
    end = f", ends at offset {image.end_offset}, epoch {image.epoch}" if image.end_offset else ""
    last = f", last written {time_text(image.timestamp)}" if image.end_offset and image.timestamp > 0 else ""
    return f"{len(image.acls):,} ACLs, {len(image.scram):,} SCRAM credentials{end}{last}"


def _checkpoints(directory: Path) -> Iterator[Finding]:
    found = list_checkpoints(directory)
    if not found:
        segments = list_segments(directory)
        if segments and segments[0].base_offset == 0:
            yield ok("checkpoints", "none: the log begins at offset 0")
        return
    for checkpoint in found[-_CHECKED_CHECKPOINTS:]:
        try:
            problem = next(iter(verify_checkpoint(checkpoint, None, 0)), None)
        except (MetadataError, OSError) as error:
            yield fail("checkpoints", text_of(error))
            continue
        if problem is None:
            yield ok("checkpoints", f"{checkpoint.path.name} is whole")
        else:
            yield warn("checkpoints", str(problem), "delete it if the log or an older checkpoint covers its end")


def _holder(directory: Path) -> Finding:
    kafka = kafka_log_dir(directory)
    locks = [directory / LOCK_FILE, *([] if kafka is None else [kafka / KAFKA_LOCK_FILE])]
    for path in locks:
        if (process := holder_of(path)) is not None:
            return ok("writer", f"process {process} holds {path}", "it can be read meanwhile, not written")
    if not os.access(directory, os.W_OK):
        return ok("writer", "nobody holds it; this user may read it, not write")
    if kafka is not None:
        return ok("writer", f"nobody holds it; it belongs to the Kafka node of {kafka}", "writing takes --force")
    return ok("writer", "nobody holds it; this user may write")


def _disk(directory: Path) -> Finding:
    free = shutil.disk_usage(directory).free
    text = f"{free / (1 << 30):,.1f} GiB free"
    if free < _LEAST_FREE_BYTES:
        return warn("disk", text, "make room before a node or a mirror writes here: it stops when the disk is full")
    return ok("disk", text)
