"""What is known beside the rules: names that exist, principals that were seen, accesses, habits of the cluster."""

from collections.abc import Collection

from attrs import frozen

from aclog.analysis.regions.existing_names import ExistingNames
from aclog.analysis.regions.region import Request

SEPARATORS = ".-_"
"""What separates the parts of names unless told otherwise."""


@frozen(eq=False, kw_only=True)
class LintContext:
    """Facts that lints use. What is not known (None, or empty) silences the lints that need it."""

    topics: ExistingNames | None = None
    """The topics that exist."""
    groups: ExistingNames | None = None
    """The consumer groups that exist."""
    seen_principals: frozenset[str] = frozenset()
    """Principals that are known to make requests; those of the accesses count as well."""
    accesses: Collection[Request] = ()
    """Requests that were made, whatever the answer was; hosts in the form of `host_address`."""
    broker_version: tuple[int, ...] | None = None
    """The oldest Kafka among the brokers, such as (3, 9, 1); None: a current one."""
    broker_principals: frozenset[str] = frozenset()
    """The principals of brokers: cluster rights are theirs."""
    separators: str = SEPARATORS
    """The characters that separate the parts of names."""
    principal_types: frozenset[str] = frozenset(("User",))
    """The types of principals that the cluster's principal builder makes."""

    def seen(self) -> frozenset[str]:
        """Return every principal that is known to make requests."""
        return self.seen_principals | {access.principal for access in self.accesses}
