"""The class that `authorizer.class.name` names."""

import sys
from types import ModuleType

import pytest

from aclog.authorizer.interface import Authorizer
from aclog.authorizer.standard import (
    KAFKAS_ACL_AUTHORIZERS,
    KAFKAS_STANDARD_AUTHORIZER,
    StandardAuthorizer,
    load_authorizer_class,
)
from aclog.metalog.errors import ConfigError
from aclog.zookeeper.authorizer import AclAuthorizer


class Mine(StandardAuthorizer):
    pass


class Other:
    pass


@pytest.fixture
def plugin(monkeypatch):
    module = ModuleType("a_plugin")
    module.Mine, module.Other, module.text = Mine, Other, "x"
    monkeypatch.setitem(sys.modules, "a_plugin", module)


@pytest.mark.parametrize(
    "name",
    [KAFKAS_STANDARD_AUTHORIZER, f" {KAFKAS_STANDARD_AUTHORIZER} ", "aclog.authorizer.standard.StandardAuthorizer"],
)
def test_kafkas_authorizer_is_ours(name):
    assert load_authorizer_class(name) is StandardAuthorizer


@pytest.mark.parametrize("name", [*KAFKAS_ACL_AUTHORIZERS, "aclog.zookeeper.authorizer.AclAuthorizer"])
def test_kafkas_authorizer_on_zookeeper_is_ours(name):
    assert load_authorizer_class(name) is AclAuthorizer


@pytest.mark.parametrize("name", ["a_plugin.Mine", "a_plugin:Mine"])
def test_a_class_of_somebody_else(plugin, name):
    assert load_authorizer_class(name) is Mine
    assert issubclass(Mine, Authorizer)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "expected package.module.Class"),
        ("Mine", "expected package.module.Class"),
        (":Mine", "expected package.module.Class"),
        ("a_plugin.", "expected package.module.Class"),
        ("a_plugin.Missing", "a_plugin has no Missing"),
        ("a_plugin.Other", "not a subclass of Authorizer"),
        ("a_plugin.text", "not a subclass of Authorizer"),
        ("no_such_module.Mine", "importing no_such_module failed: ModuleNotFoundError"),
        ("..Mine", "importing"),
        ("kafka.security.authorizer.OtherAuthorizer", "importing kafka"),
    ],
)
def test_not_an_authorizer(plugin, name, why):
    with pytest.raises(ConfigError, match=r"^authorizer\.class\.name ") as e:
        load_authorizer_class(name)
    assert why in str(e.value)
    assert "\n" not in str(e.value)


def test_a_plugin_that_cannot_be_imported(monkeypatch, tmp_path):
    (tmp_path / "broken_plugin.py").write_text("raise RuntimeError('two\\nlines')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=r"importing broken_plugin failed: RuntimeError: two lines$"):
        load_authorizer_class("broken_plugin.Thing")
