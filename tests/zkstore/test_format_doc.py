"""The znode examples in docs/format.md round-trip."""

import re
from pathlib import Path

import pytest

from aclog.zookeeper.znodes import LITERAL_TREE, PREFIXED_TREE, decode_acls, decode_event, encode_acls, encode_event

PAGE = (Path(__file__).parents[2] / "docs" / "format.md").read_text()


def example(kind):
    (text,) = re.findall(rf"```{kind}\n(.*?)\n```", PAGE, re.DOTALL)
    return text.encode()


def test_rules():
    data = example("zk-rules")
    assert encode_acls(decode_acls(data, path="docs/format.md")) == data


@pytest.mark.parametrize(("kind", "tree"), [("zk-event", LITERAL_TREE), ("zk-extended-event", PREFIXED_TREE)])
def test_events(kind, tree):
    data = example(kind)
    assert encode_event(decode_event(tree, data, path="docs/format.md")) == data
