"""What became of a case."""

from typing import TYPE_CHECKING

from attrs import frozen

from aclog.analysis.regions.region import Region, Request
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.generation import Generation

if TYPE_CHECKING:
    from aclog.analysis.rule_tests.case import Case


@frozen(kw_only=True)
class Failure:
    """One way in which a case does not hold."""

    found: str
    """What is so instead, as a sentence without its end: `READ on TOPIC bill.in is denied, from any host`."""
    request: Request | None = None
    """A request that shows it; None if no single one does."""
    decided_by: StandardAcl | str | None = None
    """What decides it (aclog.analysis.deciding)."""
    region: Region | None = None
    """All requests of which `request` is an example, if there are several."""
    only: Generation | None = None
    """That of Kafka by which alone it is so, if several may decide; `found` says it, too."""


@frozen(kw_only=True)
class Outcome:
    """A case that was run."""

    case: "Case"
    failures: tuple[Failure, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether what the case expects holds."""
        return not self.failures
