"""Znodes of ACLs, users and delegation tokens: paths and contents (kafka.zk)."""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, unquote_plus

from attrs import field

from aclog.authorizer.acl import ResourcePattern, StandardAcl, code_name
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import no_colon
from aclog.credentials.scram import ScramMechanism
from aclog.metalog.errors import DecodeError, EncodeError
from aclog.metalog.records import DelegationTokenRecord, UserScramCredentialRecord
from aclog.metalog.values import frozen

# JSON in znodes: objects and typed fields, decoded with the znode's path in errors, and Jackson's compact encoding.


def json_object(data: bytes, *, path: str) -> dict[str, Any]:
    """Decode the JSON object that a znode holds.

    Raises:
        DecodeError: not UTF-8, not JSON, or not an object; with the byte position if it is known.

    """
    try:
        whole = json.loads(data.decode())
    except UnicodeDecodeError as e:
        raise DecodeError("expected UTF-8", position=e.start, path=path) from e
    except json.JSONDecodeError as e:
        # e.pos counts characters; errors report byte positions.
        position = len(e.doc[: e.pos].encode())
        raise DecodeError(f"expected JSON: {e.msg}", position=position, path=path) from e
    except (ValueError, RecursionError) as e:  # integers with too many digits, arrays nested too deeply
        raise DecodeError(f"expected JSON: {e}", path=path) from e
    if not isinstance(whole, dict):
        raise DecodeError(f"{brief_json(whole)}: expected a JSON object", path=path)
    return whole


def brief_json(value: object) -> str:
    """Return a value as JSON for an error message, cut after 40 characters."""
    try:
        text = json.dumps(value)
    except RecursionError:  # the decoder nests deeper than the encoder
        return "a value that is nested too deeply"
    return text if len(text) <= 40 else f"{text[:40]}..."


def brief_repr(value: object) -> str:
    """Return the repr of a value for an error message, cut after 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def check_version(fields: Mapping[str, Any], expected: int, *, path: str) -> None:
    """Check the `version` field of a znode's JSON object. Raises DecodeError."""
    version = fields.get("version")
    # isinstance() would accept true, which is an int in Python.
    if type(version) is not int or version != expected:
        raise DecodeError(f"version {brief_repr(version)}: expected {expected}", path=path)


def text_field(fields: Mapping[str, Any], name: str) -> str:
    """Return a string field. Raises DecodeError."""
    value = _field(fields, name)
    if not isinstance(value, str):
        raise DecodeError(f"{name}: {brief_repr(value)}: expected a string")
    return value


def texts_field(fields: Mapping[str, Any], name: str) -> list[str]:
    """Return a field that is an array of strings. Raises DecodeError."""
    value = _field(fields, name)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise DecodeError(f"{name}: expected an array of strings")
    return value


def integer_field(fields: Mapping[str, Any], name: str, *, bits: int = 64) -> int:
    """Return a signed integer field of the given width. Raises DecodeError."""
    value = _field(fields, name)
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise DecodeError(f"{name}: {brief_repr(value)}: expected a signed {bits}-bit integer")
    return value


def _field(fields: Mapping[str, Any], name: str) -> Any:
    try:
        return fields[name]
    except KeyError:
        raise DecodeError(f"no field {name!r}") from None


def compact_json(value: object) -> bytes:
    """Encode a value as Kafka's Jackson does: no whitespace, and non-ASCII text as UTF-8, not escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


# ACLs of a resource as JSON, version 1 (kafka.security.authorizer.AclEntry).


VERSION = 1

_SURROGATE = re.compile(r"[\ud800-\udfff]")


@frozen(kw_only=True, order=True)
class AclEntry:
    """One ACL without its resource, which is the znode's path (AccessControlEntry)."""

    principal: str
    permission_type: int
    host: str
    operation: int

    def on(self, pattern: ResourcePattern) -> StandardAcl:
        """Return the ACL of this entry on a resource."""
        return StandardAcl(
            resource_type=pattern.resource_type,
            resource_name=pattern.name,
            pattern_type=pattern.pattern_type,
            principal=self.principal,
            host=self.host,
            operation=self.operation,
            permission_type=self.permission_type,
        )


