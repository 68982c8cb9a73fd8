"""The Kafka that decides, as settings files name it: `kafka-version = "4.4.0"`, or `cidr = true` from 4.4 on."""

from aclog.authorizer.generation import named_generation
from aclog.metalog.errors import ConfigError
from aclog.sources.repository.toml_document import key_text
from aclog.sources.repository.toml_table import TomlTable

VERSION, RANGES = "kafka-version", "cidr"


def ranges_of(table: TomlTable) -> bool | None:
    """Return whether the Kafka that decides takes a host with a slash for a range; None if the table does not say.

    Raises:
        ConfigError: no version of a known Kafka, or the two keys differ, with file and line.

    """
    ranges, path = table.flag(RANGES), (*table.path, VERSION)
    try:
        named = named_generation(
            table.text(VERSION),
            ranges,
            version_name=key_text(path),
            ranges_text=f"{RANGES} = {str(ranges).lower()}",
        )
    except ConfigError as error:
        raise ConfigError(f"{table.document.place(path)}: {error}") from None
    return None if named is None else named.has_ranges
