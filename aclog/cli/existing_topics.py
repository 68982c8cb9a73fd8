"""The topics that exist: of a file (`--topics`), or of the states that a command has read."""

from collections.abc import Iterable

from aclog.analysis.existing_names import ExistingNames
from aclog.metalog.errors import ConfigError
from aclog.snapshots.image import Image
from aclog.sources.text_lines import display_name, numbered


def existing_topics(path: str | None, images: Iterable[Image]) -> ExistingNames | None:
    """Return the topics of a file of names, one a line, else those in the logs that were read; None if none tells any.

    Raises:
        ConfigError: a line is not UTF-8; OSError: the file cannot be read.

    """
    if path is not None:
        return ExistingNames.of(_names(path))
    found = ExistingNames.of(name for image in images for name in image.opaque.topic_names())
    return found if len(found) else None


def _names(path: str) -> Iterable[str]:
    for number, line in numbered(path):
        try:
            yield line.decode().strip("\r")
        except UnicodeDecodeError as error:
            where = f"{display_name(path)}: line {number}"
            raise ConfigError(f"{where}: byte {error.start} is not UTF-8: expected the name of a topic") from error
