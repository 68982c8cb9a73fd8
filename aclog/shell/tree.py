"""The tree of a metadata image: the content of each path of the shell."""

import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from string import ascii_letters, digits
from types import MappingProxyType
from typing import TypeAlias
from urllib.parse import unquote_to_bytes
from uuid import UUID

from aclog.authorizer.acl import (
    NO_ORIGINS,
    AclBindingFilter,
    Origins,
    StandardAclWithId,
    acl_text,
    code_name,
    place_object,
    rule_json,
)
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.authorizer.index.layout import utf16
from aclog.credentials.scram import CredentialInfo, ScramImage, ScramMechanism
from aclog.credentials.tokens import TokensImage
from aclog.metalog.errors import ConfigError
from aclog.metalog.primitives import parse_uuid, uuid_text
from aclog.metalog.records import DelegationTokenRecord, RegisterBrokerRecord, UserScramCredentialRecord
from aclog.metalog.values import frozen
from aclog.snapshots.image import METADATA_VERSION, ClusterImage, FeaturesImage, Image
from aclog.terminal.columns import json_text

# The nodes of a tree: files and directories, both computed on access.
#
# Kafka's shell has a class for each kind of node (org.apache.kafka.image.node). Here a node is given functions
# instead.


@frozen(kw_only=True)
class File:
    """A leaf: `text()` is what `cat` prints, without the final line feed."""

    text: Callable[[], str]


@frozen(kw_only=True)
class Directory:
    """A node with children.

    `names(prefix)` yields the names of the children that begin with `prefix`, lazily, in the order of Java's
    String.compareTo; they are not encoded. `child(name)` looks up one child without listing the others, or returns
    None.
    """

    names: Callable[[str], Iterable[str]]
    child: "Callable[[str], File | Directory | None]"


Node: TypeAlias = File | Directory


def file(text: str) -> File:
    """Return a leaf with a fixed text."""
    return File(text=lambda: text)


def directory(names: Callable[[], Iterable[str]], child: Callable[[str], Node | None]) -> Directory:
    """Return a directory whose names are returned unsorted and all at once; they are sorted when listed."""
    return Directory(
        names=lambda prefix: sorted((name for name in names() if name.startswith(prefix)), key=utf16),
        child=child,
    )


def fixed(children: Mapping[str, Node]) -> Directory:
    """Return a directory of existing children."""
    return directory(lambda: children, children.get)


def computed(children: Mapping[str, Callable[[], Node]]) -> Directory:
    """Return a directory of few children, each made on access."""

    def child(name: str) -> Node | None:
        """Return the child, made now."""
        make = children.get(name)
        return make() if make else None

    return directory(lambda: children, child)


# ACLs as text: fields, JSON, and file names in the tree.


def located_json(rule: StandardAclWithId, origins: Origins) -> str:
    """Return the same with the file and line of the ACL, if they are known."""
    place = place_object(rule.acl, origins)
    return json_text({**rule.to_dict(), **place}) if place else rule_json(rule)


def rule_name(rule: StandardAclWithId) -> str:
    """Return the name of an ACL's file: its id, or its text if the source has no ids."""
    return uuid_text(rule.id) if rule.id is not None else acl_text(rule.acl)


def rule_id(name: str) -> UUID | None:
    """Return the id in the name of a file, or None."""
    try:
        return parse_uuid(name)
    except ConfigError:
        return None


# Texts of Kafka's metadata shell (org.apache.kafka.image.node), reproduced to the character.
#
# They are the contents of `/image/...`, with the unbalanced parentheses of delegation tokens, so that scripts for
# Kafka's shell work with this one. Secrets are `***` unless requested.