def entry_of(acl: StandardAcl) -> AclEntry:
    """Return an ACL without its resource."""
    return AclEntry(
        principal=acl.principal, permission_type=acl.permission_type, host=acl.host, operation=acl.operation
    )


def _names(kind: type[IntEnum]) -> dict[int, str]:
    """Return the names of an enum as Kafka writes them in znodes: AlterConfigs for ALTER_CONFIGS."""
    return {
        code: "".join(word.capitalize() for word in code.name.split("_"))
        for code in kind
        if code.name not in {"UNKNOWN", "ANY"}
    }


_OPERATIONS, _PERMISSIONS = _names(AclOperation), _names(AclPermissionType)
# New in Kafka 4.0. A 3.9 broker reads the name as UNKNOWN, which matches no request: a DENY would be without effect.
del _OPERATIONS[AclOperation.TWO_PHASE_COMMIT]

# Lower case, because Kafka accepts the names in any case (SecurityUtils.operation, permissionType).
OPERATION_CODES = {name.lower(): code for code, name in _OPERATIONS.items()}
PERMISSION_CODES = {name.lower(): code for code, name in _PERMISSIONS.items()}


def encode_acls(entries: Iterable[AclEntry]) -> bytes:
    """Encode the ACLs of a resource, with the keys in Kafka's order and the entries sorted (Kafka's are unordered)."""
    acls = [
        {
            "principal": entry.principal,
            "permissionType": _PERMISSIONS[entry.permission_type],
            "host": entry.host,
            "operation": _OPERATIONS[entry.operation],
        }
        for entry in sorted(entries)
    ]
    return compact_json({"acls": acls, "version": VERSION})


def entry_problem(entry: AclEntry) -> str | None:
    """Return why an ACL cannot be stored in a znode; None if it can."""
    if entry.permission_type not in _PERMISSIONS:
        return f"Invalid permissionType {code_name(AclPermissionType, entry.permission_type)}: expected ALLOW or DENY"
    if entry.operation not in _OPERATIONS:
        operation = code_name(AclOperation, entry.operation)
        return f"Invalid operation {operation}: expected one that Kafka 3.9 supports: {', '.join(_OPERATIONS.values())}"
    if ":" not in entry.principal:
        return no_colon(entry.principal)
    for text in (entry.principal, entry.host):
        if _SURROGATE.search(text):
            return f"{text!r}: expected no unpaired surrogate"
    return None


def decode_acls(data: bytes, *, path: str) -> frozenset[AclEntry]:
    """Decode the ACLs of a resource; an empty znode has none. Unknown keys are ignored, as by Kafka.

    An unknown operation or permission is an error, whereas Kafka keeps an ACL that never matches: a DENY would be lost
    silently.

    Raises:
        DecodeError: not JSON, an unsupported version, an incomplete entry, or an operation or permission that Kafka
            does not have; with the znode's path and the entry's index.

    """
    if not data:
        return frozenset()
    whole = json_object(data, path=path)
    check_version(whole, VERSION, path=path)
    acls = whole.get("acls")
    if not isinstance(acls, list):
        raise DecodeError(f"acls is {brief_json(acls)}: expected an array", path=path)
    return frozenset(_entry(entry, number, path) for number, entry in enumerate(acls))


