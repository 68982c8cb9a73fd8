"""Finds what `aclog accesses unused` finds in an index of last use, or `aclog accesses usage` in an access log."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow.compute as pc
from attrs import evolve

from aclog.analysis.lint.finding import Severity
from aclog.analysis.lint_report import RULE_FIELDS, LocatedRule
from aclog.authorizer.acl import AclBindingFilter, Origins, StandardAcl, object_of_rule
from aclog.authorizer.acls_image import AclsImage, RuleChange, content_of
from aclog.authorizer.settings import SUPER_USERS_CONFIG, Settings
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.cli.finders import hour_of_logs, signature_of_database
from aclog.cli.flags.accesses import AccessesFlags
from aclog.console.findings import Item, Kind, LookResult, Need, Subject, Use, Uses
from aclog.metalog.codec import encode_acl
from aclog.metalog.columns import Int64s
from aclog.metalog.errors import ConfigError, plural
from aclog.metalog.primitives import ZERO
from aclog.metalog.values import frozen
from aclog.ops.unused import brokers_text, decided_by, proved, silence_text, time_of, unread_of_rule, why_unjudged
from aclog.ops.usage import DEFAULT_DAYS, Judging, days_text, unknown_kafka, window_report
from aclog.sources.logs import cluster_id_of
from aclog.usage.index.database import FILE
from aclog.usage.index.lives import digests
from aclog.usage.index.stored import index_place, reading_index
from aclog.usage.index.used import EVENTS, LastUse
from aclog.usage.judging import UsageReport
from aclog.usage.rules import deciding_rules_of_log, deciding_rules_of_state
from aclog.usage.unused import ANSWERS, Answer, StateRules
from aclog.usage.unused_report import UnusedQuestion, UnusedReport
from aclog.usage.window import micros_of, unread_text

# Findings about the rules of a state, from accesses.

_FIRST, _LAST, _NEEDED = (EVENTS.index(each) for each in ("first matched", "last matched", "last needed"))
_NEVER = (Answer.NEVER_MATCHED, Answer.NEVER_NEEDED)
_HEADS = {
    Answer.NEVER_MATCHED: "never matched",
    Answer.NEVER_NEEDED: "never needed",
    Answer.NOT_JUDGED: "not judged",
}
_TEXTS = {
    Answer.NEVER_MATCHED: "no access matched the rule",
    Answer.NEVER_NEEDED: "each access would have been decided the same without it",
}
_STAYS = "it is kept: removing it together with the removable rules could change a decision"
_MAX_NAMES = 5
"""Holes, and days without accesses, that are named."""


def none_removable(unknown: Premises) -> str:
    """Return why no rule is known to be removable."""
    return f"no rule is known to be removable: {'; '.join(each.note() for each in unknown.unknown)}"


def by_index(
    report: UnusedReport, acls: AclsImage, origins: Origins, proof: str | None, unknown: Premises = ALL_KNOWN
) -> LookResult:
    """Return the answers of an index.

    `proof`: the result of a replayed log, if any. `unknown`: of what decides; then no rule is removable.
    """
    result, items, uses = report.unused, list[Item](), dict[StandardAcl, Use]()
    window = f"{time_of(result.window.start)} to {time_of(result.window.until)}"
    numbers = np.flatnonzero(~result.judgement.is_(Answer.NEEDED))
    last = report.last_use(np.flatnonzero(result.judgement.is_(Answer.NEVER_NEEDED)))
    for number in numbers.tolist():
        acl, answer = result.rules.rule(number).acl, ANSWERS[result.judgement.answer[number]]
        if answer not in _NEVER:
            uses[acl] = _unjudged(why_unjudged(result, number))
            continue
        life = int(result.lives.number[number])
        first, latest = last.use(life, _FIRST), last.use(life, _LAST)
        span = "" if first is None or latest is None else f"; matched {time_of(first.time)} to {time_of(latest.time)}"
        text = f"{_TEXTS[answer]}{span}; {window}, with logs of every broker"
        items.append(_item(acl, answer, text, origins, removable=bool(result.removable[number])))
        uses[acl] = _unused(answer, span)
    notes = [f"gap: {silence_text(each)}" for each in result.silences[:_MAX_NAMES]]
    if len(result.silences) > _MAX_NAMES:
        notes.append(f"and {len(result.silences) - _MAX_NAMES:,} more gaps")
    if result.unread:
        notes.append(f"{_HEADS[Answer.NOT_JUDGED]}: {unread_text(result.unread)}")
    if unknown:
        notes.append(none_removable(unknown))
    needs = _Needs.of(report, np.flatnonzero(result.judgement.is_(Answer.NEEDED)))
    judged = Uses(
        by_rule=uses,
        is_judged=_rules_of(acls),
        last_need=needs.last,
        since=time_of(result.window.start),
        until=time_of(result.window.until),
        sources=brokers_text(report),
        notes=tuple(notes),
    )
    return _answer(items, judged, acls, proof)


@frozen(eq=False, kw_only=True)
class _Needs:
    """The last access that needed each rule, by an index; a million rules are numbers, not objects."""

    keys: Any
    """(2, n): the halves of the digests of the rules; ascending by the first half."""
    lives: Int64s
    """By key: the life of the rule."""
    uses: LastUse

    @classmethod
    def of(cls, report: UnusedReport, numbers: Int64s) -> Self:
        """Read the last uses of some rules, by number."""
        rules, lives = report.unused.rules, report.unused.lives.number[numbers]
        keys = _halves(rules.acls.records())[:, numbers]
        order = np.argsort(keys[0])
        return cls(keys=keys[:, order], lives=lives[order], uses=report.last_use(numbers))

    def last(self, acl: StandardAcl) -> Need | None:
        """Return the last access that needed a rule."""
        first, second = _halves([encode_acl(acl, ZERO)])[:, 0]
        low, high = (int(np.searchsorted(self.keys[0], first, side)) for side in ("left", "right"))
        for life in self.lives[low:high][self.keys[1, low:high] == second].tolist():
            use = self.uses.use(life, _NEEDED)
            return None if use is None else Need(time=time_of(use.time), principal=use.principal)
        return None


def _halves(records: Iterable[bytes]) -> Any:
    """Return the digests of rules, given as records, as two rows of numbers."""
    return np.ascontiguousarray(digests(records).view(np.uint64).T)


def by_log(report: UsageReport, acls: AclsImage, origins: Origins, notes: Sequence[str]) -> LookResult:
    """Return the answers of an access log about the rules that are in force."""
    rows = _rows(report)
    window = f"{time_of(micros_of(report.window.start))} to {time_of(micros_of(report.window.until))}"
    items, uses, needs = list[Item](), dict[StandardAcl, Use](), dict[StandardAcl, Need]()
    for rule in acls:
        row = rows.get(tuple(map(object_of_rule(rule.acl).__getitem__, RULE_FIELDS)))
        answer = Answer.NOT_JUDGED if row is None else Answer(row["answer"])
        if row is not None and answer is Answer.NEEDED:
            if row["last_needed_at"] is not None:
                needs[rule.acl] = Need(
                    time=time_of(micros_of(row["last_needed_at"])), principal=row["last_needed_by"] or ""
                )
            continue
        if row is None or answer is Answer.NOT_JUDGED:
            unread = 0 if row is None else row["unread"]
            why = unread_of_rule(unread) if unread else _why_unjudged(row, report)
            uses[rule.acl] = _unjudged(why, None if row is None or unread else _last(row, report))
            continue
        latest = row["last_matched_at"]
        span = "" if latest is None else f"; matched {row['matched']:,} times, last {time_of(micros_of(latest))}"
        text = f"{_TEXTS[answer]}{span}; {window}"
        items.append(_item(rule.acl, answer, text, origins, removable=row["removable"]))
        uses[rule.acl] = _unused(answer, span)
    judged = Uses(
        by_rule=uses,
        is_judged=_rules_of(acls),
        last_need=needs.get,
        since=time_of(micros_of(report.window.start)),
        until=time_of(micros_of(report.window.until)),
        notes=(*notes, *_gaps(report)),
    )
    return _answer(items, judged, acls)


def unused_then(then: AclsImage, newest: LookResult) -> frozenset[str]:
    """Return the keys of unused rules that an earlier state also had: they are unused by the same accesses."""
    return frozenset(each.key for each in newest.items if then.find(each.rules[0].acl) is not None)


def _rows(report: UsageReport) -> Mapping[tuple[str, ...], dict[str, Any]]:
    """Return the rows of rules that are in force at the end, by the seven texts of a rule."""
    rows = report.rules.filter(pc.is_null(report.rules.column("in_force_to")))
    records = rows.select(
        [
            *RULE_FIELDS,
            "in_force_from",
            "answer",
            "matched",
            "last_matched_at",
            "last_needed_at",
            "last_needed_by",
            "removable",
            "unread",
        ]
    ).to_pylist()
    return {tuple(row[key] for key in RULE_FIELDS): row for row in records}


def _gaps(report: UsageReport) -> Iterator[str]:
    if not report.has_times:
        yield "the source has no history: all rules count as in force in the whole window"
    if report.unread:
        yield f"{_HEADS[Answer.NOT_JUDGED]}: {unread_text(report.unread)}"
    holes = [str(day) for day in report.holes.column("day").to_pylist() if day is not None]
    if holes:
        more = f" and {len(holes) - _MAX_NAMES:,} more" if len(holes) > _MAX_NAMES else ""
        yield (
            f"no accesses on {', '.join(holes[:_MAX_NAMES])}{more} ({days_text(len(holes), report)}): "
            "the cluster was idle, or the log is incomplete"
        )


def _item(acl: StandardAcl, answer: Answer, text: str, origins: Origins, *, removable: bool) -> Item:
    return Item(
        kind=Kind.UNUSED,
        key=f"unused {content_of(acl).hex()}",
        severity=Severity.WARNING,
        name=_HEADS[answer],
        text=text,
        rules=(LocatedRule(acl=acl, origins=origins.of(acl)),),
        changes=(RuleChange(added=False, acl=acl),) if removable else (),
        advice="" if removable else _STAYS,
    )


def _unused(answer: Answer, span: str) -> Use:
    """Return the use of a rule that no access needed; `span`: when some matched it."""
    verdict = "Not used" if answer is Answer.NEVER_MATCHED else "Not needed"
    return Use(is_unused=True, text=_HEADS[answer], verdict=verdict, detail=f"{_TEXTS[answer]}{span}")


def _unjudged(why: str, last: tuple[str, str] | None = None) -> Use:
    """Return the use of a rule that is not judged; `last`: what was seen of it, and when."""
    head = _HEADS[Answer.NOT_JUDGED]
    if last is None:
        return Use(is_unused=False, text=f"{head}: {why}", why=why, detail=why, brief=head)
    what, time = last
    return Use(
        is_unused=False,
        text=f"{what} {time}; {why}",
        why=why,
        detail=f"{why}; {what} {time}",
        brief=f"{what} {time[:10]}; {head}",
    )


def _why_unjudged(row: Mapping[str, Any] | None, report: UsageReport) -> str:
    """Return why a rule is not judged that no unread access may have needed."""
    start = micros_of(report.window.start)
    begin = None if row is None or row["in_force_from"] is None else micros_of(row["in_force_from"])
    if row is None or (begin is not None and begin > start):
        return "in force for too short a time to judge"
    return "known for too short a time to judge" if report.known_from * 1000 > start else _SETTINGS


_SETTINGS = "its use depends on unknown settings"


def _last(row: Mapping[str, Any], report: UsageReport) -> tuple[str, str]:
    """Return what the log has of a rule that is not judged, which is no proof that it is unused; and its time."""
    if row["last_matched_at"] is not None:
        return "last use seen", time_of(micros_of(row["last_matched_at"]))
    begin = report.window.start if row["in_force_from"] is None else max(report.window.start, row["in_force_from"])
    return "no use seen since", time_of(micros_of(begin))[:10]


def _answer(items: Sequence[Item], uses: Uses, acls: AclsImage, proof: str | None = None) -> LookResult:
    unjudged = len(uses.by_rule) - len(items)
    counted = f"{len(items):,} of {len(acls):,} rules are unused"
    if unjudged:
        counted += f", {unjudged:,} not judged"
    return LookResult(
        items=tuple(items),
        summary="; ".join((counted, uses.window, *((proof,) if proof else ()))),
        notes=uses.notes,
        uses=uses,
    )


def _rules_of(acls: AclsImage) -> Callable[[StandardAcl], bool]:
    """Return a test whether a rule is in a state; its rules need no ids."""
    return lambda acl: next(acls.matching(AclBindingFilter.of(acl)), None) is not None


# What looks for them.


@frozen(kw_only=True)
class IndexFinder:
    """Queries an index; and proves its answers over a log, if there is one."""

    index: Path | str
    question: UnusedQuestion
    log: Path | None
    """The directory of the source, if it is one."""
    proof: AccessesFlags | None
    origins: Origins

    def look(self, subject: Subject) -> LookResult:
        """Return the unused rules of a state. Raises MetadataError, OSError: they are unknown."""
        acls = subject.image.acls
        with reading_index(self.index) as index:
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
        """Return the keys of unused rules that an earlier state also had."""
        return unused_then(then.image.acls, newest)

    def signature(self) -> object:
        """Return what changes with the index: of a store every hour, as it is copied whole."""
        place = index_place(self.index)
        return signature_of_database(place / FILE) if isinstance(place, Path) else hour_of_logs()


@frozen(kw_only=True)
class LogFinder:
    """Counts an access log."""

    accesses: AccessesFlags
    days: int | None
    """The length of the window; None: 90, or fewer if all rules are younger than these."""
    log: Path | None
    is_kafka_named: bool
    """Whether a flag names the Kafka that decides; else that decides which the brokers run."""
    origins: Origins

    def look(self, subject: Subject) -> LookResult:
        """Return the unused rules of a state. Raises MetadataError, OSError: they are unknown."""
        # Those of the state name the Kafka of its brokers: in a log, they may have run another one before.
        settings = evolve(subject.policy.settings, is_kafka_stated=self.is_kafka_named)
        judging = _judging(self.log, subject, settings)
        usage_report, counted, fewer = window_report(self.accesses.open(), judging, self.days, None, top=0)
        if counted.rows.is_denials_only:
            raise ConfigError(f"--accesses: {counted.rows.denials_text()}")
        skipped = sum(counted.rejects.values())
        notes = [f"{plural(skipped, 'line')} skipped: no accesses"] if skipped else []
        if text := unknown_kafka(judging.rules):
            notes.append(text)
        if fewer:
            window = f"the window has {plural(fewer, 'day')}"
            notes.append(f"all rules were first seen in the last {DEFAULT_DAYS} days of the access log: {window}")
        if unknown := subject.premises.without({SUPER_USERS_CONFIG}):
            usage_report, notes = usage_report.without_proof(), [*notes, none_removable(unknown)]
        return by_log(usage_report, subject.image.acls, self.origins, notes)

    def had(self, then: Subject, newest: LookResult) -> frozenset[str]:
        """Return the keys of unused rules that an earlier state also had."""
        return unused_then(then.image.acls, newest)

    def signature(self) -> object:
        """Return what changes every hour, as a log does all the time."""
        return hour_of_logs()


def _judging(log: Path | None, subject: Subject, settings: Settings) -> Judging:
    """Return what judges accesses: of a log all that it ever had, else the state that is looked at."""
    if log is None:
        rules, settings = deciding_rules_of_state(subject.image, settings)
    else:
        rules, settings = deciding_rules_of_log(log, settings)
    return Judging(rules=rules, settings=settings, own_time=log is not None)
