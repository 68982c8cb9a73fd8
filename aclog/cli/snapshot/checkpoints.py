"""Checkpoint files: create, verify and list them."""

import secrets
from collections.abc import Sequence
from pathlib import Path

from attrs import evolve

from aclog.authorizer.acls_image import AclsImage
from aclog.cli.flags.output import Output
from aclog.cli.image_files import image_file_of, make_image_file, remove_killed, same_state
from aclog.cli.image_report import COUNT_COLUMNS, RangeWatch, counts, summary
from aclog.cli.rule_warnings import WrittenRules, warn_of_each
from aclog.cli.verdict import Findings, Verdict
from aclog.metalog.clock import current_time_ms
from aclog.metalog.errors import CheckpointError, LogError, MetadataError
from aclog.metalog.filelog.file_names import CheckpointFile, image_path, list_checkpoints
from aclog.metalog.printable import printable
from aclog.metalog.records import FeatureLevelRecord
from aclog.metalog.uuids import random_uuid
from aclog.snapshots.checkpoint_reader import read_checkpoint
from aclog.snapshots.checkpoint_writer import write_checkpoint
from aclog.snapshots.deciding_kafka import deciding_kafka
from aclog.snapshots.features import METADATA_VERSION
from aclog.snapshots.image import Image
from aclog.snapshots.newer_kafka import NewerKafka
from aclog.snapshots.provenance import Provenance
from aclog.sources.acls_source import AclsSource
from aclog.sources.choice import ChosenSource
from aclog.terminal.columns import Column, Row
from aclog.terminal.notices import note
from aclog.terminal.output import say
from aclog.terminal.progress import BYTES, progress, tracked
from aclog.terminal.timestamps import time_text

_LEAST_METADATA_VERSION = 7
"""3.3-IV3, the oldest metadata.version that Kafka 4 accepts; its tools read no state without one."""


def checked_image(chosen: ChosenSource, rules: WrittenRules) -> Image:
    """Return the state of a source; if it is a file of ACLs, `rules` checks and counts them.

    Raises as ChosenSource.image, also with the line of an ACL that is refused.
    """
    if not isinstance(chosen.source, AclsSource):
        return chosen.image()
    chosen.source.check = rules.check
    image = chosen.image()
    for rule in image.acls:
        rules.add(rule.acl, chosen.origins)
    return image


def create_checkpoint(image: Image, directory: Path) -> Path:
    """Write the state as a checkpoint into a directory, which is created if missing, and its image file beside it.

    ACLs without an id get one.

    Raises:
        CheckpointError, LogError: the state cannot be a checkpoint, or the file cannot be written.
        OSError: the directory cannot be created.

    """
    directory.mkdir(parents=True, exist_ok=True)
    remove_killed(directory)
    if image.scram.keyless:
        note(f"{len(image.scram)} SCRAM credentials are left out: their source has no keys")
    # The state of a log has an end offset; one of a file of ACLs or an admin API has none, nor the records Kafka needs.
    from_a_file = len(image.acls) and not image.end_offset
    with progress("writing the checkpoint", BYTES) as advance:
        written = _as_if_logged(image) if from_a_file else image
        path = write_checkpoint(written, directory, progress=lambda size: advance(size, None))
    make_image_file(path)
    return path


def _as_if_logged(image: Image) -> Image:
    """Return the ACLs of a file as the state of a log: a metadata.version, which Kafka requires, then the ACLs."""
    features = image.features.apply([FeatureLevelRecord(name=METADATA_VERSION, feature_level=_LEAST_METADATA_VERSION)])
    acls = _with_ids(image.acls)
    now = current_time_ms()
    return Image(
        acls=acls,
        features=features,
        provenance=Provenance(end_offset=len(acls) + len(features), epoch=1, timestamp=now),
    )


def _with_ids(acls: AclsImage) -> AclsImage:
    if all(rule.id is not None for rule in acls):
        return acls
    return AclsImage.from_acls(evolve(rule, id=rule.id or random_uuid(secrets.token_bytes)) for rule in acls)


