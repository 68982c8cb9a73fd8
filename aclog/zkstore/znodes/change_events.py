"""ACL change events: which resource changed, not how (kafka.zk.ZkAclChangeStore, ExtendedAclChangeEvent).

The event of a LITERAL resource is the text `TOPIC:orders`; that of a PREFIXED one is JSON with the pattern type
(KIP-290).
"""

from aclog.authorizer.acl import PatternType, ResourcePattern, ResourceType
from aclog.metalog.errors import DecodeError
from aclog.zkstore.znodes.json_fields import check_version, compact_json, json_object
from aclog.zkstore.znodes.paths import (
    LEGACY_GROUP_DIRECTORIES,
    LITERAL_TREE,
    RESOURCE_TYPES,
    AclTree,
    type_of_directory,
)

VERSION = 1

_TYPES = {kind.name: kind for kind in RESOURCE_TYPES} | dict.fromkeys(
    (name.upper() for name in LEGACY_GROUP_DIRECTORIES), ResourceType.GROUP
)


def encode_event(pattern: ResourcePattern) -> bytes:
    """Encode the change event of a resource, in the format of its pattern type."""
    kind = ResourceType(pattern.resource_type).name
    # Brokers before 2.0 parse the events in /kafka-acl-changes, so LITERAL ones keep the text format (KIP-290).
    if pattern.pattern_type == PatternType.LITERAL:
        return f"{kind}:{pattern.name}".encode()
    return compact_json(
        {
            "version": VERSION,
            "resourceType": kind,
            "name": pattern.name,
            "patternType": PatternType(pattern.pattern_type).name,
        }
    )


def decode_event(tree: AclTree, data: bytes, *, path: str) -> ResourcePattern:
    """Decode the resource of a change event; spellings of older Kafka releases (`Topic:orders`) are accepted.

    Raises:
        DecodeError: not a change event, an unsupported version, or a resource type or pattern type without znodes.

    """
    return _literal(data, path) if tree is LITERAL_TREE else _extended(tree, data, path)


def _literal(data: bytes, path: str) -> ResourcePattern:
    try:
        kind, colon, name = data.decode().partition(":")
    except UnicodeDecodeError as e:
        raise DecodeError("expected UTF-8", position=e.start, path=path) from e
    if not colon or not name:
        raise DecodeError(f"{data[:80]!r}: expected TYPE:name", path=path)
    return ResourcePattern(resource_type=_type(kind, path), name=name)


def _extended(tree: AclTree, data: bytes, path: str) -> ResourcePattern:
    event = json_object(data, path=path)
    check_version(event, VERSION, path=path)
    texts = [event.get(key) for key in ("resourceType", "name", "patternType")]
    kind, name, pattern_type = texts
    if not (isinstance(kind, str) and isinstance(name, str) and name and isinstance(pattern_type, str)):
        raise DecodeError(f"{texts}: expected a resourceType, a name and a patternType", path=path)
    if pattern_type.upper() != tree.pattern_type.name:
        raise DecodeError(f"patternType {pattern_type!r}: expected {tree.pattern_type.name}", path=path)
    return ResourcePattern(resource_type=_type(kind, path), name=name, pattern_type=tree.pattern_type)


def _type(name: str, path: str) -> ResourceType:
    kind = _TYPES.get(name.upper()) or type_of_directory(name)
    if kind is None:
        raise DecodeError(f"resource type {name!r}: expected one of {', '.join(_TYPES)}", path=path)
    return kind
