"""Mapping files: JSON, or YAML 1.2 with JSON's values: `NO` and `12:30` are texts."""

from pathlib import Path
from typing import Any

from aclog.console.pdp.errors import BadRequestError
from aclog.console.pdp.json_body import parse_body
from aclog.console.pdp.mapping import Mapped, default_mapping, parse_mapping
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.node import Node
from aclog.sources.formats.yaml_nodes import parse_documents

_MOST_BYTES = 1 << 20


def read_mapping(path: Path | None, *, unreachable: list[str] | None = None) -> Mapped:
    """Return the mapping of a file; without one the default. `unreachable`: as of `parse_mapping`.

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
    return parse_mapping(_value(data, path), str(path), unreachable=unreachable)


def _value(data: bytes, path: Path) -> Any:
    try:
        return parse_body(data)
    except BadRequestError:  # YAML; or what is wrong with the JSON, with its line
        documents = parse_documents(data, str(path), core=True)
    if len(documents) != 1:
        raise ConfigError(f"{path}: expected one document with subject, resource and action")
    return _plain(documents[0])


def _plain(node: Node) -> Any:
    """Return a node as JSON's values."""
    if isinstance(node.value, tuple):
        return [_plain(each) for each in node.value]
    if isinstance(node.value, dict):
        return {key: _plain(each) for key, each in node.value.items()}
    return node.value