def _entry(entry: object, number: int, path: str) -> AclEntry:
    if not isinstance(entry, dict):
        raise DecodeError(f"acls[{number}] is {brief_json(entry)}: expected an object", path=path)
    texts: dict[str, str] = {}
    for key in ("principal", "permissionType", "host", "operation"):
        value = entry.get(key)
        if not isinstance(value, str):
            raise DecodeError(f"acls[{number}].{key} is {brief_json(value)}: expected a string", path=path)
        texts[key] = value
    entry = AclEntry(
        principal=texts["principal"],
        permission_type=_code(PERMISSION_CODES, texts["permissionType"], f"acls[{number}].permissionType", path),
        host=texts["host"],
        operation=_code(OPERATION_CODES, texts["operation"], f"acls[{number}].operation", path),
    )
    problem = entry_problem(entry)
    if problem is not None:
        raise DecodeError(f"acls[{number}]: {problem}", path=path)
    return entry


def _code(codes: dict[str, int], name: str, field: str, path: str) -> int:
    code = codes.get(name.lower())
    if code is None:
        names = _OPERATIONS if codes is OPERATION_CODES else _PERMISSIONS
        raise DecodeError(f"{field} {brief_repr(name)}: expected one of {', '.join(names.values())}", path=path)
    return code


# Paths of znodes: ACLs, users, delegation tokens, and their change events (kafka.zk.ZkData, ZkAclStore).
#
# ACLs of LITERAL patterns are at `/kafka-acl/<Type>/<name>`, those of PREFIXED patterns at
# `/kafka-acl-extended/prefixed/<Type>/<name>`. Resource names are not escaped, so a name that is not valid in a
# ZooKeeper path cannot have ACLs.


@frozen(kw_only=True)
class AclTree:
    """The ACLs of one pattern type: the root of their znodes, and the parent of their change events."""

    pattern_type: PatternType
    root: str
    changes: str


LITERAL_TREE = AclTree(pattern_type=PatternType.LITERAL, root="/kafka-acl", changes="/kafka-acl-changes")
PREFIXED_TREE = AclTree(
    pattern_type=PatternType.PREFIXED, root="/kafka-acl-extended/prefixed", changes="/kafka-acl-extended-changes"
)
TREES = (LITERAL_TREE, PREFIXED_TREE)

CHANGE_PREFIX = "acl_changes_"
"""Name prefix of ACL change events; ZooKeeper appends the ten digits of the sequence number."""

_SEQUENCE_DIGITS = 10

USERS_PATH = "/config/users"
"""Parent of one znode per user, named by the percent-encoded user name."""
CONFIG_CHANGES_PATH = "/config/changes"
CONFIG_CHANGE_PREFIX = f"{CONFIG_CHANGES_PATH}/config_change_"
"""ZooKeeper appends ten digits."""

TOKENS_PATH = "/delegation_token/tokens"
"""Parent of one znode per delegation token, named by the token id."""
TOKEN_CHANGES_PATH = "/delegation_token/token_changes"  # noqa: S105  # a path
"""Parent of token change events; the data of each is a token id."""
TOKEN_CHANGE_PREFIX = f"{TOKEN_CHANGES_PATH}/token_change_"
"""ZooKeeper appends ten digits."""
KIP_TOKENS_PATH = "/tokenauth/tokens"
"""The path in KIP-48's text. No Kafka release uses it; tokens found there are read, but never written."""

SENSITIVE_ROOTS = (USERS_PATH, TOKENS_PATH)
"""Not world-readable under zookeeper.set.acl (ZkData.SensitiveRootPaths): SCRAM keys, and token owners and renewers."""

RESOURCE_TYPES = tuple(kind for kind in ResourceType if kind > ResourceType.ANY)

_DIRECTORIES: dict[int, str] = {
    kind: "".join(word.capitalize() for word in kind.name.split("_")) for kind in RESOURCE_TYPES
}
"""Topic, Group, Cluster, TransactionalId, DelegationToken, User (SecurityUtils.resourceTypeName)."""

LEGACY_GROUP_DIRECTORIES = ("ConsumerGroup", "CONSUMER_GROUP")
"""Names of the Group type in drafts of KIP-11; Kafka 3.9 reads neither."""

