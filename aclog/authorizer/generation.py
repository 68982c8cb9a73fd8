"""The generation of Kafka's authorizer: which rules a broker or controller decides by.

The software that decides selects it, not metadata.version: a cluster finalized at 4.3 whose broker runs 4.4.0 decides
by the rules of 4.4 on that broker. docs/semantics.md has a column for each.
"""

import re
from collections.abc import Iterable
from enum import Enum

from aclog.metalog.errors import ConfigError

RANGES_LEVEL = 32
"""The level of metadata.version (4.4-IV1) that only software of the generation 4.4 supports."""
CIDR_FEATURE = "aclog.cidr"
"""A node that decides by CIDR ranges (aclog.cidr.enabled) supports level 1 of it; it is never finalized."""
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


EVERY_GENERATION = frozenset(Generation)


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


def generation_of_level(newest_supported: int) -> Generation:
    """Return the generation of a server by the newest level of metadata.version that it supports."""
    return Generation.V4_4 if newest_supported >= RANGES_LEVEL else Generation.V4_3


def generations_of_levels(newest_supported: Iterable[int]) -> frozenset[Generation]:
    """Return the generations of several servers: more than one while a cluster is upgraded, none without a server."""
    return frozenset(map(generation_of_level, newest_supported))
