"""Which rule decides a request."""

from collections.abc import Iterator

from attrs import frozen

from aclog.analysis.deciding import deciding
from aclog.analysis.engine.host_partition import partition
from aclog.analysis.policy import Policy
from aclog.analysis.regions.names import Literal
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Region, Request
from aclog.analysis.regions.witness import witness
from aclog.analysis.rows.row_report import request_text
from aclog.analysis.rule_tests.can import access_query
from aclog.analysis.rule_tests.case_subject import CaseSubject
from aclog.analysis.rule_tests.outcome import Failure, Outcome
from aclog.analysis.rule_tests.rule_text import RuleText, rule_text
from aclog.analysis.rule_tests.tested_resource import resource_text
from aclog.authorizer.acl import AclOperation, ResourcePattern, ResourceType
from aclog.authorizer.origin import FileOrigin
from aclog.authorizer.settings import Settings


@frozen(kw_only=True)
class Reason:
    """An operation on one resource is decided by one rule, from every host."""

    test: str
    origin: FileOrigin
    subject: CaseSubject
    """One principal."""
    operation: AclOperation
    resource: ResourcePattern
    """LITERAL."""
    expected: RuleText

    @property
    def text(self) -> str:
        """What is expected."""
        what = f"{self.operation.name} {resource_text(self.resource)}"
        return f"{self.expected} decides that {self.subject.text} may {what}{self.subject.place}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:
        """Return what is asked."""
        return (access_query(self.subject, 1 << self.operation, self.resource, settings),)

    def run(self, policy: Policy) -> Outcome:
        """Return whether the rule decides it."""
        failures = []
        for request in self._requests(policy):
            rule = deciding(policy, request)
            if not self.expected.is_of(rule):
                found = f"{request_text(request)} is decided by {rule_text(rule)}"
                failures.append(Failure(found=found, request=request, decided_by=rule))
        return Outcome(case=self, failures=tuple(failures))

    def _requests(self, policy: Policy) -> Iterator[Request]:
        """Yield a request from each class of hosts that a rule on the resource can tell apart."""
        kind, name = ResourceType(self.resource.resource_type), self.resource.name
        acls = policy.acls.with_options(documented=policy.settings.documented, cidr=policy.settings.cidr)
        candidates = (rule.acl.host for rule in acls.candidates(kind, name)) if self.subject.host is None else ()
        classes = partition(candidates, cidr=policy.settings.cidr)
        principals = self.subject.principals(policy.settings)
        for number in range(classes.count) if self.subject.host is None else ():
            for hosts in classes.hosts(1 << number)[:1]:
                yield witness(
                    Region(
                        resource_type=kind,
                        operations=1 << self.operation,
                        principals=principals,
                        hosts=hosts,
                        names=(Literal(name=name),),
                    )
                )
        if self.subject.host is not None:
            yield Request(
                principal=self.subject.principal,
                host=self.subject.host,
                operation=self.operation,
                resource_type=kind,
                resource_name=name,
            )