_TYPES: dict[str, ResourceType] = {
    **{type_name: ResourceType(kind) for kind, type_name in _DIRECTORIES.items()},
    **dict.fromkeys(LEGACY_GROUP_DIRECTORIES, ResourceType.GROUP),
}

# ZooKeeper validates UTF-16 code units (PathUtils.validatePath): a character above U+FFFF is two surrogates there, and
# surrogates are not allowed.
_INVALID_IN_PATH = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")


def type_directory(resource_type: int) -> str:
    """Return the name of the znode that is the parent of a type's resources.

    Raises:
        EncodeError: not a resource type that ACLs can have.

    """
    if resource_type not in _DIRECTORIES:
        kind = code_name(ResourceType, resource_type)
        raise EncodeError(f"resource type {kind} ({resource_type}): expected one of {', '.join(_DIRECTORIES.values())}")
    return _DIRECTORIES[resource_type]


def type_of_directory(name: str) -> ResourceType | None:
    """Return the resource type of a directory, legacy names included; None if the name is unknown."""
    return _TYPES.get(name)


def tree_of(pattern_type: int) -> AclTree:
    """Return the tree of a pattern type.

    Raises:
        EncodeError: neither LITERAL nor PREFIXED.

    """
    for tree in TREES:
        if tree.pattern_type == pattern_type:
            return tree
    kind = code_name(PatternType, pattern_type)
    raise EncodeError(f"pattern type {kind} ({pattern_type}): expected LITERAL or PREFIXED")


def resource_path(pattern: ResourcePattern) -> str:
    """Return the path of the znode with a resource's ACLs (ZkAclStore.path).

    Raises:
        EncodeError: a type or pattern type that ACLs cannot have, or a name that is not valid in a ZooKeeper path.

    """
    tree = tree_of(pattern.pattern_type)
    directory = type_directory(pattern.resource_type)
    problem = name_problem(pattern.name)
    if problem is not None:
        raise EncodeError(f"resource name {pattern.name!r}: {problem}")
    return f"{tree.root}/{directory}/{pattern.name}"


def name_problem(name: str) -> str | None:
    """Return why a resource name cannot be a znode name; None if it can."""
    if not name:
        return "expected a non-empty name"
    if "/" in name:
        return "expected no /, which separates the names in a ZooKeeper path"
    if name in {".", ".."}:
        return "expected neither . nor .., which ZooKeeper rejects as znode names"
    match = _INVALID_IN_PATH.search(name)
    if match is not None:
        return f"expected no U+{ord(match[0]):04X} (at {match.start()}), which ZooKeeper rejects in paths"
    return None


def pattern_of(path: str) -> ResourcePattern:
    """Return the resource of a znode's path: the inverse of `resource_path`, which also accepts legacy directories.

    Raises:
        DecodeError: not the path of a resource.

    """
    for tree in TREES:
        if path.startswith(f"{tree.root}/"):
            directory, _, name = path.removeprefix(f"{tree.root}/").partition("/")
            kind = type_of_directory(directory)
            if kind is not None and name and "/" not in name:
                return ResourcePattern(resource_type=kind, name=name, pattern_type=tree.pattern_type)
    raise DecodeError("expected the path of a resource, such as /kafka-acl/Topic/orders", path=path)


def legacy_paths(pattern: ResourcePattern) -> tuple[str, ...]:
    """Return the paths in legacy directories at which a resource may also have ACLs; only groups have any."""
    if pattern.resource_type != ResourceType.GROUP:
        return ()
    root = tree_of(pattern.pattern_type).root
    return tuple(f"{root}/{directory}/{pattern.name}" for directory in LEGACY_GROUP_DIRECTORIES)


def paths_of(pattern: ResourcePattern) -> tuple[str, ...]:
    """Return all paths at which a resource may have ACLs, the current one first.

    Raises:
        EncodeError: as `resource_path`.

    """
    return (resource_path(pattern), *legacy_paths(pattern))