HIDDEN = "***"
"""Replaces a secret."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_FROM_LEVEL_1_ON = (
    "3.0-IV1 3.1-IV0 3.2-IV0 3.3-IV0 3.3-IV1 3.3-IV2 3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2 "
    "3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0 3.9-IV0 4.0-IV0 4.0-IV1 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1 4.2-IV0 "
    "4.2-IV1 4.3-IV0 4.4-IV0 4.4-IV1 4.4-IV2"
)
_METADATA_VERSIONS = MappingProxyType(dict(enumerate(_FROM_LEVEL_1_ON.split(), start=1)))


_SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def metadata_version_name(level: int) -> str | None:
    """Return the name of a level of metadata.version, such as `4.3-IV0` for 30; None if it is unknown."""
    return _METADATA_VERSIONS.get(level)


def metadata_version_text(level: int) -> str:
    """Return `/image/features/metadataVersion`, a Java Optional; a level without a name is shown as a number."""
    return f"Optional[{metadata_version_name(level) or level}]" if level else "Optional.empty"


def scram_text(record: UserScramCredentialRecord, *, show_secrets: bool) -> str:
    """Return `/image/scram/<mechanism>/<user>` (ScramCredentialData.toString)."""
    salt, stored, server = (
        secret.hex() if show_secrets else HIDDEN for secret in (record.salt, record.stored_key, record.server_key)
    )
    return f"ScramCredentialData(salt={salt}, storedKey={stored}, serverKey={server}, iterations={record.iterations})"


def token_text(record: DelegationTokenRecord) -> str:
    """Return `/image/delegationToken/<id>` (DelegationTokenData.toString). The secret HMAC is not in the log."""
    return (
        f"DelegationTokenDatatokenId={record.token_id}(owner={record.owner}(tokenRequester={record.requester}"
        f"(renewers={' '.join(record.renewers)}, issueTimestamp={record.issue_timestamp}, "
        f"maxTimestamp={record.max_timestamp}), expiryTimestamp={record.expiration_timestamp}"
    )


def broker_text(broker: RegisterBrokerRecord) -> str:
    """Return `/image/cluster/brokers/<id>` (BrokerRegistration.toString)."""
    listeners = ", ".join(
        f"Endpoint(listenerName='{at.name}', securityProtocol={_protocol(at.security_protocol)}, host='{at.host}', "
        f"port={at.port})"
        for at in sorted(broker.end_points, key=lambda at: at.name)
    )
    features = ", ".join(
        f"{each.name}: {each.min_supported_version}-{each.max_supported_version}"
        for each in sorted(broker.features, key=lambda each: each.name)
    )
    cordoned = broker.cordoned_log_dirs
    return (
        f"BrokerRegistration(id={broker.broker_id}, epoch={broker.broker_epoch}, "
        f"incarnationId={uuid_text(broker.incarnation_id)}, listeners=[{listeners}], supportedFeatures={{{features}}}, "
        f"rack={'Optional.empty' if broker.rack is None else f'Optional[{broker.rack}]'}, "
        f"fenced={_boolean(broker.fenced)}, inControlledShutdown={_boolean(broker.in_controlled_shutdown)}, "
        f"isMigratingZkBroker={_boolean(broker.is_migrating_zk_broker)}, directories={_ids(broker.log_dirs)}, "
        f"cordonedDirectories={'null' if cordoned is None else _ids(cordoned)})"
    )


def _protocol(number: int) -> str:
    return _SECURITY_PROTOCOLS[number] if 0 <= number < len(_SECURITY_PROTOCOLS) else str(number)


def _boolean(value: bool) -> str:
    return str(value).lower()


def _ids(values: Iterable[UUID]) -> str:
    return f"[{', '.join(map(uuid_text, values))}]"


def provenance_text(last_offset: int, epoch: int, timestamp: int) -> str:
    """Return `/image/provenance` (MetadataProvenance); `timestamp` is in ms since 1970, all are -1 for an empty log."""
    return f"offset {last_offset}, epoch {epoch}, time {zoned_time(timestamp)}"


def zoned_time(timestamp: int) -> str:
    """Format ms since 1970 like Java's ISO_ZONED_DATE_TIME in UTC; a time that Python cannot represent as a number."""
    try:
        time = _EPOCH + timedelta(milliseconds=timestamp)
    except OverflowError:
        return f"{timestamp}ms"
    fraction = f".{timestamp % 1000:03d}".rstrip("0") if timestamp % 1000 else ""
    return f"{time:%Y-%m-%dT%H:%M:%S}{fraction}Z[UTC]"


