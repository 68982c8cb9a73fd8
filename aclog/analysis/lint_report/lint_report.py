"""The report on a run of lint: findings that count, those that are suppressed, and what suppressions are good for."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date

from attrs import evolve, field, frozen

from aclog.analysis.lint.finding import Finding, Severity
from aclog.analysis.lint_report.located_finding import LocatedFinding, LocatedRule, rule_object
from aclog.analysis.lint_report.suppression import PlacedRule, Suppression
from aclog.authorizer.origin import FileOrigin, LogOrigin, Origins

_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1}


@frozen(kw_only=True)
class Suppressions:
    """Those that are given, and the day on which they are asked."""

    listed: tuple[Suppression, ...] = ()
    today: date
    names_of: Callable[[str], Iterable[str]] = field(default=lambda file: (file,))
    """Each name by which a glob may mean the file that an origin shows."""

    def for_finding(self, found: LocatedFinding) -> Suppression | None:
        """Return the first one that accepts a finding; None if none does."""
        if not self.listed:
            return None
        rules = [self._placed(each) for each in found.rules]
        held = (each for each in self.listed if not each.has_expired(self.today))
        return next((each for each in held if each.covers(found.finding.lint, rules)), None)

    def _placed(self, rule: LocatedRule) -> PlacedRule:
        return PlacedRule(
            fields=rule_object(rule.acl),
            files=tuple(name for origin in rule.files() for name in self.names_of(origin.file)),
            lines=tuple((origin.file, origin.line) for origin in rule.files()),
        )


@frozen(kw_only=True)
class LintReport:
    """What a run of lint found."""

    findings: tuple[LocatedFinding, ...]
    """Those that count: worst first, then by lint, then in the order of the files, or of the log."""
    suppressed: tuple[LocatedFinding, ...] = ()
    expired: tuple[Suppression, ...] = ()
    """Suppressions that no longer hold."""
    stale: tuple[Suppression, ...] = ()
    """Suppressions that hold, and suppress nothing."""
    rules: int
    """How many rules were looked at."""
    unknown: tuple[str, ...] = ()
    """What is unknown of what decides: there may be more findings."""

    @staticmethod
    def of(
        findings: Iterable[Finding],
        origins: Origins,
        suppressions: Suppressions,
        *,
        judged: Collection[str],
        rules: int,
    ) -> "LintReport":
        """Sort findings into those that count and those that are suppressed; `judged`: the lints that could find some.

        A suppression is called stale only if all its lints were judged.
        """
        kept, suppressed, used = [], [], set()
        for finding in findings:
            located = LocatedFinding.of(finding, origins)
            by = suppressions.for_finding(located)
            if by is None:
                kept.append(located)
            else:
                used.add(by.where)
                suppressed.append(evolve(located, suppressed_by=by))
        expired = tuple(each for each in suppressions.listed if each.has_expired(suppressions.today))
        unused = (each for each in suppressions.listed if each.where not in used and each not in expired)
        return LintReport(
            findings=tuple(sorted(kept, key=_rank)),
            suppressed=tuple(sorted(suppressed, key=_rank)),
            expired=expired,
            stale=tuple(each for each in unused if each.lints <= set(judged)),
            rules=rules,
        )

    def counts(self) -> Counter[Severity]:
        """Return how many findings of each severity count."""
        return Counter(each.finding.severity for each in self.findings)

    def fails(self, fail_on: str) -> bool:
        """Return whether a finding is as bad as `error` or `warning`; `never` fails for none."""
        counts = self.counts()
        return bool(counts[Severity.ERROR] and fail_on != "never") or bool(
            counts[Severity.WARNING] and fail_on == "warning"
        )

    def notes(self) -> Iterator[str]:
        """Yield what is to be said of suppressions."""
        for each in self.expired:
            yield f"{each.where}: the suppression of {each.lints_text()} has expired ({each.expires}): it holds no more"
        for each in self.stale:
            yield f"{each.where}: the suppression of {each.lints_text()} is stale: there is no such finding"

    def summary(self) -> str:
        """Return such as `2 errors, 5 warnings in 1,203 rules; 3 suppressed`."""
        counts = self.counts()
        parts = [plural(counts[severity], severity.value) for severity in Severity if counts[severity]]
        said = f"{', '.join(parts) or 'no findings'} in {plural(self.rules, 'rule')}"
        said += f"; {len(self.suppressed):,} suppressed" if self.suppressed else ""
        if not self.unknown:
            return said
        names = " and ".join(self.unknown)
        return f"{said}; there may be more: {names} {'are' if self.unknown[1:] else 'is'} not known"


def grouped(findings: Sequence[LocatedFinding]) -> Iterator[list[LocatedFinding]]:
    """Yield the findings of each lint, those of one severity together, in their order."""
    found: dict[tuple[str, Severity], list[LocatedFinding]] = {}
    for each in findings:
        found.setdefault((each.finding.lint, each.finding.severity), []).append(each)
    yield from found.values()


def _rank(found: LocatedFinding) -> tuple[int, str, str, int]:
    return _ORDER[found.finding.severity], found.finding.lint, *_place(found)


def _place(found: LocatedFinding) -> tuple[str, int]:
    """Return what puts findings of one lint into the order of their files, or of their log."""
    origin = next(iter(found.rules[0].origins), None)
    match origin:
        case FileOrigin():
            return origin.file, origin.line
        case LogOrigin():
            return "", origin.offset
        case None:
            return "", -1


def plural(count: int, word: str) -> str:
    """Return such as `1 rule` or `1,203 rules`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"
