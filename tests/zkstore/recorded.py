"""Znodes that a real Kafka 3.9 wrote (record_nodes.py), and its descriptions of their entries."""

import json
from collections.abc import Mapping

from tests.zkstore.record_nodes import RECORDED

_WHOLE = json.loads(RECORDED.read_text(encoding="utf-8"))
SECRET: str = _WHOLE["secret"]
DESCRIBED: Mapping[str, list] = _WHOLE["described"]
NODES: Mapping[str, bytes] = {path: text.encode() for path, text in _WHOLE["nodes"].items()}


def below(path: str) -> dict[str, bytes]:
    """Return the children of a path."""
    return {each: data for each, data in NODES.items() if each.rpartition("/")[0] == path}