# Percent-encoding of names in paths.
#
# Names are arbitrary: a transactional id may be `a/b`, a user `..`, and a principal may contain NUL or a line feed.
# In paths `/`, `%` and all unprintable characters, which could garble a terminal, are the percent-encoded bytes of
# their UTF-8; `.` and `..` are `%2E` and `%2E%2E`; the empty name is a lone `%`.


EMPTY_NAME = "%"
"""The encoded empty name; unambiguous, since other encoded names have two digits after each `%`."""

_RESERVED = {"": EMPTY_NAME, ".": "%2E", "..": "%2E%2E"}
_ENCODED = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*", re.DOTALL)


def encode_name(name: str) -> str:
    """Encode a name for a path; `decode_name` is the exact inverse."""
    if name in _RESERVED:
        return _RESERVED[name]
    if name.isprintable() and "/" not in name and "%" not in name:
        return name
    return "".join(map(_encode_character, name))


def decode_name(component: str) -> str | None:
    """Decode a component of a path, in which any character may be encoded; None if it is malformed."""
    if component == EMPTY_NAME:
        return ""
    if "%" not in component:
        return component
    if not _ENCODED.fullmatch(component):
        return None
    try:
        # surrogatepass: JSON and command lines may contain lone surrogates
        return unquote_to_bytes(component.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None


def path_text(names: tuple[str, ...]) -> str:
    """Return the absolute path of these names, encoded."""
    return "/" + "/".join(map(encode_name, names))


def _encode_character(character: str) -> str:
    if character.isprintable() and character not in "/%":
        return character
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


# The ACLs of an image as directories: by id, by resource and by principal (`/acl`).
#
# A look-up reads one ACL only; a listing reads the ACLs that it lists.


_URL_SAFE = ascii_letters[26:] + ascii_letters[:26] + digits + "-_"
"""The digits of URL-safe Base64 by value, which is not their order as text."""

_VALUES = {digit: value for value, digit in enumerate(_URL_SAFE)}
_ID_TEXT_LENGTH = 22
_ID_BITS = 128
_BITS_PER_DIGIT = 6

Rules: TypeAlias = Callable[[], Iterator[StandardAclWithId]]
"""Some ACLs, looked up at each call."""
Text: TypeAlias = Callable[[StandardAclWithId], str]
"""The content of the file of an ACL."""


def acl_directory(acls: AclsImage, origins: Origins = NO_ORIGINS) -> Directory:
    """Return `/acl`: every ACL as JSON, by its id (KIP-801), its resource pattern and its principal.

    The file and line of an ACL follow its keys, if they are in `origins`.
    """
    text: Text = rule_json if origins is NO_ORIGINS else partial(located_json, origins=origins)
    return computed(
        {
            "id": lambda: ids_directory(acls, text),
            "resource": lambda: _resource_types(acls, text),
            "principal": lambda: _principals(acls, text),
        }
    )


def ids_directory(acls: AclsImage, text: Text) -> Directory:
    """Return a directory of all ACLs that have an id, one file each."""

    def child(name: str) -> Node | None:
        """Return the ACL with this id."""
        uuid = rule_id(name)
        acl = acls.get(uuid) if uuid is not None else None
        return None if acl is None else _rule_file(StandardAclWithId(id=uuid, acl=acl), text)

    return Directory(names=lambda prefix: id_names(acls, prefix), child=child)


def _resource_types(acls: AclsImage, text: Text) -> Directory:
    """Return the directory of resource types; types without ACLs exist but are not listed."""

    @cache
    def listed() -> Mapping[tuple[str, ...], set[str]]:
        return _resource_listing(acls)

    def pattern_types(resource_type: str) -> Node | None:
        """Return the directory of a resource type."""
        if resource_type not in ResourceType.__members__:
            return None
        return directory(lambda: listed()[resource_type,], lambda name: resource_names(resource_type, name))

    def resource_names(resource_type: str, pattern_type: str) -> Node | None:
        """Return the directory of a pattern type of a resource type."""
        if pattern_type not in PatternType.__members__:
            return None
        return directory(
            lambda: listed()[resource_type, pattern_type],
            lambda name: _rules_directory(partial(_about, acls, resource_type, pattern_type, name), text),
        )

    return directory(lambda: listed()[()], pattern_types)


def _resource_listing(acls: AclsImage) -> Mapping[tuple[str, ...], set[str]]:
    """Return the names in each directory under `/acl/resource`: resource types, pattern types, resource names."""
    listing: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for pattern in acls.resource_patterns():
        resource_type = code_name(ResourceType, pattern.resource_type)
        pattern_type = code_name(PatternType, pattern.pattern_type)
        listing[()].add(resource_type)
        listing[resource_type,].add(pattern_type)
        listing[resource_type, pattern_type].add(pattern.name)
    return listing


def _about(acls: AclsImage, resource_type: str, pattern_type: str, name: str) -> Iterator[StandardAclWithId]:
    """Yield the ACLs of one resource pattern, given by the names of its types.

    A filter cannot distinguish UNKNOWN from codes that Kafka does not define, so the types are compared here.
    """
    for rule in acls.matching(AclBindingFilter(resource_name=name)):
        types = code_name(ResourceType, rule.acl.resource_type), code_name(PatternType, rule.acl.pattern_type)
        if types == (resource_type, pattern_type):
            yield rule


def _principals(acls: AclsImage, text: Text) -> Directory:
    return directory(
        acls.principals,
        lambda name: _rules_directory(lambda: acls.matching(AclBindingFilter(principal=name)), text),
    )


def _rules_directory(rules: Rules, text: Text) -> Node | None:
    """Return a directory of some ACLs; None without ACLs."""
    # An empty directory would make every path exist, with any principal or resource in it.
    if next(rules(), None) is None:
        return None

    def child(name: str) -> Node | None:
        """Return the ACL whose file has this name."""
        return next((_rule_file(rule, text) for rule in rules() if rule_name(rule) == name), None)

    return directory(lambda: map(rule_name, rules()), child)


def _rule_file(rule: StandardAclWithId, text: Text) -> File:
    return File(text=lambda: text(rule))


def id_names(acls: AclsImage, prefix: str) -> Iterator[str]:
    """Yield the texts of the ids that begin with `prefix`, in the order of Java's String.compareTo.

    The index is sorted by the uuids' bytes, in which ids that share their first digits are adjacent. So they are read
    in ranges, one more digit than the prefix each, in text order; only one range at a time is sorted.
    """
    if any(digit not in _VALUES for digit in prefix):
        return
    if len(prefix) >= _ID_TEXT_LENGTH - 1:
        yield from _of_digits(acls, prefix[: _ID_TEXT_LENGTH - 1], prefix)
        return
    for digit in sorted(_VALUES):
        yield from _of_digits(acls, prefix + digit, prefix)


def _of_digits(acls: AclsImage, digits: str, prefix: str) -> list[str]:
    """Return the texts of the ids that begin with these digits, at most 21 (the 22nd holds padding bits)."""
    low = 0
    for digit in digits:
        low = low << _BITS_PER_DIGIT | _VALUES[digit]
    shift = _ID_BITS - _BITS_PER_DIGIT * len(digits)
    texts = map(uuid_text, acls.ids(low << shift, low + 1 << shift))
    return sorted(text for text in texts if text.startswith(prefix))


# SCRAM credentials and delegation tokens as directories: as JSON, and under `/image` as in Kafka's shell.


def scram_directory(scram: ScramImage, *, show_secrets: bool) -> Directory:
    """Return `/scram/<user>/<mechanism>`: each credential as JSON, with secrets in base64 or hidden.

    A credential whose keys the source does not reveal (the admin API) has no fields for them.
    """

    def user(name: str) -> Node | None:
        """Return a user's credentials by mechanism; None without credentials."""
        records = {mechanism_name(r.mechanism): r for r in scram.records() if r.name == name}
        texts = {mechanism: file(_scram_json(r, show_secrets=show_secrets)) for mechanism, r in records.items()}
        keyless = (info for each in scram.keyless if each.user == name for info in each.credential_infos)
        texts |= {mechanism_name(info.mechanism): file(_keyless_json(name, info)) for info in keyless}
        return fixed(texts) if texts else None

    return directory(lambda: {each.user for each in scram.describe()}, user)


def kafka_scram_directory(scram: ScramImage, *, show_secrets: bool) -> Directory:
    """Return `/image/scram/<mechanism>/<user>` (ScramImageNode); credentials without keys are left out."""

    def mechanism(name: str) -> Node | None:
        """Return the users of a mechanism; None if the name is unknown."""
        code = next((code for code in _mechanisms(scram) if mechanism_name(code) == name), None)
        return None if code is None else directory(lambda: users(code), lambda user: credential(user, code))

    def users(code: int) -> list[str]:
        return [record.name for record in scram.records() if record.mechanism == code]

    def credential(user: str, code: int) -> Node | None:
        """Return a user's credential for a mechanism."""
        record = scram.get(user, code)
        return None if record is None else file(scram_text(record, show_secrets=show_secrets))

    return directory(lambda: map(mechanism_name, _mechanisms(scram)), mechanism)


def token_directory(tokens: TokensImage) -> Directory:
    """Return `/delegationToken/<id>`: each token as JSON. The HMAC, which is the secret, is not in the log."""
    return _tokens(tokens, _token_json)


def kafka_token_directory(tokens: TokensImage) -> Directory:
    """Return `/image/delegationToken/<id>` (DelegationTokenImageNode)."""
    return _tokens(tokens, token_text)


def mechanism_name(code: int) -> str:
    """Return the SASL name of a mechanism, such as `SCRAM-SHA-256`; the code itself if it is unknown."""
    try:
        return ScramMechanism(code).mechanism_name
    except ValueError:
        return str(code)


def _mechanisms(scram: ScramImage) -> set[int]:
    """Return the known mechanisms and those of the image."""
    return {*ScramMechanism, *(record.mechanism for record in scram.records())}


def _keyless_json(user: str, info: CredentialInfo) -> str:
    return json_text({"name": user, "mechanism": mechanism_name(info.mechanism), "iterations": info.iterations})


def _scram_json(record: UserScramCredentialRecord, *, show_secrets: bool) -> str:
    def secret(value: bytes) -> str:
        return b64encode(value).decode("ascii") if show_secrets else HIDDEN

    return json_text(
        {
            "name": record.name,
            "mechanism": mechanism_name(record.mechanism),
            "iterations": record.iterations,
            "salt": secret(record.salt),
            "storedKey": secret(record.stored_key),
            "serverKey": secret(record.server_key),
        }
    )


def _tokens(tokens: TokensImage, text: Callable[[DelegationTokenRecord], str]) -> Directory:
    def child(name: str) -> Node | None:
        """Return the token with this id."""
        record = tokens.get(name)
        return None if record is None else file(text(record))

    return directory(lambda: (record.token_id for record in tokens.records()), child)


def _token_json(record: DelegationTokenRecord) -> str:
    return json_text(
        {
            "tokenId": record.token_id,
            "owner": record.owner,
            "requester": record.requester,
            "renewers": record.renewers,
            "issueTimestamp": record.issue_timestamp,
            "expiryTimestamp": record.expiration_timestamp,
            "maxTimestamp": record.max_timestamp,
        }
    )


# The tree of a metadata image: the content of each path of the shell.


KAFKA_EPOCH_OF_NOTHING = -1


@frozen(kw_only=True)
class ImageOrigin:
    """Where an image comes from: the name of the source, and the high-water mark if it is a log."""

    source: str
    high_watermark: Callable[[], int] | None = None
    acls: Origins = NO_ORIGINS
    """The locations of its ACLs."""


def image_tree(image: Image, origin: ImageOrigin, *, show_secrets: bool = False) -> Directory:
    """Return the tree of an image; nodes are computed on access.

    `/acl`, `/scram`, `/delegationToken` and `/features` contain the image as JSON and plain values, `/image` the same
    as Kafka's shell, `/local` facts about the source.
    """
    return computed(
        {
            "acl": lambda: acl_directory(image.acls, origin.acls),
            "delegationToken": lambda: token_directory(image.tokens),
            "features": lambda: _features(image.features),
            "image": lambda: _kafka_image(image, show_secrets=show_secrets),
            "local": lambda: _local(image, origin),
            "scram": lambda: scram_directory(image.scram, show_secrets=show_secrets),
        }
    )


def _kafka_image(image: Image, *, show_secrets: bool) -> Directory:
    return computed(
        {
            "acls": lambda: computed({"byId": lambda: ids_directory(image.acls, lambda rule: str(rule.acl))}),
            "cluster": lambda: computed({"brokers": lambda: _kafka_brokers(image.cluster)}),
            "delegationToken": lambda: kafka_token_directory(image.tokens),
            "features": lambda: _kafka_features(image.features),
            "provenance": lambda: file(_provenance(image)),
            "scram": lambda: kafka_scram_directory(image.scram, show_secrets=show_secrets),
        }
    )


def _kafka_brokers(cluster: ClusterImage) -> Directory:
    texts = {str(broker.broker_id): _constant(broker_text(broker)) for broker in cluster.brokers()}
    return computed(texts)


def _provenance(image: Image) -> str:
    epoch = image.epoch if image.end_offset else KAFKA_EPOCH_OF_NOTHING
    return provenance_text(image.end_offset - 1, epoch, image.timestamp)


def _features(features: FeaturesImage) -> Directory:
    def child(name: str) -> Node | None:
        """Return the level of a feature, with its name for metadata.version."""
        level = features.level(name)
        version_name = metadata_version_name(level) if name == METADATA_VERSION else None
        return file(f"{level} ({version_name})" if version_name else str(level)) if level else None

    return directory(lambda: (record.name for record in features.records()), child)


def _kafka_features(features: FeaturesImage) -> Directory:
    files: dict[str, Callable[[], Node]] = {
        f"finalized_{record.name}": _constant(str(record.feature_level))
        for record in features.records()
        if record.name != METADATA_VERSION
    }
    return computed({**files, "metadataVersion": _constant(metadata_version_text(features.level(METADATA_VERSION)))})


def _constant(text: str) -> Callable[[], Node]:
    return lambda: file(text)


def _local(image: Image, origin: ImageOrigin) -> Directory:
    texts: Mapping[str, Callable[[], str]] = {
        "behind": lambda: _behind(image, origin),
        "epoch": lambda: str(image.epoch),
        "offset": lambda: str(image.end_offset),
        "opaque": lambda: (
            f"{len(image.opaque)} records that aclog preserves without interpreting them, {image.opaque.size} bytes"
        ),
        "source": lambda: origin.source,
        "time": lambda: zoned_time(image.timestamp),
        "version": _version,
    }
    return computed({name: _lazily(text) for name, text in texts.items()})


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415  # slow to import

    return version("aclog")


def _lazily(text: Callable[[], str]) -> Callable[[], Node]:
    return lambda: File(text=text)


def _behind(image: Image, origin: ImageOrigin) -> str:
    """Return how many committed records are not in the image; 0 if the source is not a log."""
    mark = origin.high_watermark() if origin.high_watermark else image.end_offset
    return str(max(0, mark - image.end_offset))