_FILE = Column(key="file", cut=True)
_ABOUT_IMAGE_FILE = Column(key="imageFile", title="IMAGE FILE", spare=True)
_PROBLEM = Column(key="problem", flows=True)
VERIFIED_COLUMNS = (Column(key="verdict"), _FILE, *COUNT_COLUMNS, _ABOUT_IMAGE_FILE, _PROBLEM)
"""Of a verified checkpoint."""
LISTED_COLUMNS = (
    _FILE,
    Column(key="endOffset", title="END OFFSET"),
    Column(key="epoch"),
    Column(key="timestamp", text=lambda time: "" if time is None else time_text(time)),
    *COUNT_COLUMNS,
    _ABOUT_IMAGE_FILE,
    _PROBLEM,
)
"""Of a listed checkpoint."""


def verify_checkpoints(paths: Sequence[Path], output: Output) -> Verdict:
    """Print a line or a row for each file; return the verdict on all of them.

    Raises:
        LogError: a path is not a file.

    """
    found, watch = Findings(), RangeWatch()
    rows = []
    for path in paths:
        if not path.is_file():
            raise LogError(f"{path}: not a file: expected a checkpoint")
        image, row, line = _verified(path, found)
        rows.append(row)
        if not output.is_rows:
            say(printable(line))
        if image is not None:
            rules = tracked(image.acls, "looking for odd rules", "rules", len(image.acls))
            warn_of_each(watch.watch(rules, deciding_kafka(image, None)), str(path))
    if output.is_rows:
        output.print_rows(VERIFIED_COLUMNS, rows)
    watch.report()
    return found.verdict


def _verified(path: Path, found: Findings) -> tuple[Image | None, Row, str]:
    """Return the state of a checkpoint if it can be read, what is told of it, and the same as a line."""
    own, newer = Findings(), NewerKafka(strict=False)
    try:
        with progress(f"reading {path.name}"):
            image = _read(path, newer)
    except MetadataError as error:
        found.add(error)
        own.add(error)
        return None, {"file": str(path), "verdict": own.verdict.name, "problem": str(error)}, str(error)
    own.newer = bool(newer.warnings())
    problem = None
    mapped, about_image_file = image_file_of(path)
    if mapped is not None and not same_state(mapped, image):
        problem = f"{image_path(path)} holds another state: remove it"
        own.damaged, about_image_file = True, f", but {problem}"
    found.newer |= own.newer
    found.damaged |= own.damaged
    told = {**counts(image), "imageFile": None if problem else _image_file(about_image_file), "problem": problem}
    line = f"{path}: whole: {summary(image)}{about_image_file}"
    return image, {"file": str(path), "verdict": own.verdict.name, **told}, line


def describe_checkpoints(directory: Path, output: Output) -> None:
    """Print a line or a row for each checkpoint of a directory, oldest first.

    Raises:
        LogError: the directory has no checkpoints, or does not exist.

    """
    found = list_checkpoints(directory)
    if not found:
        raise LogError(f"{directory}: it has no checkpoints (*.checkpoint)")
    described = map(_described, found)
    if output.is_rows:
        output.print_rows(LISTED_COLUMNS, (row for row, _ in described))
    else:
        for _, line in described:
            say(line)


def _described(checkpoint: CheckpointFile) -> tuple[Row, str]:
    """Return what is listed of a checkpoint, and the same as a line."""
    name = checkpoint.path.name
    image, about_image_file = image_file_of(checkpoint.path)
    row = {"file": name, "endOffset": checkpoint.end_offset, "epoch": checkpoint.epoch}
    try:
        image = image or _read(checkpoint.path, NewerKafka(strict=False))
    except CheckpointError as error:
        return {**row, "problem": str(error)}, printable(f"{name}  damaged: {error}")
    told = {"timestamp": image.timestamp, **counts(image), "imageFile": _image_file(about_image_file)}
    line = f"{name}  {time_text(image.timestamp)}  {summary(image)}{printable(about_image_file)}"
    return {**row, **told}, line


def _image_file(about: str) -> str | None:
    """Return what a line on a checkpoint adds about its image file, alone."""
    return about.removeprefix(", ") or None


def _read(path: Path, newer: NewerKafka) -> Image:
    image = read_checkpoint(path, newer=newer)
    for warning in newer.warnings():
        note(f"{path}: {warning}")
    return image
