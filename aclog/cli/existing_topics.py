"""The topics that exist: of a file (`--topics`), or of the states that a command has read."""

from collections.abc import Iterable

from aclog.analysis.regions.existing_names import ExistingNames
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.snapshots.image import Image
from aclog.sources.choice import ChosenSource
from aclog.sources.text_lines import display_name, numbered
from aclog.terminal.notices import note


def existing_topics(
    path: str | None, images: Iterable[Image], sources: Iterable[ChosenSource] = ()
) -> ExistingNames | None:
    """Return the topics of a file of names, one a line, else those of the states and clusters that were read.

    None if nothing tells any.

    Raises:
        ConfigError: a line is not UTF-8; OSError: the file cannot be read.

    """
    if path is not None:
        return ExistingNames.of(_names(path))
    found = {name for image in images for name in image.opaque.topic_names()}
    for source in sources:
        try:
            found.update(source.topic_names())
        except MetadataError as error:  # what is counted matters less than what is compared
            note(f"{source.source.name}: topics are not counted: {error}")
    return ExistingNames.of(found) if found else None


def _names(path: str) -> Iterable[str]:
    for number, line in numbered(path):
        try:
            yield line.decode().strip("\r")
        except UnicodeDecodeError as error:
            where = f"{display_name(path)}: line {number}"
            raise ConfigError(f"{where}: byte {error.start} is not UTF-8: expected the name of a topic") from error
