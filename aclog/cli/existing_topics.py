"""The topics that exist: of a file (`--topics`), or of the states that a command has read."""

from collections.abc import Iterable

from aclog.analysis.regions.existing_names import ExistingNames
from aclog.metalog.errors import MetadataError
from aclog.snapshots.image import Image
from aclog.sources.choice import ChosenSource
from aclog.sources.name_file import NameFile
from aclog.terminal.notices import note


def existing_topics(
    file: NameFile | None, images: Iterable[Image], sources: Iterable[ChosenSource] = ()
) -> ExistingNames | None:
    """Return the topics of a file of names, else those of the states and clusters that were read.

    None if nothing tells any.

    Raises:
        ConfigError: a line is not UTF-8; OSError: the file cannot be read.

    """
    if file is not None:
        return ExistingNames.of(file.names())
    found = {name for image in images for name in image.opaque.topic_names()}
    for source in sources:
        try:
            found.update(source.topic_names())
        except MetadataError as error:  # what is counted matters less than what is compared
            note(f"{source.source.name}: topics are not counted: {error}")
    return ExistingNames.of(found) if found else None
