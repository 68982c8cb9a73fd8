"""The Kafka that decides, as settings files name it: `kafka-version = "4.4.0"`, or `cidr = true` from 4.4 on."""

from aclog.authorizer.generation import generation_of_version
from aclog.metalog.errors import ConfigError
from aclog.sources.repository.toml_table import TomlTable

VERSION, RANGES = "kafka-version", "cidr"


def ranges_of(table: TomlTable) -> bool | None:
    """Return whether the Kafka that decides takes a host with a slash for a range; None if the table does not say.

    Raises:
        ConfigError: no version of a known Kafka, or the two keys differ, with file and line.

    """
    ranges, version = table.flag(RANGES), table.text(VERSION)
    if version is None:
        return ranges
    try:
        named = generation_of_version(version).has_ranges
    except ConfigError as error:
        raise table.error(VERSION, str(error)) from None
    if ranges is not None and ranges is not named:
        raise table.error(RANGES, f"{str(ranges).lower()}, and {VERSION} is {version}: expected one of them")
    return named
