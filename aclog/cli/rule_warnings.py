"""Warnings about ACLs that no request can create, and about ACLs that match nobody (docs/semantics.md)."""

from collections.abc import Iterable

from attrs import define, field

from aclog.authorizer.acl import AclPermissionType, StandardAcl, StandardAclWithId, acl_text
from aclog.authorizer.creation_checks import refusal
from aclog.authorizer.explanation_text import located_text
from aclog.authorizer.odd_rules import failure_in_kafka
from aclog.authorizer.origin import NO_ORIGINS, Origins
from aclog.authorizer.unmatched import reasons_unmatched
from aclog.metalog.errors import ConfigError
from aclog.metalog.uuids import uuid_text
from aclog.terminal.notices import warn


def warn_of_each(rules: Iterable[StandardAclWithId], place: str) -> int:
    """Warn of every ACL that no request can create, or that matches nobody; return on how many Kafka 4.3.1 throws.

    `place` names the state. Ranges are not told one by one: where they are enabled, they match
    (aclog.cli.image_report.CidrWatch counts them).
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


def warn_of_unmatched(acls: Iterable[StandardAcl]) -> None:
    """Warn of every ACL that matches nobody, for a command that adds a few."""
    for acl in acls:
        for reason in reasons_unmatched(acl, cidr=False):
            warn(f"{acl_text(acl)}: {reason}")


@define(eq=False, kw_only=True)
class WrittenRules:
    """The check of ACLs that a command writes, and a count of those that deserve a warning; owned by the command."""

    keep_odd_rules: bool
    _odd: int = field(default=0, init=False)
    _failing: int = field(default=0, init=False)
    _unmatched: int = field(default=0, init=False)
    _denying: int = field(default=0, init=False)
    _first_odd: str = field(default="", init=False)
    _first_unmatched: str = field(default="", init=False)

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
        reason = next(reasons_unmatched(acl, cidr=False), None)
        if reason is not None:
            self._unmatched += 1
            self._denying += acl.permission_type == AclPermissionType.DENY
            self._first_unmatched = self._first_unmatched or f"{located_text(acl, origins)}: {reason}"

    def report(self) -> None:
        """Print a warning for each kind, if there is any."""
        if self._odd:
            warn(
                f"{self._odd} ACL(s) that CreateAcls refuses, on {self._failing} of which Kafka 4.3.1 throws. "
                f"The first: {self._first_odd}"
            )
        if self._unmatched:
            warn(
                f"{self._unmatched} ACL(s), {self._denying} of them DENY, probably match nobody. "
                f"The first: {self._first_unmatched}"
            )
