"""Tasks of Ansible with the modules `kafka_acl` and `kafka_acls` of ansible-kafka-admin, and their ACLs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from aclog.authorizer.codes import WILDCARD, AclOperation, PatternType, ResourceType
from aclog.metalog.values import frozen
from aclog.sources.formats.nodes import Node
from aclog.sources.formats.rule import PERMISSIONS, LocatedRule, ReadContext, SourceFile, Statement, choice
from aclog.sources.formats.unread import UnreadKind
from aclog.sources.formats.verdicts import rule_in

# The ACLs of one task (module_utils/kafka_lib_acl.py, kafka_acl.py).


_MODULE = re.compile(r"(?:[\w-]+\.)*(kafka_acls?)\Z")
"""By its own name, or that in a collection."""
_TYPES = MappingProxyType(
    {
        "topic": ResourceType.TOPIC,
        "group": ResourceType.GROUP,
        "cluster": ResourceType.CLUSTER,
        "broker": ResourceType.CLUSTER,
        "transactional_id": ResourceType.TRANSACTIONAL_ID,
        "delegation_token": ResourceType.DELEGATION_TOKEN,
    }
)
_PATTERNS = MappingProxyType({"literal": PatternType.LITERAL, "prefixed": PatternType.PREFIXED})
_OPERATIONS = MappingProxyType(
    {each.name.lower(): each for each in AclOperation if AclOperation.ANY < each <= AclOperation.IDEMPOTENT_WRITE}
)
_ACL_KEYS = (
    *("name", "state", "acl_resource_type", "acl_principal", "acl_operation", "acl_operations", "acl_pattern_type"),
    *("acl_permission", "acl_host"),
)
_TEMPLATE = re.compile(r"\{\{|\{%|\{#")
_CONDITIONS = ("when", "loop", "until", "delegate_to", "check_mode", "args", "vars")
"""Keys of a task that may change what it does, besides those that begin with `with_`."""
_INNER = ("block", "rescue", "always")
_SECTIONS = ("tasks", "pre_tasks", "post_tasks", "handlers")


@frozen
class _Task:
    node: Node
    module: str
    """As the task names it."""
    is_conditional: bool
    """Whether it is in a block or a play that may not run as it is."""

    def unread(self, context: ReadContext, why: str) -> None:
        context.not_read(
            UnreadKind.DOCUMENT, self.node, f"a task of Ansible {why}", name=self.module.rpartition(".")[2]
        )


def _rules(task: _Task, context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of a task; one that is not literal is reported as unread.

    Raises:
        ConfigError: an ACL that the module refuses.

    """
    body = task.node.get(task.module)
    keys = task.node.mapping("a task")
    if task.is_conditional or any(key in keys for key in _CONDITIONS) or _is_loop(keys):
        task.unread(context, "that runs on a condition, in a loop, or with values from elsewhere")
        return
    if body is None or not isinstance(body.value, Mapping):
        task.unread(context, "whose parameters are not a mapping")
        return
    several = body.get("acls") if task.module.endswith("kafka_acls") else None
    if several is not None and not isinstance(several.value, tuple):
        task.unread(context, "with a template")
        return
    for acl in (body,) if several is None else several.items("acls"):
        members = {key: acl.get(key) for key in _ACL_KEYS}
        if not isinstance(acl.value, Mapping) or any(map(_is_template, filter(None, members.values()))):
            task.unread(context, "with a template")
        elif _text(members["state"], "state", "present") == "absent":
            task.unread(context, "that removes an ACL: whether another one adds it is not judged")
        else:
            yield from _present(acl)


def _present(acl: Node) -> Iterator[LocatedRule]:
    state = acl.get("state")
    if state is not None and state.text("state") != "present":
        raise state.error(f"state is {state.raw[:40]!r}: expected present or absent")
    one, several = acl.get("acl_operation"), acl.get("acl_operations")
    if (one is None) == (several is None):
        raise acl.error("expected acl_operation or acl_operations, and not both")
    for operation in (one,) if one is not None else acl.required("acl_operations").items("acl_operations"):
        statement = Statement(
            where=operation,
            resource_type=choice(acl.get("acl_resource_type"), "acl_resource_type", _TYPES, "topic"),
            name=acl.required("name", "an ACL").text("name"),
            pattern_type=choice(acl.get("acl_pattern_type"), "acl_pattern_type", _PATTERNS, "literal"),
            host=_text(acl.get("acl_host"), "acl_host", WILDCARD),
            operation=choice(operation, "acl_operation", _OPERATIONS),
            permission_type=choice(acl.get("acl_permission"), "acl_permission", PERMISSIONS, "allow"),
        )
        yield statement.rule(acl.required("acl_principal", "an ACL").text("acl_principal"))


def _text(node: Node | None, what: str, default: str) -> str:
    return default if node is None else node.text(what)


def _is_template(node: Node) -> bool:
    if isinstance(node.value, tuple):
        return any(map(_is_template, node.value))
    return node.tag is not None or _TEMPLATE.search(node.raw) is not None


def _is_loop(keys: Mapping[str, Node]) -> bool:
    return any(key.startswith("with_") for key in keys)


# Plays, blocks and tasks of a file.


def _tasks(node: Node, *, is_conditional: bool = False) -> Iterator[_Task]:
    """Yield the tasks with a module that makes ACLs: of a list of plays, or of tasks, and of their blocks."""
    for item in node.value if isinstance(node.value, tuple) else ():
        if not isinstance(item.value, Mapping):
            continue
        sections = [key for key in (*_SECTIONS, *_INNER) if key in item.value]
        inner = is_conditional or (
            bool(sections) and ("module_defaults" in item.value or "when" in item.value or _is_loop(item.value))
        )
        for key in sections:
            yield from _tasks(item.value[key], is_conditional=inner or key in ("rescue", "handlers"))
        for key in item.value:
            if _MODULE.match(key):
                yield _Task(item, key, is_conditional)


def claims(file: SourceFile) -> bool:
    """Return whether a task of the file makes ACLs. Raises OSError, ConfigError: it cannot be read."""
    if not file.has_suffix(".yaml", ".yml") or not file.mentions(b"kafka_acl"):
        return False
    return any(any(True for _ in _tasks(node)) for node in file.documents)


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of literal tasks; what else states rules is reported as unread.

    Raises:
        ConfigError: an ACL that the module refuses, with file and line; OSError: a file cannot be read.

    """
    for file in files:
        for node in file.documents:
            tasks = list(_tasks(node))
            for task in tasks:
                yield from _rules(task, context)
            if not tasks and (place := rule_in(node)) is not None:
                why = "keys of a rule in a document that is no list of plays or tasks"
                context.not_read(UnreadKind.DOCUMENT, place, why, name=file.base_name[:60])
