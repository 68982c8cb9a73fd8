"""Whether a policy decides as another one does: on every request, or on some that were made."""

from attrs import frozen

from aclog.analysis.deciding import deciding, is_allowed
from aclog.analysis.difference import differences
from aclog.analysis.policy import Policy
from aclog.analysis.regions.query import Query
from aclog.analysis.regions.region import Direction
from aclog.analysis.rows.row_report import request_text
from aclog.analysis.rule_tests.other_policy import Accesses, OtherPolicy
from aclog.analysis.rule_tests.outcome import Failure, Outcome
from aclog.analysis.rule_tests.region_failure import region_failures
from aclog.authorizer.origin import FileOrigin
from aclog.authorizer.settings import Settings


@frozen(kw_only=True)
class SameAs:
    """Every request is decided as another policy decides it; with accesses, every one of these."""

    test: str
    origin: FileOrigin
    other: OtherPolicy
    accesses: Accesses | None = None

    @property
    def text(self) -> str:
        """What is expected."""
        what = "every request" if self.accesses is None else f"every access of {self.accesses.name}"
        return f"{what} is decided as by {self.other.name}"

    def queries(self, settings: Settings) -> tuple[Query, ...]:  # noqa: ARG002  # of Case
        """Return everything."""
        return (Query(),)

    def run(self, policy: Policy) -> Outcome:
        """Return whether nothing is decided otherwise. Raises MetadataError: what it compares with cannot be read."""
        other = self.other.policy(policy.settings)
        if self.accesses is not None:
            return Outcome(case=self, failures=self._flips(policy, other, self.accesses))
        found = list(differences(other, policy))
        gained = (each.region for each in found if each.direction is Direction.GAINED)
        lost = (each.region for each in found if each.direction is Direction.LOST)
        was = self.other.name
        return Outcome(
            case=self,
            failures=(
                *region_failures(policy, gained, verb=f"is allowed, and denied by {was}"),
                *region_failures(policy, lost, verb=f"is denied, and allowed by {was}"),
            ),
        )

    def _flips(self, policy: Policy, other: Policy, accesses: Accesses) -> tuple[Failure, ...]:
        found = []
        for request, count in accesses.counts().items():
            now = is_allowed(policy, request)
            if now is not is_allowed(other, request):
                times = "" if count == 1 else f" ({count:,} times)"
                verdict = "allowed, and was denied" if now else "denied, and was allowed"
                what = f"{request_text(request)}{times} is {verdict}"
                found.append(Failure(found=what, request=request, decided_by=deciding(policy, request)))
        return tuple(found)