def sequence_of(name: str) -> int | None:
    """Return the sequence number of an ACL change event; None if the name is not one of a change event."""
    digits = name.removeprefix(CHANGE_PREFIX)
    is_number = digits != name and digits.isascii() and digits.isdigit() and len(digits) <= _SEQUENCE_DIGITS
    return int(digits) if is_number else None


def is_sensitive(path: str) -> bool:
    """Return whether only the owner of a znode may read it (ZkData.sensitivePath)."""
    return any(path == root or path.startswith(f"{root}/") for root in SENSITIVE_ROOTS)


# ACL change events: which resource changed, not how (kafka.zk.ZkAclChangeStore, ExtendedAclChangeEvent).
#
# The event of a LITERAL resource is the text `TOPIC:orders`; that of a PREFIXED one is JSON with the pattern type
# (KIP-290).


_EVENT_TYPES = {kind.name: kind for kind in RESOURCE_TYPES} | dict.fromkeys(
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
        what = brief_repr(texts)
        raise DecodeError(f"{what}: expected a resourceType, a name and a patternType", path=path)
    if pattern_type.upper() != tree.pattern_type.name:
        raise DecodeError(f"patternType {brief_repr(pattern_type)}: expected {tree.pattern_type.name}", path=path)
    return ResourcePattern(resource_type=_type(kind, path), name=name, pattern_type=tree.pattern_type)


def _type(name: str, path: str) -> ResourceType:
    kind = _EVENT_TYPES.get(name.upper()) or type_of_directory(name)
    if kind is None:
        raise DecodeError(f"resource type {brief_repr(name)}: expected one of {', '.join(_EVENT_TYPES)}", path=path)
    return kind


# Percent-encoding of user names and principals in znodes (org.apache.kafka.common.utils.Sanitizer).


_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def percent_encoded(text: str) -> str:
    """Return the text with all but ASCII letters, digits and `-_.` as %XX of UTF-8 (Sanitizer.sanitize).

    Raises:
        EncodeError: an unpaired surrogate, which UTF-8 cannot encode.

    """
    try:
        return quote(text, safe="").replace("~", "%7E")  # quote() leaves ~ alone, java.net.URLEncoder does not
    except UnicodeEncodeError:
        raise EncodeError(f"{text!r}: expected no unpaired surrogate, which UTF-8 cannot encode") from None


def percent_decoded(text: str) -> str:
    """Return the decoded text; `+` is a space, as in java.net.URLDecoder.

    Raises:
        DecodeError: a `%` without two hexadecimal digits after it, or bytes that are not UTF-8.

    """
    if match := _BAD_ESCAPE.search(text):
        raise DecodeError(f"{brief_repr(text)}: expected two hexadecimal digits after each %", position=match.start())
    try:
        return unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        raise DecodeError(f"{brief_repr(text)}: expected percent-encoded UTF-8") from None


# SCRAM credentials in the znode of a user's dynamic configuration, which also holds the user's quotas.
#
# Mirrors kafka.zk.ConfigEntityZNode, ScramCredentialUtils and the change events of AdminZkClient.


DEFAULT_ENTITY = "<default>"
"""Znode of the default quotas, for users without a znode of their own; it never has credentials."""

_VERSION = 1
_CHANGE_VERSION = 2
_MECHANISMS: Mapping[str, ScramMechanism] = MappingProxyType(
    {mechanism.mechanism_name: mechanism for mechanism in ScramMechanism}
)
# Kafka writes the keys in the iteration order of java.util.Properties; the same order keeps the bytes the same.
_WRITE_ORDER = ("SCRAM-SHA-512", "SCRAM-SHA-256")
_PARTS = ("salt", "stored_key", "server_key", "iterations")
_INT_MAX = (1 << 31) - 1


@frozen(kw_only=True)
class UserConfig:
    """Configuration of a user: credentials and quotas by name. The repr omits the values, which hold secrets."""

    values: Mapping[str, str] = field(factory=dict, repr=False)

    @property
    def others(self) -> tuple[str, ...]:
        """The names of all values that are not SCRAM credentials: the user's quotas."""
        return tuple(sorted(name for name in self.values if name not in _MECHANISMS))

    def credentials(self) -> tuple[tuple[ScramMechanism, str], ...]:
        """Return the user's encoded credentials by mechanism."""
        return tuple((mechanism, self.values[name]) for name, mechanism in _MECHANISMS.items() if name in self.values)


def user_path(user: str) -> str:
    """Return the path of a user's znode.

    Raises:
        EncodeError: `.`, `..` or the empty name, which are not znode names; Kafka 3.9 fails on them too.

    """
    if user in {"", ".", ".."}:
        raise EncodeError(f"user {user!r}: expected a name that is valid as a znode name")
    return f"{USERS_PATH}/{percent_encoded(user)}"


def user_of_node(name: str) -> str | None:
    """Return the user of a znode below /config/users; None for the default quotas. Raises DecodeError."""
    # A user who is really called <default> has the znode %3Cdefault%3E.
    return None if name == DEFAULT_ENTITY else percent_decoded(name)


def decode_user_config(data: bytes | None, path: str) -> UserConfig:
    """Decode a user's configuration; a znode without data, which only has children, is an empty configuration.

    Raises:
        DecodeError: not a JSON object, a version other than 1, or a config that is not an object of strings.

    """
    if not data:
        return UserConfig()
    fields = json_object(data, path=path)
    try:
        return UserConfig(values=_texts(fields))
    except DecodeError as error:
        raise error.at(path=path) from None


def _texts(fields: Mapping[str, Any]) -> Mapping[str, str]:
    version, config = integer_field(fields, "version", bits=32), fields.get("config")
    if version != _VERSION:
        raise DecodeError(f"version {version}: expected {_VERSION}")
    if not isinstance(config, dict) or not all(isinstance(value, str) for value in config.values()):
        raise DecodeError("config: expected an object with string values")
    return config


def encode_user_config(config: UserConfig) -> bytes:
    """Encode a user's configuration as Kafka 3.9 does."""
    return compact_json({"version": _VERSION, "config": dict(config.values)})


def encode_config_change(path: str) -> bytes:
    """Encode the change event of a znode below /config, in version 2, the only one that Kafka 3.9 accepts."""
    return compact_json({"version": _CHANGE_VERSION, "entity_path": path.removeprefix("/config/")})


def decode_credential(user: str, mechanism: ScramMechanism, text: str) -> UserScramCredentialRecord:
    """Decode one SCRAM credential of a user's configuration.

    Raises:
        DecodeError: not exactly the four parts, invalid base64, or invalid iterations. The message never contains any
            part of the credential.

    """
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    if set(parts) != set(_PARTS) or len(parts) != text.count(",") + 1:
        raise DecodeError(f"{mechanism.mechanism_name}: expected {'=...,'.join(_PARTS)}=...")
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism,
        salt=_bytes(mechanism, parts, "salt"),
        stored_key=_bytes(mechanism, parts, "stored_key"),
        server_key=_bytes(mechanism, parts, "server_key"),
        iterations=_iterations(mechanism, parts["iterations"]),
    )


