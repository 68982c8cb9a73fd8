"""Warns of rules whose host was meant as a range: Kafka 4.3.1 never matches one, so a DENY fails open."""

from collections.abc import Iterable, Iterator

from aclog.authorizer.acl import AclPermissionType, StandardAcl, StandardAclWithId
from aclog.authorizer.cidr import looks_like_cidr
from aclog.terminal.notices import warn


class CidrWatch:
    """Counts such rules on their way through; `report` says so once, on stderr."""

    def __init__(self) -> None:
        self._count = 0
        self._denying = 0
        self._example: StandardAcl | None = None

    def watch(self, rules: Iterable[StandardAclWithId]) -> Iterator[StandardAclWithId]:
        """The same rules, looked at."""
        for rule in rules:
            if "/" in rule.acl.host and looks_like_cidr(rule.acl.host):
                self._count += 1
                self._denying += rule.acl.permission_type == AclPermissionType.DENY
                self._example = self._example or rule.acl
            yield rule

    def report(self) -> None:
        """Warn if there was one."""
        if self._count:
            warn(
                f"{self._count} rule(s), {self._denying} of them DENY, have a range as host, which Kafka 4.3.1 never "
                f"matches: such a DENY does not deny. The first: {self._example}"
            )
