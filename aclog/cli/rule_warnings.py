"""Warnings about ACLs that no request can create, and about ACLs that match nobody (docs/semantics.md)."""

from collections.abc import Callable, Iterable

from attrs import define, field

from aclog.authorizer.acl import AclPermissionType, StandardAcl, StandardAclWithId, acl_text
from aclog.authorizer.cidr import is_cidr
from aclog.authorizer.creation_checks import refusal
from aclog.authorizer.explanation_text import located_text
from aclog.authorizer.generation import Generation
from aclog.authorizer.odd_rules import failure_in_kafka
from aclog.authorizer.origin import NO_ORIGINS, Origins
from aclog.authorizer.unmatched import reasons_unmatched
from aclog.metalog.errors import ConfigError
from aclog.metalog.uuids import uuid_text
from aclog.snapshots.deciding_kafka import deciding_kafka
from aclog.snapshots.image import Image
from aclog.terminal.notices import warn


def warn_of_each(rules: Iterable[StandardAclWithId], place: str) -> int:
    """Warn of every ACL that no request can create, or that matches nobody; return on how many Kafka 4.3.1 throws.

    `place` names the state. Ranges are not named one by one: since Kafka 4.4 they match
    (aclog.cli.image_report.RangeWatch counts them).
    """
    failing = 0
    for rule in rules:
        refused = refusal(rule.acl)
        failure = None if refused is None else failure_in_kafka(rule.acl)
        failing += failure is not None
        throws = f"; Kafka 4.3.1 throws on {failure}" if failure else ""
        creation = [] if refused is None else [f"CreateAcls refuses it: {refused}{throws}"]
        for problem in (*creation, *reasons_unmatched(rule.acl, cidr=True)):
            id_ = "" if rule.id is None else f" (id {uuid_text(rule.id)})"
            warn(f"{place}: {acl_text(rule.acl)}{id_}: {problem}")
    return failing


def matches_ranges(image: Image) -> bool:
    """Return whether all nodes that decide on a state are known to take hosts of ACLs for ranges, whatever is added."""
    return deciding_kafka(image, None, controllers=True).stated is Generation.V4_4


def warn_of_unmatched(acls: Iterable[StandardAcl], has_ranges: Callable[[], bool]) -> None:
    """Warn of every ACL that matches nobody, for a command that adds a few.

    `has_ranges` returns whether all that decide are known to take hosts for ranges; called if one of the ACLs has one.
    """
    acls = list(acls)
    cidr = any(is_cidr(acl.host) for acl in acls) and has_ranges()
    for acl in acls:
        for reason in reasons_unmatched(acl, cidr=cidr):
            warn(f"{acl_text(acl)}: {reason}")


@define(eq=False)
class _Unmatched:
    """A count of ACLs that match nobody."""

    count: int = 0
    denying: int = 0
    first: str = ""

    def add(self, acl: StandardAcl, reason: str, origins: Origins) -> None:
        """Count an ACL."""
        self.count += 1
        self.denying += acl.permission_type == AclPermissionType.DENY
        self.first = self.first or f"{located_text(acl, origins)}: {reason}"


@define(eq=False, kw_only=True)
class WrittenRules:
    """The check of ACLs that a command writes, and a count of those that deserve a warning; owned by the command."""

    keep_odd_rules: bool
    _odd: int = field(default=0, init=False)
    _failing: int = field(default=0, init=False)
    _first_odd: str = field(default="", init=False)
    _unmatched: _Unmatched = field(factory=_Unmatched, init=False)
    _without_ranges: _Unmatched = field(factory=_Unmatched, init=False)
    """Of those that match nobody where hosts are ranges, too."""

    def check(self, acl: StandardAcl) -> None:
        """Check an ACL that is to be written. Raises ConfigError: CreateAcls would refuse it, and it is not kept."""
        refused = None if self.keep_odd_rules else refusal(acl)
        if refused is not None:
            raise ConfigError(f"{refused} (CreateAcls refuses it; --keep-odd-rules writes it)")

    def add(self, acl: StandardAcl, origins: Origins = NO_ORIGINS) -> None:
        """Count an ACL that was checked and is written."""
        refused = refusal(acl) if self.keep_odd_rules else None
        if refused is not None:
            self._odd += 1
            self._failing += failure_in_kafka(acl) is not None
            self._first_odd = self._first_odd or f"{located_text(acl, origins)}: {refused}"
        for tally, cidr in ((self._unmatched, False), (self._without_ranges, True)):
            reason = next(reasons_unmatched(acl, cidr=cidr), None)
            if reason is not None:
                tally.add(acl, reason, origins)

    def report(self, image: Image | None = None) -> None:
        """Print a warning for each kind, if there is any. `image`: the state that they are written into."""
        if self._odd:
            warn(
                f"{self._odd} ACL(s) that CreateAcls refuses, on {self._failing} of which Kafka 4.3.1 throws. "
                f"The first: {self._first_odd}"
            )
        has_ranges = image is not None and matches_ranges(image)
        unmatched = self._without_ranges if has_ranges else self._unmatched
        if unmatched.count:
            warn(
                f"{unmatched.count} ACL(s), {unmatched.denying} of them DENY, probably match nobody. "
                f"The first: {unmatched.first}"
            )
