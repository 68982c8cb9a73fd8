"""Whether a principal can do all that an intent of a client needs."""

from attrs import frozen

from aclog.analysis.answers.holders import holders
from aclog.analysis.answers.intents import Intent, Need
from aclog.analysis.policy import Policy
from aclog.analysis.regions.hosts import EVERYWHERE, Hosts
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region_text import operations_text
from aclog.analysis.rule_tests.can import lacking_access
from aclog.analysis.rule_tests.case_subject import CaseSubject
from aclog.analysis.rule_tests.outcome import Failure, Outcome
from aclog.analysis.rule_tests.region_failure import region_failures
from aclog.analysis.rule_tests.tested_resource import resource_text
from aclog.authorizer.acl import ResourcePattern, ResourceType, code_name
from aclog.authorizer.origin import FileOrigin
from aclog.authorizer.settings import Settings


@frozen(kw_only=True)
class HasIntent:
    """All that a client with an intent asks for is allowed: on every resource that is named, from every host.

    Of a type of resource that is needed and not named, there is one on which it is allowed.
    """

    test: str
    origin: FileOrigin
    subject: CaseSubject
    intent: Intent
    resources: tuple[ResourcePattern, ...]
    """Those that are named, for people."""
    named: tuple[Need, ...]
    """What is needed on every name that the patterns cover."""
    some: tuple[Need, ...] = ()
    """What is needed on one name, whichever."""

    @property
    def text(self) -> str:
        """What is expected."""
        named = ", ".join(map(resource_text, self.resources))
        return f"{self.subject.text} can {self.intent} {named}{self.subject.place}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:
        """Return what is asked, by need."""
        principals = self.subject.principals(settings)
        return tuple(need.query(principals, self.subject.host) for need in (*self.named, *self.some))

    def run(self, policy: Policy) -> Outcome:
        """Return whether all of it is allowed."""
        principals = self.subject.principals(policy.settings)
        failures: list[Failure] = []
        for need in self.named:
            query = need.query(principals, self.subject.host)
            failures += region_failures(policy, lacking_access(policy, query), verb="is denied")
        failures += (_none(need) for need in self.some if not self._has_some(policy, need))
        return Outcome(case=self, failures=tuple(failures))

    def _has_some(self, policy: Policy, need: Need) -> bool:
        principals, host = self.subject.principals(policy.settings), self.subject.host
        everywhere = EVERYWHERE if host is None else Hosts(entries=(host,))
        found = [
            each for each in holders(policy, (need,), principals=principals, host=host) if everywhere in each.hosts
        ]
        named = {each for holder in found if not holder.principals.complement for each in holder.principals.named}
        if not principals.complement:
            others = [each.principals for each in found if each.principals.complement]
            return all(each in named or any(each in other for other in others) for each in principals.named)
        return any(
            set(holder.principals.named) - set(principals.named) <= named
            for holder in found
            if holder.principals.complement
        )


def _none(need: Need) -> Failure:
    kind = code_name(ResourceType, need.resource_type)
    return Failure(found=f"{operations_text(need.operations)} is allowed on no {kind} from every host")