def _bytes(mechanism: ScramMechanism, parts: Mapping[str, str], name: str) -> bytes:
    try:
        return b64decode(parts[name].encode("ascii"), validate=True)
    except ValueError:  # includes UnicodeEncodeError
        raise DecodeError(f"{mechanism.mechanism_name}: {name}: expected base64") from None


def _iterations(mechanism: ScramMechanism, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 11 and int(text) <= _INT_MAX):
        raise DecodeError(f"{mechanism.mechanism_name}: iterations: expected a number of 0 to {_INT_MAX}")
    return int(text)


def encode_credential(record: UserScramCredentialRecord) -> str:
    """Encode a SCRAM credential as a value of a user's configuration (ScramCredentialUtils.credentialToString)."""
    keys = (record.salt, record.stored_key, record.server_key)
    parts = [f"{name}={b64encode(key).decode('ascii')}" for name, key in zip(_PARTS, keys, strict=False)]
    return ",".join([*parts, f"iterations={record.iterations}"])


def with_credentials(config: UserConfig, records: Iterable[UserScramCredentialRecord]) -> UserConfig:
    """Return the configuration with exactly these credentials, and its quotas unchanged."""
    texts = {ScramMechanism(record.mechanism).mechanism_name: encode_credential(record) for record in records}
    credentials = {name: texts[name] for name in _WRITE_ORDER if name in texts}
    others = {name: text for name, text in config.values.items() if name not in _MECHANISMS}
    return UserConfig(values={**credentials, **others})


