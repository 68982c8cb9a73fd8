"""The native core (aclog-native), if it is installed: the same decisions over the same flat base, in compiled code.

Whoever holds a core asks it first. It answers -1 or -2 where it leaves the request to the Python path, which is whole
without it and is the reference for every answer.
"""

from typing import Protocol

from aclog.authorizer.index import layout
from aclog.metalog.native import native

ASK_PYTHON = -1
"""A core's mask where it does not decide: a principal on which Kafka throws, a text that is not UTF-8, an IPv6 address
or range of a rare spelling, an address in more ranges than it has room for."""
NO_RULE, RULE_OF_PYTHON = -1, -2
"""A core's rule if none matches, and where it leaves the order of the scan to the Python path."""

DOCUMENTED, IN_RANGES = 1, 2
"""Bits of a core's semantics: LITERAL `*` covers names that begin with `*`, too; the host of an ACL may be a range."""


class Core(Protocol):
    """A base, or a base and changes, in the native core. Immutable: `put` returns another one."""

    def mask(self, principal: str, host: str, resource_type: int, name: str, semantics: int, /) -> int:
        """Return the mask of all ACLs that cover the name and match the subject (AclIndex.mask), or ASK_PYTHON."""

    def has_candidate(self, resource_type: int, name: str, semantics: int, /) -> int:
        """Return 1 if a resource pattern with ACLs covers the name, 0 if none does, or ASK_PYTHON."""

    def rule(self, principal: str, host: str, operation: int, resource_type: int, name: str, semantics: int, /) -> int:
        """Return the row of the base that Kafka names, NO_RULE, or RULE_OF_PYTHON."""

    def put(
        self, resource_type: int, name: str, literal: bool, principal: str, host: str, mask: int, rules: int, /
    ) -> "Core":
        """Return the core after a change: the mask of the touched cell now, and the ACLs of its resource pattern.

        A mask of -1: nothing is left of the cell but what the base does not have either.
        """


class BaseCore(Core, Protocol):
    """A base without changes."""

    def read_ranges(self) -> None:
        """Read the ranges that are hosts, which the first question in ranges does otherwise; without the GIL."""


def core_of(flat: memoryview) -> BaseCore | None:
    """Return the core of a flat base; None if the native core is not installed or does not read this base."""
    if native is None or native.LAYOUT != layout.VERSION:
        return None
    try:
        found: BaseCore = native.Base(flat)
    except (AttributeError, ValueError):
        return None
    return found
