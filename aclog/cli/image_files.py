"""Image files beside checkpoints, as commands write them and report on them."""

from contextlib import nullcontext
from pathlib import Path

import numpy as np

from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.errors import DecodeError, MetadataError
from aclog.metalog.filelog.file_names import CHECKPOINT_SUFFIX, IMAGE_SUFFIX, image_path, list_checkpoints
from aclog.metalog.filelog.partial_files import remove_abandoned
from aclog.snapshots.image import Image
from aclog.snapshots.image_reader import read_image_file
from aclog.snapshots.image_writer import (
    is_own_directory,
    remove_orphaned_images,
    remove_partial_images,
    rest_of,
    write_image_file,
)
from aclog.terminal.notices import note
from aclog.terminal.progress import BYTES, progress


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
