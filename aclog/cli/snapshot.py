"""The `aclog snapshot` commands."""

import secrets
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import numpy as np
from attrs import evolve
from click.exceptions import Exit

from aclog.authorizer.acls_image import AclsImage
from aclog.cli.flags.common import KeepOddRules, Output
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.images import (
    COUNT_COLUMNS,
    Findings,
    RangeWatch,
    Verdict,
    WrittenRules,
    counts,
    odd_rules,
    summary,
    warn_of_each,
)
from aclog.cli.options import Argument, Group, Option
from aclog.metalog.errors import NO_SUCH_PATH, CheckpointError, DecodeError, LogError, MetadataError, printable
from aclog.metalog.filelog.files import (
    CHECKPOINT_SUFFIX,
    IMAGE_SUFFIX,
    CheckpointFile,
    image_path,
    list_checkpoints,
    remove_abandoned,
)
from aclog.metalog.primitives import current_time_ms, random_uuid
from aclog.metalog.records import FeatureLevelRecord
from aclog.snapshots.checkpoints import (
    is_own_directory,
    read_checkpoint,
    read_image_file,
    remove_orphaned_images,
    remove_partial_images,
    rest_of,
    write_checkpoint,
    write_image_file,
)
from aclog.snapshots.deciding_kafka import deciding_kafka
from aclog.snapshots.image import METADATA_VERSION, Image, NewerKafka, Provenance
from aclog.sources.choice import AclsSource, ChosenSource
from aclog.terminal.columns import Column, Row
from aclog.terminal.notices import BYTES, progress
from aclog.terminal.output import note, optional_time_text, say, time_text

# The `aclog snapshot` commands.


app = Group(name="snapshot", help="Write, check and list checkpoint files.", no_args_is_help=True)


@app.command()
def create(
    out: Annotated[
        Path,
        Option("--out", metavar="DIR", help="The directory of the checkpoint; created if missing.", show_default=False),
    ],
    source: SourceFlags,
    keep_odd_rules: KeepOddRules = False,
) -> None:
    """Write the state as a checkpoint, DIR/<end offset>-<epoch>.checkpoint, which Kafka's tools can read.

    An ACL in --acls that CreateAcls would reject is refused, and nothing is
    written. The state of any other source is written unchanged.

    [bold]Examples[/]

      aclog snapshot create --log DIR --as-of 70000 --out /tmp/then
      aclog snapshot create --acls rules.jsonl --out /tmp/rules
    """
    from aclog.cli.images import WrittenRules

    rules = WrittenRules(keep_odd_rules=keep_odd_rules)
    say(create_checkpoint(checked_image(source.choose(), rules), out))
    rules.report()


@app.command()
def verify(
    files: Annotated[list[Path], Argument(metavar="FILE", help="Checkpoint files.", show_default=False)],
    output: AnswerFlags,
) -> None:
    """Check checkpoint files: every CRC, header, footer, name and record.

    Exit codes as of `aclog log verify`: 1 for damage, 2 for records of a newer
    Kafka. Warns of every ACL that no request can create, or that matches no
    principal.

    [bold]Example[/]

      aclog snapshot verify DIR/*.checkpoint
    """
    verdict = verify_checkpoints(files, output.choose())
    if verdict:
        raise Exit(verdict)


@app.command(name="list")
def list_(
    directory: Annotated[Path, Argument(metavar="DIR", help="A directory of checkpoints.", show_default=False)],
    output: AnswerFlags,
) -> None:
    """List the checkpoints of a directory, oldest first: end offset, epoch, time and contents.

    [bold]Example[/]

      aclog snapshot list DIR
    """
    describe_checkpoints(directory, output.choose())


# Image files beside checkpoints, as commands write them and report on them.


def make_image_file(checkpoint: Path, *, bar: bool = True) -> None:
    """Write the image file of a checkpoint, unless it is in a Kafka's directory; a failure is a note.

    The checkpoint is what counts: nothing but time is lost without its image file. `bar`: show a progress bar, of which
    there can be one at a time.
    """
    try:
        if is_own_directory(checkpoint.parent):
            with progress(f"writing {image_path(checkpoint).name}", BYTES) if bar else nullcontext() as advance:
                write_image_file(checkpoint, progress=advance)
    except MetadataError as error:
        note(f"{image_path(checkpoint)}: not written: {error}")


def remove_killed(directory: Path) -> None:
    """Remove the partial checkpoints and image files that killed processes left in a directory, and note each.

    Not in a Kafka's directory, where one of such a name may be Kafka's.

    Raises:
        MetadataError: its files cannot be read.

    """
    if is_own_directory(directory):
        for suffix in (CHECKPOINT_SUFFIX, IMAGE_SUFFIX):
            for path in remove_abandoned(directory, suffix):
                note(f"{path}: removed: it was left unfinished by a process that was killed")


