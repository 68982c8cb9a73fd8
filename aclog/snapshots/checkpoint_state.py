"""The state of a checkpoint in the quickest way: from its image file, if there is a good one, else from its records."""

from collections.abc import Callable
from pathlib import Path

from aclog.metalog.errors import CheckpointError, DecodeError, NewerKafkaError
from aclog.snapshots.checkpoint_reader import read_checkpoint
from aclog.snapshots.image import Image
from aclog.snapshots.image_reader import read_image_file
from aclog.snapshots.newer_kafka import NewerKafka


def read_state(
    path: Path, *, newer: NewerKafka | None = None, notify: Callable[[str], object] = lambda _: None
) -> Image:
    """Return what `read_checkpoint` returns, and raise what it raises; an image file changes only how long it takes.

    `notify` is told of an image file that is there and was not used.
    """
    try:
        image = read_image_file(path)
    except DecodeError as error:
        notify(f"{error}; it is ignored, and the checkpoint read instead")
    else:
        if image is not None:
            _check_level(path, image, newer or NewerKafka())
            return image
    return read_checkpoint(path, newer=newer)


def _check_level(path: Path, image: Image, newer: NewerKafka) -> None:
    try:
        for record in image.features.records():
            newer.check_feature(record, image.end_offset - 1)
    except NewerKafkaError as error:
        raise CheckpointError(str(error.at(path=str(path)))) from error
