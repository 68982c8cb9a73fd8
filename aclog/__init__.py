"""aclog: Apache Kafka's access control as an event-sourced system.

```python
import aclog
authorizer = aclog.open_log("backup/__cluster_metadata-0").image().authorizer(super_users="User:admin")
authorizer.check("User:alice", "READ", aclog.topic("orders"), host="10.0.0.1").allowed
```

See docs/library.md. The names below are imported on first use, so that the command line starts quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aclog.analysis.comparison import Comparison
    from aclog.authorizer.acl import (
        AclOperation,
        AclPermissionType,
        PatternType,
        ResourcePattern,
        ResourceType,
        StandardAcl,
        StandardAclWithId,
    )
    from aclog.authorizer.errors import InvalidRequestError
    from aclog.authorizer.origin import FileOrigin
    from aclog.authorizer.resources import cluster, delegation_token, group, topic, transactional_id, user
    from aclog.library.answer import Answer
    from aclog.library.authorizer import Authorizer
    from aclog.library.image import Image
    from aclog.library.log import Log
    from aclog.library.opening import open_acls, open_log
    from aclog.metalog.errors import (
        CheckpointError,
        ConfigError,
        DecodeError,
        LogError,
        MetadataError,
        ReplayError,
        StaleError,
    )

_HOMES = {
    "aclog.library.answer": ("Answer",),
    "aclog.library.authorizer": ("Authorizer",),
    "aclog.library.image": ("Image",),
    "aclog.library.log": ("Log",),
    "aclog.library.opening": ("open_acls", "open_log"),
    "aclog.authorizer.origin": ("FileOrigin",),
    "aclog.analysis.comparison": ("Comparison",),
    "aclog.authorizer.resources": ("cluster", "delegation_token", "group", "topic", "transactional_id", "user"),
    "aclog.authorizer.acl": (
        "AclOperation",
        "AclPermissionType",
        "PatternType",
        "ResourcePattern",
        "ResourceType",
        "StandardAcl",
        "StandardAclWithId",
    ),
    "aclog.authorizer.errors": ("InvalidRequestError",),
    "aclog.metalog.errors": (
        "CheckpointError",
        "ConfigError",
        "DecodeError",
        "LogError",
        "MetadataError",
        "ReplayError",
        "StaleError",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AclOperation",
    "AclPermissionType",
    "Answer",
    "Authorizer",
    "CheckpointError",
    "Comparison",
    "ConfigError",
    "DecodeError",
    "FileOrigin",
    "Image",
    "InvalidRequestError",
    "Log",
    "LogError",
    "MetadataError",
    "PatternType",
    "ReplayError",
    "ResourcePattern",
    "ResourceType",
    "StaleError",
    "StandardAcl",
    "StandardAclWithId",
    "cluster",
    "delegation_token",
    "group",
    "open_acls",
    "open_log",
    "topic",
    "transactional_id",
    "user",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