# Delegation tokens as JSON, as a broker of Kafka 3.9 writes and reads them.
#
# Mirrors kafka.zk.DelegationTokenInfoZNode, DelegationTokenChangeNotificationZNode and TokenInformation. A token's
# HMAC is not stored: brokers compute it from the token id and delegation.token.secret.key.


NEWEST_VERSION = 3
# Version 3 added the requester (KIP-373); in versions 1 and 2 the owner is the requester.
_REQUESTER_SINCE = 3
_VERSIONS = frozenset(range(1, NEWEST_VERSION + 1))


def token_path(token_id: str) -> str:
    """Return the path of a token's znode."""
    return f"{TOKENS_PATH}/{token_id}"


def decode_token(data: bytes | None, path: str) -> DelegationTokenRecord:
    """Decode a token. Its id is the `tokenId` field, not the znode's name, as in Kafka.

    Raises:
        DecodeError: not a JSON object, a version that Kafka 3.9 rejects, or a missing or mistyped field.

    """
    fields = json_object(data or b"", path=path)
    try:
        return _token(fields)
    except DecodeError as error:
        raise error.at(path=path) from None


def _token(fields: Mapping[str, Any]) -> DelegationTokenRecord:
    version = integer_field(fields, "version", bits=32)
    if version not in _VERSIONS:
        raise DecodeError(f"version {version}: expected one from 1 to {NEWEST_VERSION}")
    owner = _principal(text_field(fields, "owner"), "owner")
    requester = (
        _principal(text_field(fields, "tokenRequester"), "tokenRequester") if version >= _REQUESTER_SINCE else owner
    )
    return DelegationTokenRecord(
        owner=owner,
        requester=requester,
        renewers=tuple(_principal(each, "renewers") for each in texts_field(fields, "renewers")),
        issue_timestamp=integer_field(fields, "issueTimestamp"),
        max_timestamp=integer_field(fields, "maxTimestamp"),
        expiration_timestamp=integer_field(fields, "expiryTimestamp"),
        token_id=text_field(fields, "tokenId"),
    )


def _principal(text: str, name: str) -> str:
    principal = percent_decoded(text)
    if ":" not in principal:
        raise DecodeError(f"{name} {brief_repr(principal)}: expected a principal such as User:alice")
    return principal


def encode_token(token: DelegationTokenRecord) -> bytes:
    """Encode a token, byte for byte as Kafka 3.9 does.

    Raises:
        EncodeError: a token id that is not a valid znode name.

    """
    if not token.token_id or "/" in token.token_id or token.token_id in {".", ".."}:
        raise EncodeError(f"token id {token.token_id!r}: expected an id that is valid as a znode name")
    # The order of the keys is Kafka's.
    return compact_json(
        {
            "issueTimestamp": token.issue_timestamp,
            "renewers": [percent_encoded(renewer) for renewer in token.renewers],
            "tokenRequester": percent_encoded(token.requester),
            "tokenId": token.token_id,
            "owner": percent_encoded(token.owner),
            "expiryTimestamp": token.expiration_timestamp,
            "maxTimestamp": token.max_timestamp,
            "version": NEWEST_VERSION,
        }
    )
