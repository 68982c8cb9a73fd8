"""aclog.usage.index: what is accepted."""

import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog.meta_properties import MetaProperties
from aclog.server.node import Node
from tests.nodes.config.test_server_properties import error_of, parsed
from tests.support.nodes.node_properties import COMBINED

KEY = "aclog.usage.index"
STANDARD = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}


def test_a_directory():
    assert parsed(COMBINED, STANDARD | {KEY: "/var/lib/usage"}).usage_index == Path("/var/lib/usage")
    assert parsed(COMBINED, STANDARD).usage_index is None


def test_what_is_refused():
    assert "expected a directory" in error_of(COMBINED, STANDARD | {KEY: ""})
    assert "a URI: expected a directory of this machine" in error_of(COMBINED, STANDARD | {KEY: "s3://bucket/usage"})
    assert "nothing is authorized" in error_of(COMBINED, {"authorizer.class.name": "", KEY: "/var/lib/usage"})


def test_an_authorizer_that_does_not_tell_of_its_decisions():
    name = "tests.nodes.test_authorizer_of_a_node.Recorder"
    config = parsed(COMBINED, {"authorizer.class.name": name, KEY: "/var/lib/usage"})
    with pytest.raises(ConfigError, match="Recorder does not report its decisions: expected the StandardAuthorizer"):
        Node(config=config, meta=MetaProperties(cluster_id="c2FtZS1zY3JpcHQtMDAwMQ", node_id=1, directory_id=None))


@pytest.mark.parametrize("error", [ModuleNotFoundError("No module named 'pyarrow'"), ImportError("libarrow.so: no")])
def test_a_node_without_the_libraries_of_the_index_names_the_key(monkeypatch, error):
    """Also where the library is installed, but cannot be loaded."""

    def find_spec(name, *_arguments):
        if name == "pyarrow":
            raise error

    for name in ("pyarrow", "aclog.server.usage_index", "aclog.server.usage_keeping"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [SimpleNamespace(find_spec=find_spec), *sys.meta_path])
    with pytest.raises(ConfigError, match=f"^{KEY}: {error}: .*install"):
        import_module("aclog.server.usage_keeping")
