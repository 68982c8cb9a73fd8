"""Apache Kafka's access control as an event-sourced system. All of it is in docs/library.md.

    >>> log = aclog.open_log("backup/__cluster_metadata-0")
    >>> image = log.image()                        # or image(as_of="yesterday 18:00"), image(as_of=70_000)
    >>> authorizer = image.authorizer(super_users="User:admin")
    >>> answer = authorizer.check("User:alice", "READ", "orders", host="10.0.0.1")
    >>> print(answer.allowed, answer.rule, answer.explain())

To open (help(aclog.open_log) has the arguments)
    open_log    the directory of a log, a checkpoint, a file of ACLs, or a running cluster
    open_acls   files of GitOps tools, also as of a git commit

What it gives
    Log         image(as_of), history(), watch(), watch_async(), age, lag, notes, close()
    Image       all ACLs at one offset: acls(...), authorizer(...), diff(other), to_pandas()
    Authorizer  check(principal, operation, resource), check_any(...), diff(other), who_can(...), what_can(...)
    Grants      of who_can and what_can: a sequence of Grant (principals, for_anyone, rules), premises, to_pandas()
    Answer      true if allowed: allowed, rule, acl, explain(), to_dict()
    Rule        an ACL and its id: principal, operation, resource_name, ..., to_dict()
    Change      a rule that was added or removed (ChangeKind): offset, timestamp, kind, rule
    Rows        rules or changes, one by one or as a table: to_pandas(), to_arrow(), to_dicts()
    Comparison  access gained and lost: text_lines(), json_lines(), differences, to_pandas()
    Report      lint, test, review, plan, diff, check, acl_usage, unused, denied, suggest, simulate, sync, migrate

Resources
    topic(name), group(name), cluster(), transactional_id(name), delegation_token(id), user(principal)

Values, as Kafka names them
    StandardAclWithId (a Rule), StandardAcl, ResourcePattern, FileOrigin; and the names
    AclOperation, AclPermissionType, PatternType, ResourceType

Errors: each is a MetadataError with one line: the problem, its location, and the expected input
    ConfigError, InvalidRequestError, LogError, StaleError, CheckpointError, DecodeError, ReplayError
"""

# Each name is imported when it is first used, so that the command line starts quickly. There is no __all__ at run time:
# help(aclog) would then show every class whole, a thousand lines instead of the table above.

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aclog.analysis.comparison import Comparison
    from aclog.authorizer.acl import FileOrigin, ResourcePattern, StandardAcl, StandardAclWithId
    from aclog.authorizer.acl import StandardAclWithId as Rule
    from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
    from aclog.authorizer.interface import InvalidRequestError
    from aclog.authorizer.settings import cluster, delegation_token, group, topic, transactional_id, user
    from aclog.library.authorizer import Answer, Authorizer, Grant, Grants, Rows
    from aclog.library.image import Image
    from aclog.library.log import Log, open_acls, open_log
    from aclog.library.reports import Report, check, diff, lint, migrate, plan, review, sync, test
    from aclog.library.usage import acl_usage, denied, simulate, suggest, unused
    from aclog.metalog.errors import (
        CheckpointError,
        ConfigError,
        DecodeError,
        LogError,
        MetadataError,
        ReplayError,
        StaleError,
    )
    from aclog.snapshots.history import Change, ChangeKind

    __version__: str

    __all__ = [
        "AclOperation",
        "AclPermissionType",
        "Answer",
        "Authorizer",
        "Change",
        "ChangeKind",
        "CheckpointError",
        "Comparison",
        "ConfigError",
        "DecodeError",
        "FileOrigin",
        "Grant",
        "Grants",
        "Image",
        "InvalidRequestError",
        "Log",
        "LogError",
        "MetadataError",
        "PatternType",
        "ReplayError",
        "Report",
        "ResourcePattern",
        "ResourceType",
        "Rows",
        "Rule",
        "StaleError",
        "StandardAcl",
        "StandardAclWithId",
        "__version__",
        "acl_usage",
        "check",
        "cluster",
        "delegation_token",
        "denied",
        "diff",
        "group",
        "lint",
        "migrate",
        "open_acls",
        "open_log",
        "plan",
        "review",
        "simulate",
        "suggest",
        "sync",
        "test",
        "topic",
        "transactional_id",
        "unused",
        "user",
    ]

_HOME_OF = {
    "AclOperation": "aclog.authorizer.acl",
    "AclPermissionType": "aclog.authorizer.acl",
    "Answer": "aclog.library.authorizer",
    "Authorizer": "aclog.library.authorizer",
    "Change": "aclog.snapshots.history",
    "ChangeKind": "aclog.snapshots.history",
    "CheckpointError": "aclog.metalog.errors",
    "Comparison": "aclog.analysis.comparison",
    "ConfigError": "aclog.metalog.errors",
    "DecodeError": "aclog.metalog.errors",
    "FileOrigin": "aclog.authorizer.acl",
    "Grant": "aclog.library.authorizer",
    "Grants": "aclog.library.authorizer",
    "Image": "aclog.library.image",
    "InvalidRequestError": "aclog.authorizer.interface",
    "Log": "aclog.library.log",
    "LogError": "aclog.metalog.errors",
    "MetadataError": "aclog.metalog.errors",
    "PatternType": "aclog.authorizer.acl",
    "ReplayError": "aclog.metalog.errors",
    "Report": "aclog.library.reports",
    "ResourcePattern": "aclog.authorizer.acl",
    "ResourceType": "aclog.authorizer.acl",
    "Rows": "aclog.library.authorizer",
    "StaleError": "aclog.metalog.errors",
    "StandardAcl": "aclog.authorizer.acl",
    "StandardAclWithId": "aclog.authorizer.acl",
    "acl_usage": "aclog.library.usage",
    "check": "aclog.library.reports",
    "cluster": "aclog.authorizer.settings",
    "delegation_token": "aclog.authorizer.settings",
    "denied": "aclog.library.usage",
    "diff": "aclog.library.reports",
    "group": "aclog.authorizer.settings",
    "lint": "aclog.library.reports",
    "migrate": "aclog.library.reports",
    "open_acls": "aclog.library.log",
    "open_log": "aclog.library.log",
    "plan": "aclog.library.reports",
    "review": "aclog.library.reports",
    "simulate": "aclog.library.usage",
    "suggest": "aclog.library.usage",
    "sync": "aclog.library.reports",
    "test": "aclog.library.reports",
    "topic": "aclog.authorizer.settings",
    "transactional_id": "aclog.authorizer.settings",
    "unused": "aclog.library.usage",
    "user": "aclog.authorizer.settings",
}
"""The public names, each with the module that defines it: a module is imported when one of its names is used."""
_ALIASES = {"Rule": "StandardAclWithId"}


def __getattr__(name: str) -> Any:
    name = _ALIASES.get(name, name)
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415  # slow to import

        return version("aclog")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_HOME_OF, *_ALIASES, "__version__"])
