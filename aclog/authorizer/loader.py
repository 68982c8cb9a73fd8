"""Loading of the authorizer class that `authorizer.class.name` names."""

from importlib import import_module

from aclog.authorizer.interface import Authorizer
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.errors import ConfigError

AUTHORIZER_CLASS_NAME_CONFIG = "authorizer.class.name"

KAFKAS_STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

KAFKAS_ACL_AUTHORIZERS = ("kafka.security.authorizer.AclAuthorizer", "kafka.security.auth.SimpleAclAuthorizer")
"""The authorizer with ACLs in ZooKeeper: of Kafka 2.4 to 3.9, and of earlier versions."""
_ACL_AUTHORIZER = "aclog.zkstore.authorizer.acl_authorizer.AclAuthorizer"

_OLD_ACL_AUTHORIZER = "zkstore.acl_authorizer.AclAuthorizer"

_RENAMED = {
    "authorizer.standard.StandardAuthorizer": "aclog.authorizer.standard.StandardAuthorizer",
    _OLD_ACL_AUTHORIZER: _ACL_AUTHORIZER,
}
"""Class names of release 0.1, which may still be in a server.properties."""

ACL_AUTHORIZERS = frozenset({*KAFKAS_ACL_AUTHORIZERS, _ACL_AUTHORIZER, _OLD_ACL_AUTHORIZER})
"""All names of that class."""


def load_authorizer_class(name: str) -> type[Authorizer]:
    """Return the class with this name: ours for the names of Kafka's own, else the Python class `package.module.Class`.

    `package.module:Class` is accepted, too. The caller creates an instance and calls its `configure`.

    Raises:
        ConfigError: there is no such module or class, its import failed, or it is not an Authorizer.

    """
    name = name.strip()
    if name == KAFKAS_STANDARD_AUTHORIZER:
        return StandardAuthorizer
    if name in KAFKAS_ACL_AUTHORIZERS:
        name = _ACL_AUTHORIZER  # imported by name only: it is in a package above this one and needs kazoo
    name = name.replace(":", ".", 1)
    module_name, _, class_name = _RENAMED.get(name, name).rpartition(".")
    if not module_name or not class_name:
        raise _cannot(name, "expected package.module.Class, or Kafka's StandardAuthorizer")
    try:
        found = getattr(import_module(module_name), class_name, None)
    except Exception as e:
        # Importing a plugin runs its code, which may raise anything.
        raise _cannot(name, f"importing {module_name} failed: {type(e).__name__}: {_one_line(e)}") from e
    if not (isinstance(found, type) and issubclass(found, Authorizer)):
        what = f"{module_name} has no {class_name}" if found is None else "it is not a subclass of Authorizer"
        raise _cannot(name, what)
    return found


def _cannot(name: str, why: str) -> ConfigError:
    return ConfigError(f"{AUTHORIZER_CLASS_NAME_CONFIG} {name!r}: {why}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
