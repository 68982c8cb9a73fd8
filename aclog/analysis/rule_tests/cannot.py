"""What a principal cannot do: on no name, none of the operations."""

from attrs import frozen

from aclog.analysis.difference import allowed
from aclog.analysis.policy import Policy
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region_text import operations_text
from aclog.analysis.rule_tests.can import access_query
from aclog.analysis.rule_tests.case_subject import CaseSubject
from aclog.analysis.rule_tests.outcome import Outcome
from aclog.analysis.rule_tests.region_failure import region_failures
from aclog.analysis.rule_tests.tested_resource import resource_text
from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.origin import FileOrigin
from aclog.authorizer.settings import Settings


@frozen(kw_only=True)
class Cannot:
    """None of some operations is allowed on a name, or on any name that begins with a prefix, from any host."""

    test: str
    origin: FileOrigin
    subject: CaseSubject
    operations: int
    """A mask (aclog.analysis.regions.operations)."""
    resource: ResourcePattern

    @property
    def text(self) -> str:
        """What is expected."""
        what = f"{operations_text(self.operations)} {resource_text(self.resource)}"
        return f"{self.subject.text} cannot {what}{self.subject.place}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:
        """Return what is asked."""
        return (access_query(self.subject, self.operations, self.resource, settings),)

    def run(self, policy: Policy) -> Outcome:
        """Return whether none of it is allowed."""
        (query,) = self.queries(policy.settings)
        return Outcome(case=self, failures=region_failures(policy, allowed(policy, query), verb="is allowed"))
