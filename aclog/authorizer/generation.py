"""The generation of Kafka's authorizer: which rules a broker or controller decides by.

The software that decides selects it, not metadata.version: a cluster finalized at 4.3 whose broker runs 4.4.0 decides
by the rules of 4.4 on that broker. docs/semantics.md has a column for each.
"""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import Enum

from aclog.authorizer.acl import AclOperation, ResourceType
from aclog.metalog.errors import ConfigError

RANGES_LEVEL = 32
"""The level of metadata.version (4.4-IV1) that only software of the generation 4.4 supports."""
CIDR_FEATURE = "aclog.cidr"
"""A node that decides by CIDR ranges (aclog.cidr.enabled) supports level 1 of it; it is never finalized."""
_BY_CONTROLLERS: Mapping[int, AbstractSet[int]] = {
    ResourceType.TOPIC: frozenset(
        {
            AclOperation.CREATE,
            AclOperation.DELETE,
            AclOperation.ALTER,
            AclOperation.ALTER_CONFIGS,
            AclOperation.DESCRIBE_CONFIGS,
        }
    ),
    ResourceType.GROUP: frozenset({AclOperation.ALTER_CONFIGS}),
    ResourceType.CLUSTER: frozenset(AclOperation) - {AclOperation.IDEMPOTENT_WRITE},
    ResourceType.USER: frozenset({AclOperation.CREATE_TOKENS}),
}
"""What controllers decide (kafka.server.ControllerApis), by the type of the resource. A broker forwards such a request
undecided, and its controller decides it for the client's principal and address. DESCRIBE of a topic is not among it: of
a deletion that is denied anyway, it only selects the error."""
_OLDEST, _NEWEST = (0, 9), (4, 4)
_VERSION = re.compile(r"(?P<major>[0-9]{1,2})\.(?P<minor>[0-9]{1,3})(\.[0-9]{1,3}){0,2}(-[0-9A-Za-z.]+)?")
_SHOWN = 40


class Generation(Enum):
    """A generation, named by the first Kafka that decides by it; its value is that version."""

    V4_3 = "4.3"
    """Hosts of ACLs are compared as texts: one with a slash matches nobody. All versions up to 4.3."""
    V4_4 = "4.4"
    """A host with a slash is a range of addresses (KIP-1276)."""

    @property
    def has_ranges(self) -> bool:
        """Whether the host of an ACL may be a range of addresses."""
        return self is Generation.V4_4

    def __str__(self) -> str:
        return f"Kafka {self.value}"


def generation_of_version(text: str) -> Generation:
    """Return the generation of a release of Kafka, such as 4.3.1 or 4.4.

    Raises:
        ConfigError: the text is no version, or one of a Kafka newer than those whose decisions are known.

    """
    found = _VERSION.fullmatch(text)
    if found is None:
        raise ConfigError(f"{text[:_SHOWN]!r} is no version of Kafka: expected one such as 4.3.1 or 4.4.0")
    version = int(found["major"]), int(found["minor"])
    if not _OLDEST <= version <= _NEWEST:
        newest = ".".join(map(str, _NEWEST))
        raise ConfigError(f"how Kafka {text[:_SHOWN]} decides is not known: expected a version up to {newest}")
    return Generation.V4_4 if version >= (4, 4) else Generation.V4_3


def named_generation(
    version: str | None, ranges: bool | None, *, version_name: str, ranges_text: str
) -> Generation | None:
    """Return the generation that two settings name: a release of Kafka, or whether hosts may be ranges.

    None if neither is given. `version_name` is what the first one is called, `ranges_text` how the second one is given.

    Raises:
        ConfigError: no version of a known Kafka, or the two differ; the text begins with `version_name`.

    """
    if version is None:
        return None if ranges is None else Generation.V4_4 if ranges else Generation.V4_3
    try:
        named = generation_of_version(version)
    except ConfigError as error:
        raise ConfigError(f"{version_name}: {error}") from None
    if ranges is not None and ranges is not named.has_ranges:
        raise ConfigError(f"{version_name} {version} and {ranges_text} differ: expected one of them")
    return named


def generation_of_level(newest_supported: int) -> Generation:
    """Return the generation of a server by the newest level of metadata.version that it supports."""
    return Generation.V4_4 if newest_supported >= RANGES_LEVEL else Generation.V4_3


def deciding_level(newest: int, *, has_ranges: bool) -> int:
    """Return the level that stands for how a node decides.

    `newest`: the newest level of metadata.version that it supports. `has_ranges`: whether it is a node of ours that
    takes hosts for ranges, whatever that level is (aclog.cidr.enabled).
    """
    return max(newest, RANGES_LEVEL) if has_ranges else newest


def controllers_decide(resource_type: int, operation: int) -> bool:
    """Return whether a controller may be the node that decides a request, by the codes of its type and operation.

    Brokers decide all other requests, and some of these, too (ALTER on the cluster for AlterReplicaLogDirs).
    """
    return operation in _BY_CONTROLLERS.get(resource_type, frozenset())
