"""Finds what `aclog unused` finds in an index of last use, or `aclog usage` in an access log."""

from pathlib import Path

from attrs import evolve, frozen

from aclog.authorizer.origin import Origins
from aclog.authorizer.settings import SUPER_USERS_CONFIG, Settings
from aclog.cli.access_log import AccessLog, Judging, unknown_kafka
from aclog.cli.finders import signature_of
from aclog.cli.flags.common import AccessesFlags
from aclog.cli.unused_findings import by_index, by_log, none_removable, unused_then
from aclog.cli.unused_proof import decided_by, proved
from aclog.console.findings import LookResult, Subject
from aclog.metalog.clock import current_time_ms
from aclog.metalog.errors import ConfigError
from aclog.sources.logs import cluster_id_of
from aclog.usage.index.database import FILE
from aclog.usage.index.usage_index import UsageIndex
from aclog.usage.report import report
from aclog.usage.rules import deciding_rules_of_log, deciding_rules_of_state
from aclog.usage.unused import StateRules
from aclog.usage.unused_report import UnusedQuestion, UnusedReport

_HOUR_MS = 3_600_000


@frozen(kw_only=True)
class IndexFinder:
    """Asks an index; and proves what it says over a log, if there is one."""

    index: Path
    question: UnusedQuestion
    log: Path | None
    """The directory of the source, if it is one."""
    proof: AccessesFlags | None
    origins: Origins

    def look(self, subject: Subject) -> LookResult:
        """Return which rules of a state are unused. Raises MetadataError, OSError: nobody can tell."""
        acls = subject.image.acls
        with UsageIndex.open(self.index) as index:
            if self.log is not None:
                index.check_cluster(cluster_id_of(self.log))
            unused_report, proof = UnusedReport.of(index, StateRules.of(acls), self.question), None
            if self.proof is not None:
                proof = proved(unused_report, _judging(self.log, subject, decided_by(unused_report)), self.proof)
            unknown = subject.premises.without({SUPER_USERS_CONFIG, *index.settled_properties()})
            return by_index(
                unused_report.without_removals() if unknown else unused_report, acls, self.origins, proof, unknown
            )

    def had(self, then: Subject, newest: LookResult) -> frozenset[str]:
        """Return the keys of unused rules that an earlier state had, too."""
        return unused_then(then.image.acls, newest)

    def signature(self) -> object:
        """Return what changes with the index."""
        return signature_of([str(self.index / FILE)])


@frozen(kw_only=True)
class LogFinder:
    """Counts an access log."""

    accesses: AccessesFlags
    days: int
    log: Path | None
    is_kafka_named: bool
    """Whether a flag names the Kafka that decides; else that decides which the brokers run."""
    origins: Origins

    def look(self, subject: Subject) -> LookResult:
        """Return which rules of a state are unused. Raises MetadataError, OSError: nobody can tell."""
        # Those of the state name the Kafka of its brokers: in a log, they may have run another one before.
        settings = evolve(subject.policy.settings, is_kafka_stated=self.is_kafka_named)
        judging = _judging(self.log, subject, settings)
        counted, judged = AccessLog.of(self.accesses).count_window(judging, self.days, None, with_coverage=True)
        if counted.logged_denials and counted.logged_denials == counted.rows.total:
            raise ConfigError(
                f"--accesses: all {counted.rows.total:,} accesses are denials, by which no rule is ever needed: Kafka "
                "logs what it allows only if kafka.authorizer.logger is at DEBUG"
            )
        skipped = sum(counted.rejects.values())
        notes = [f"{skipped:,} lines are not accesses and were skipped"] if skipped else []
        if text := unknown_kafka(judging.rules):
            notes.append(text)
        usage_report = report(counted.accesses, judged, counted.rows, counted.days, top=0, unread=counted.unread)
        if unknown := subject.premises.without({SUPER_USERS_CONFIG}):
            usage_report, notes = usage_report.without_proof(), [*notes, none_removable(unknown)]
        return by_log(usage_report, subject.image.acls, self.origins, notes)

    def had(self, then: Subject, newest: LookResult) -> frozenset[str]:
        """Return the keys of unused rules that an earlier state had, too."""
        return unused_then(then.image.acls, newest)

    def signature(self) -> object:
        """Return what changes every hour: a log grows all the time, and is read whole."""
        return current_time_ms() // _HOUR_MS


def _judging(log: Path | None, subject: Subject, settings: Settings) -> Judging:
    """Return what judges accesses: of a log all that it ever had, else the state that is looked at."""
    if log is None:
        rules, settings = deciding_rules_of_state(subject.image, settings)
    else:
        rules, settings = deciding_rules_of_log(log, settings)
    return Judging(rules=rules, settings=settings, own_time=log is not None)
