"""The nodes that tell of a change (kafka.zk.ZkAclChangeStore, ExtendedAclChangeEvent): which resource, not what. Pure.

A literal resource's event is the text `TOPIC:orders`; a prefixed one's is JSON with the pattern type (KIP-290).
"""

import json

from aclog.authorizer.acl import PatternType, ResourcePattern, ResourceType
from aclog.metalog.errors import DecodeError
from aclog.zkstore.acl_json import json_object
from aclog.zkstore.paths import LEGACY_GROUP_DIRECTORIES, LITERAL_TREE, RESOURCE_TYPES, AclTree, type_of_directory

VERSION = 1

_TYPES = {kind.name: kind for kind in RESOURCE_TYPES} | dict.fromkeys(
    (name.upper() for name in LEGACY_GROUP_DIRECTORIES), ResourceType.GROUP
)


def encode_event(pattern: ResourcePattern) -> bytes:
    """The event of a resource, as its tree has it."""
    kind = ResourceType(pattern.resource_type).name
    if pattern.pattern_type == PatternType.LITERAL:
        return f"{kind}:{pattern.name}".encode()
    event = {
        "version": VERSION,
        "resourceType": kind,
        "name": pattern.name,
        "patternType": PatternType(pattern.pattern_type).name,
    }
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


def decode_event(tree: AclTree, data: bytes, *, path: str) -> ResourcePattern:
    """The resource that an event is about; the spellings of older Kafkas (`Topic:orders`) too.

    Raises:
        DecodeError: no event; another version; a resource type or a pattern type that nothing is stored under.

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
    version = event.get("version")
    if type(version) is not int or version != VERSION:
        raise DecodeError(f"version {version!r}: expected {VERSION}", path=path)
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