def complete_image_files(directory: Path) -> None:
    """Give the newest checkpoint of a directory its image file, and remove what a dead process left of others.

    The caller holds the directory's lock.
    """
    remove_partial_images(directory)
    remove_orphaned_images(directory)
    for newest in list_checkpoints(directory)[-1:]:
        if image_file_of(newest.path)[0] is None:
            make_image_file(newest.path)


def image_file_of(checkpoint: Path) -> tuple[Image | None, str]:
    """Return the state in a checkpoint's image file, if there is a good one, and what a line on the checkpoint adds."""
    try:
        image = read_image_file(checkpoint)
    except DecodeError as error:
        return None, f", image file ignored: {error.what}"
    return image, "" if image is None else ", image file"


def same_state(one: Image, other: Image) -> bool:
    """Return whether two images hold the same, down to their records."""
    return rest_of(one) == rest_of(other) and _same_acls(one.acls, other.acls)


def _same_acls(one: AclsImage, other: AclsImage) -> bool:
    # Nearly always the bases are the same bytes, which takes a hundredth of the time of their records' digests.
    ours, theirs = (np.frombuffer(acls.index.base.buffer, np.uint8) for acls in (one, other))
    merged = not (one.overlay_size or other.overlay_size)
    return (merged and np.array_equal(ours, theirs)) or one.digest() == other.digest()


# Checkpoint files: create, verify and list them.


_LEAST_METADATA_VERSION = 7
"""3.3-IV3, the oldest metadata.version that Kafka 4 accepts; its tools read no state without one."""


def checked_image(choice: ChosenSource, rules: WrittenRules) -> Image:
    """Return the state of a source; if it is a file of ACLs, `rules` checks and counts them.

    Raises as ChosenSource.image, also with the line of an ACL that is refused.
    """
    if not isinstance(choice.source, AclsSource):
        return choice.image()
    choice.source.check = rules.check
    image = choice.image()
    for rule in image.acls:
        rules.add(rule.acl, choice.origins)
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
    Column(key="timestamp", text=optional_time_text),
    *COUNT_COLUMNS,
    _ABOUT_IMAGE_FILE,
    _PROBLEM,
)
"""Of a listed checkpoint."""


def verify_checkpoints(paths: Sequence[Path], output: Output) -> Verdict:
    """Print a line or a row for each file; return the verdict on all files.

    Raises:
        LogError: a path is not a file.

    """
    tally, watch = Findings(), RangeWatch()
    rows = []
    for path in paths:
        if not path.is_file():
            problem = "not a file: expected a checkpoint" if path.exists() else NO_SUCH_PATH
            raise LogError(f"{path}: {problem}")
        image, row, line = _verified(path, tally)
        rows.append(row)
        if not output.is_rows:
            say(printable(line))
        if image is not None:
            rules = odd_rules(image)
            warn_of_each(watch.watch(rules, deciding_kafka(image, None)), str(path))
    if output.is_rows:
        output.print_rows(VERIFIED_COLUMNS, rows)
    watch.report()
    return tally.verdict


def _verified(path: Path, tally: Findings) -> tuple[Image | None, Row, str]:
    """Return the state of a checkpoint if it can be read, the report on it, and the same as a line."""
    own, newer = Findings(), NewerKafka(strict=False)
    try:
        with progress(f"reading {path.name}"):
            image = _read(path, newer)
    except MetadataError as error:
        tally.add(error)
        own.add(error)
        return None, {"file": str(path), "verdict": own.verdict.name, "problem": str(error)}, str(error)
    own.newer = bool(newer.warnings())
    problem = None
    mapped, about_image_file = image_file_of(path)
    if mapped is not None and not same_state(mapped, image):
        problem = f"{image_path(path)} holds another state: remove it"
        own.damaged, about_image_file = True, f", but {problem}"
    tally.newer |= own.newer
    tally.damaged |= own.damaged
    fields = {**counts(image), "imageFile": None if problem else _image_file(about_image_file), "problem": problem}
    line = f"{path}: whole: {summary(image)}{about_image_file}"
    return image, {"file": str(path), "verdict": own.verdict.name, **fields}, line


def describe_checkpoints(directory: Path, output: Output) -> None:
    """Print a line or a row for each checkpoint of a directory, oldest first.

    Raises:
        LogError: the directory has no checkpoints, or does not exist.

    """
    checkpoints = list_checkpoints(directory)
    if not checkpoints:
        raise LogError(f"{directory}: it has no checkpoints (*.checkpoint)")
    described = map(_described, checkpoints)
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
    fields = {"timestamp": image.timestamp, **counts(image), "imageFile": _image_file(about_image_file)}
    line = f"{name}  {time_text(image.timestamp)}  {summary(image)}{printable(about_image_file)}"
    return {**row, **fields}, line


def _image_file(about: str) -> str | None:
    """Return what a line on a checkpoint adds about its image file, alone."""
    return about.removeprefix(", ") or None


def _read(path: Path, newer: NewerKafka) -> Image:
    image = read_checkpoint(path, newer=newer)
    for warning in newer.warnings():
        note(f"{path}: {warning}")
    return image
