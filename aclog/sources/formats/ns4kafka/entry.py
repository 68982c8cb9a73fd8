"""Access control entries: who may do what with a resource, in ns4kafka's own terms."""

from collections.abc import Collection

from attrs import frozen

from aclog.authorizer.acl import PatternType
from aclog.sources.formats.node import Node
from aclog.sources.formats.resources import Resource

PUBLIC = "*"
"""As who it is granted to: everybody."""
_TYPES = ("TOPIC", "GROUP", "CONNECT", "CONNECT_CLUSTER", "SCHEMA", "TRANSACTIONAL_ID")
_PERMISSIONS = ("OWNER", "READ", "WRITE")
_PATTERNS = (PatternType.LITERAL.name, PatternType.PREFIXED.name)
_KEYS = ("resourceType", "resource", "resourcePatternType", "permission", "grantedTo")


@frozen(kw_only=True)
class Entry:
    """An entry (com.michelin.ns4kafka.model.AccessControlEntry)."""

    node: Node
    """Its spec."""
    namespace: str
    """The one that grants; empty if it is left to whoever applies it."""
    resource_type: str
    resource: str
    pattern_type: PatternType
    permission: str
    granted_to: str

    @property
    def makes_rules(self) -> bool:
        """Whether ns4kafka makes ACLs of it: of a topic, a group, and of connectors for who owns them."""
        return self.resource_type in ("TOPIC", "GROUP") or (self.resource_type, self.permission) == ("CONNECT", "OWNER")


def parse_entry(resource: Resource) -> Entry:
    """Return an entry. Raises ConfigError: what ns4kafka refuses, with its line."""
    spec, namespace = resource.spec, resource.namespace
    spec.check_keys(_KEYS, "the spec of an AccessControlEntry")
    entry = Entry(
        node=spec,
        namespace="" if namespace is None else namespace.text("metadata.namespace"),
        resource_type=_choice(spec, "resourceType", _TYPES),
        resource=_text(spec, "resource"),
        pattern_type=PatternType[_choice(spec, "resourcePatternType", _PATTERNS)],
        permission=_choice(spec, "permission", _PERMISSIONS),
        granted_to=_text(spec, "grantedTo"),
    )
    _check_grant(entry)
    return entry


def _check_grant(entry: Entry) -> None:
    """Refuse to grant to others what only an owner may have (AclService.validate)."""
    to_others = entry.granted_to == PUBLIC or entry.namespace not in ("", entry.granted_to)
    if to_others and (entry.resource_type not in ("TOPIC", "CONNECT_CLUSTER") or entry.permission == "OWNER"):
        raise entry.node.error(
            f"{entry.permission} of a {entry.resource_type} is granted to another: only READ and WRITE of TOPIC and "
            "CONNECT_CLUSTER can be"
        )


def _text(spec: Node, key: str) -> str:
    node = spec.required(key, "the spec of an AccessControlEntry")
    if not node.text(key).strip():
        raise node.error(f"{key} is empty")
    return node.raw


def _choice(spec: Node, key: str, known: Collection[str]) -> str:
    text = _text(spec, key)
    if text not in known:
        raise spec.required(key).error(f"{key} {text[:40]!r} is not one of {', '.join(known)}")
    return text
