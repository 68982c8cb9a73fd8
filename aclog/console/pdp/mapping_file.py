"""Mapping files: JSON, or YAML."""

from pathlib import Path

import yaml

from aclog.console.pdp.mapping import Mapped, default_mapping, parse_mapping
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.yaml_nodes import parse_documents

_MOST_BYTES = 1 << 20


def read_mapping(path: Path | None) -> Mapped:
    """Return the mapping of a file; without one the default.

    Raises:
        ConfigError: it is too large, or no mapping; with its place in the file if that is known.
        OSError: the file cannot be read.

    """
    if path is None:
        return default_mapping()
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"{path}: larger than {_MOST_BYTES:,} bytes: no mapping")
    documents = parse_documents(data, str(path))  # refuses keys that stand twice, and what is nested too deeply
    if len(documents) != 1:
        raise ConfigError(f"{path}: expected one document with subject, resource and action")
    return parse_mapping(yaml.load(data, Loader=yaml.CSafeLoader), str(path))  # a safe loader
