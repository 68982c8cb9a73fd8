"""The authorizer that a server's `authorizer.class.name` names."""

from importlib import import_module

from aclog.authorizer.interface import Authorizer
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.errors import ConfigError

AUTHORIZER_CLASS_NAME_CONFIG = "authorizer.class.name"

KAFKAS_STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

KAFKAS_ACL_AUTHORIZERS = ("kafka.security.authorizer.AclAuthorizer", "kafka.security.auth.SimpleAclAuthorizer")
"""The authorizer on ZooKeeper, of Kafka 2.4 to 3.9 and of those before."""
_ACL_AUTHORIZER = "aclog.zkstore.authorizer.acl_authorizer.AclAuthorizer"

_RENAMED = {
    "authorizer.standard.StandardAuthorizer": "aclog.authorizer.standard.StandardAuthorizer",
    "zkstore.acl_authorizer.AclAuthorizer": _ACL_AUTHORIZER,
}
"""Class names of release 0.1, which server.properties may still hold."""

ACL_AUTHORIZERS = frozenset({*KAFKAS_ACL_AUTHORIZERS, _ACL_AUTHORIZER, "zkstore.acl_authorizer.AclAuthorizer"})
"""All names of that class."""


def load_authorizer_class(name: str) -> type[Authorizer]:
    """The class of that name: Kafka's own are ours, others are `package.module.Class` in Python.

    `package.module:Class` is the same. The caller makes an instance and calls its `configure`.

    Raises:
        ConfigError: no such module or class, importing it failed, or it is no Authorizer.

    """
    name = name.strip()
    if name == KAFKAS_STANDARD_AUTHORIZER:
        return StandardAuthorizer
    if name in KAFKAS_ACL_AUTHORIZERS:
        name = _ACL_AUTHORIZER  # imported here only: it is above this package, and needs kazoo
    name = name.replace(":", ".", 1)
    module_name, _, class_name = _RENAMED.get(name, name).rpartition(".")
    if not module_name or not class_name:
        raise _cannot(name, "expected package.module.Class, or Kafka's StandardAuthorizer")
    try:
        found = getattr(import_module(module_name), class_name, None)
    except Exception as e:
        # A plugin's module may fail in any way while it is imported.
        raise _cannot(name, f"importing {module_name} failed: {type(e).__name__}: {_one_line(e)}") from e
    if not (isinstance(found, type) and issubclass(found, Authorizer)):
        what = f"{module_name} has no {class_name}" if found is None else "it is no subclass of Authorizer"
        raise _cannot(name, what)
    return found


def _cannot(name: str, why: str) -> ConfigError:
    return ConfigError(f"{AUTHORIZER_CLASS_NAME_CONFIG} {name!r}: {why}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
