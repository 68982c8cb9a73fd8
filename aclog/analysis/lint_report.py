"""The report on a run of lint: text, Markdown, JSON lines and SARIF, with suppressions."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from hashlib import sha256
from urllib.parse import quote

from attrs import evolve, field, frozen

from aclog.analysis.lint.finding import BY_ID, LINTS, Finding, Lint, Severity
from aclog.analysis.regions import JsonObject
from aclog.analysis.rows.report import SARIF_SCHEMA, markdown_text
from aclog.authorizer.acl import (
    ChangePlace,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
    acl_command,
    acl_text,
    code_name,
)
from aclog.authorizer.acls_image import RuleChange
from aclog.authorizer.origin import FileOrigin, LogOrigin, Origin, Origins, origin_object, origin_text
from aclog.metalog.errors import printable

# The mend of a finding as text that a person can paste into a shell.


def mend_commands(finding: Finding, place: ChangePlace) -> Iterator[str]:
    """Yield a command for each change of a finding's fix, as a comment if no flags can say it."""
    for change in finding.fix:
        command = acl_command(change.acl, add=change.added, place=place)
        if command is None:
            word = "add" if change.added else "remove"
            command = f"# {word} {printable(acl_text(change.acl))}: no flags of kafka-acls.sh can express it"
        yield command


def mend_text(finding: Finding, place: ChangePlace) -> str:
    """Return the mend as lines of a shell: its commands, or its words as a comment if only a person can tell more."""
    return "\n".join(mend_commands(finding, place)) or f"# {printable(finding.advice)}"


# Suppressions: findings that somebody has looked at, and accepts for a reason, perhaps until a day.


RULE_FIELDS = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")
"""The keys of a rule by which a suppression may choose, as `acls list --format jsonl` names them."""


@frozen(kw_only=True)
class Suppression:
    """Which findings are accepted, why, and until when."""

    lints: frozenset[str]
    """Ids such as `08`."""
    fields: Mapping[str, str] = field(factory=dict)
    """Values that one of a finding's rules must have, by RULE_FIELDS: exactly these, a `*` means itself."""
    file: str | None = None
    """A glob for the file that states such a rule; its `*` crosses `/`."""
    lines: tuple[str, int, int] | None = None
    """The file, as origins show it, and the first and the last line on which such a rule may stand: of a comment."""
    reason: str
    expires: date | None = None
    """The first day (UTC) on which it no longer holds."""
    where: str
    """File and line that state it."""

    def lints_text(self) -> str:
        """Return the ids: `08, 11`."""
        return ", ".join(sorted(self.lints))

    def has_expired(self, today: date) -> bool:
        """Return whether it no longer suppresses anything."""
        return self.expires is not None and self.expires <= today

    def covers(self, lint: str, rules: Iterable["PlacedRule"]) -> bool:
        """Return whether it is about a finding: its lint, and its rules."""
        return lint in self.lints and any(self._covers_rule(rule) for rule in rules)

    def _covers_rule(self, rule: "PlacedRule") -> bool:
        if any(rule.fields.get(key) != value for key, value in self.fields.items()):
            return False
        if self.lines is not None and not any(self._among(place, self.lines) for place in rule.lines):
            return False
        return self.file is None or any(fnmatchcase(each, self.file) for each in rule.files)

    @staticmethod
    def _among(place: tuple[str, int], lines: tuple[str, int, int]) -> bool:
        file, first, last = lines
        return place[0] == file and first <= place[1] <= last


@frozen(kw_only=True)
class PlacedRule:
    """A rule as a suppression sees it."""

    fields: Mapping[str, object]
    """By RULE_FIELDS."""
    files: tuple[str, ...] = ()
    """Each name by which a glob may mean a file that states it."""
    lines: tuple[tuple[str, int], ...] = ()
    """The files as they are shown, and the lines in them."""


# A finding with the places of its rules.


@frozen(kw_only=True)
class LocatedRule:
    """A rule, and every place that states it; none if that is not known."""

    acl: StandardAcl
    origins: tuple[Origin, ...]

    def files(self) -> Iterator[FileOrigin]:
        """Yield those of the places that are lines of files."""
        return (each for each in self.origins if isinstance(each, FileOrigin))

    def places_text(self) -> str:
        """Return such as `kafka/a.yaml:12, kafka/b.yaml:3`; empty if no place is known."""
        return ", ".join(map(_place_text, self.origins))


@frozen(kw_only=True)
class LocatedFinding:
    """A finding, where its rules stand, and the suppression that accepts it, if one does."""

    finding: Finding
    rules: tuple[LocatedRule, ...]
    suppressed_by: Suppression | None = None

    @staticmethod
    def of(finding: Finding, origins: Origins) -> "LocatedFinding":
        """Look up the places of a finding's rules."""
        return LocatedFinding(
            finding=finding, rules=tuple(LocatedRule(acl=acl, origins=origins.of(acl)) for acl in finding.rules)
        )

    @property
    def lint(self) -> Lint:
        """The lint that found it."""
        return BY_ID[self.finding.lint]


def _place_text(origin: Origin) -> str:
    """Return a place; with the address in Terraform's state, since one line may state many rules (`for_each`)."""
    address = origin.address if isinstance(origin, FileOrigin) else None
    return origin_text(origin) if address is None else f"{origin_text(origin)} ({address})"


def rule_object(acl: StandardAcl) -> JsonObject:
    """Return the seven keys of a rule (`acls list --format jsonl`)."""
    row: JsonObject = {**StandardAclWithId(id=None, acl=acl).to_dict()}
    del row["id"]
    return row


def located_object(rule: LocatedRule) -> JsonObject:
    """Return a rule with the keys of its first place, and under `also` those of the others."""
    row = rule_object(rule.acl)
    if rule.origins:
        row |= origin_object(rule.origins[0])
    if rule.origins[1:]:
        row["also"] = [origin_object(each) for each in rule.origins[1:]]
    return row


# The report on a run of lint: findings that count, those that are suppressed, and what suppressions are good for.


_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1}


@frozen(kw_only=True)
class Suppressions:
    """Those that are given, and the day on which they are asked."""

    listed: tuple[Suppression, ...] = ()
    today: date
    names_of: Callable[[str], Iterable[str]] = field(default=lambda file: (file,))
    """Each name by which a glob may mean the file that an origin shows."""

    def for_finding(self, located: LocatedFinding) -> Suppression | None:
        """Return the first one that accepts a finding; None if none does."""
        if not self.listed:
            return None
        rules = [self._placed(each) for each in located.rules]
        active = (each for each in self.listed if not each.has_expired(self.today))
        return next((each for each in active if each.covers(located.finding.lint, rules)), None)

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
        reported, suppressed, used = [], [], set()
        for finding in findings:
            located = LocatedFinding.of(finding, origins)
            by = suppressions.for_finding(located)
            if by is None:
                reported.append(located)
            else:
                used.add(by.where)
                suppressed.append(evolve(located, suppressed_by=by))
        expired = tuple(each for each in suppressions.listed if each.has_expired(suppressions.today))
        unused = (each for each in suppressions.listed if each.where not in used and each not in expired)
        return LintReport(
            findings=tuple(sorted(reported, key=_rank)),
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
        text = f"{', '.join(parts) or 'no findings'} in {plural(self.rules, 'rule')}"
        text += f"; {len(self.suppressed):,} suppressed" if self.suppressed else ""
        if not self.unknown:
            return text
        names = " and ".join(self.unknown)
        return f"{text}; there may be more: {names} {'are' if self.unknown[1:] else 'is'} not known"


def grouped(findings: Sequence[LocatedFinding]) -> Iterator[list[LocatedFinding]]:
    """Yield the findings of each lint, those of one severity together, in their order."""
    groups: dict[tuple[str, Severity], list[LocatedFinding]] = {}
    for each in findings:
        groups.setdefault((each.finding.lint, each.finding.severity), []).append(each)
    yield from groups.values()


def _rank(located: LocatedFinding) -> tuple[int, str, str, int]:
    return _ORDER[located.finding.severity], located.finding.lint, *_place(located)


def _place(located: LocatedFinding) -> tuple[str, int]:
    """Return what puts findings of one lint into the order of their files, or of their log."""
    origin = next(iter(located.rules[0].origins), None)
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


# Findings as JSON lines (docs/commands).


def finding_object(located: LocatedFinding, place: ChangePlace) -> JsonObject:
    """Return a finding as an object; its mend is for the place where the rules can be changed."""
    return {
        "lint": located.finding.lint,
        "severity": located.finding.severity.value,
        "rules": [located_object(rule) for rule in located.rules],
        "lost": located.finding.lost,
        "fix": mend_text(located.finding, place),
    }


def json_lines(report: LintReport, place: ChangePlace) -> Iterator[JsonObject]:
    """Yield an object for each finding that counts."""
    return (finding_object(located, place) for located in report.findings)


# Findings as a table in markdown, for a merge request.


_TITLES = ("severity", "lint", "rules", "where", "lost or opened", "mend")
_RULES = 3


def markdown_lines(report: LintReport) -> Iterator[str]:
    """Yield a table of the findings that count, and a summary."""
    if report.findings:
        yield from finding_table(report.findings)
        yield ""
    yield f"{markdown_text(report.summary())}."


def finding_table(findings: Iterable[LocatedFinding]) -> Iterator[str]:
    """Yield a table of findings."""
    yield _row(_TITLES)
    yield _row("---" for _ in _TITLES)
    yield from (_row(map(markdown_text, _cells(located))) for located in findings)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(located: LocatedFinding) -> tuple[str, ...]:
    finding, remaining = located.finding, len(located.rules) - _RULES
    more = (f"and {remaining:,} more",) if remaining > 0 else ()
    return (
        finding.severity.value,
        f"{finding.lint} {located.lint.name}",
        "; ".join((*(acl_text(rule.acl) for rule in located.rules[:_RULES]), *more)),
        "; ".join(place for rule in located.rules[:_RULES] if (place := rule.places_text())),
        finding.lost,
        finding.advice,
    )


# Findings of two states beside one another.


def parted(
    findings: Iterable[LocatedFinding], others: Iterable[LocatedFinding]
) -> tuple[list[LocatedFinding], list[LocatedFinding]]:
    """Return those that are not among the others, and those that are: the same lint was said of all their rules."""
    rules_by_lint: dict[tuple[str, StandardAcl], list[frozenset[StandardAcl]]] = {}
    for each in others:
        rules = frozenset(each.finding.rules)
        for rule in rules:
            rules_by_lint.setdefault((each.finding.lint, rule), []).append(rules)
    parts: tuple[list[LocatedFinding], list[LocatedFinding]] = ([], [])
    for each in findings:
        rules = frozenset(each.finding.rules)
        is_known = any(rules <= other for other in rules_by_lint.get((each.finding.lint, each.finding.rules[0]), ()))
        parts[is_known].append(each)
    return parts


# Findings as a SARIF 2.1.0 log, for code scanning: a rule for each lint, a result for each finding.


_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning"}
_STDIN = "stdin"
"""The file of a rule that was read from there: no place to go to."""
_FINGERPRINT = "aclogFinding/v1"
_INDEX = {lint.id: number for number, lint in enumerate(LINTS)}


def sarif_log(
    report: LintReport, place: ChangePlace, *, version: str, uri_of: Callable[[str], str] = lambda file: file
) -> JsonObject:
    """Return a log of all findings, suppressed ones too; `uri_of` returns a file's path from the repository's root."""
    run: JsonObject = {
        "tool": {"driver": {"name": "aclog", "version": version, "rules": [lint_descriptor(lint) for lint in LINTS]}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(located, place, uri_of) for located in (*report.findings, *report.suppressed)],
    }
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def lint_descriptor(lint: Lint) -> JsonObject:
    """Return a lint as a reportingDescriptor."""
    text = f"{lint.harm}\nMend: {lint.mend}"
    return {
        "id": lint.id,
        "name": lint.name,
        "shortDescription": {"text": lint.title},
        "fullDescription": {"text": lint.harm},
        "help": {"text": text, "markdown": f"{lint.harm}\n\n**Mend:** {lint.mend}"},
        "defaultConfiguration": {"level": _LEVELS[lint.severity]},
        "properties": {"precision": "very-high" if lint.exact else "medium", "tags": ["security", "kafka", "acl"]},
    }


def fingerprint(located: LocatedFinding) -> str:
    """Return what tells a finding from others, wherever its lines move: its lint and the contents of its rules."""
    contents = sorted(repr(sorted(rule_object(rule.acl).items())) for rule in located.rules)
    return sha256("\n".join((located.finding.lint, *contents)).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _result(located: LocatedFinding, place: ChangePlace, uri_of: Callable[[str], str]) -> JsonObject:
    finding = located.finding
    rules = "; ".join(acl_text(rule.acl) for rule in located.rules[:3])
    more = f" and {len(located.rules) - 3:,} more" if len(located.rules) > 3 else ""
    first, *others = located.rules
    result: JsonObject = {
        "ruleId": finding.lint,
        "ruleIndex": _INDEX[finding.lint],
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{located.lint.title}: {rules}{more}\n{finding.lost}\nMend: {finding.advice}"},
        "locations": [_location(first, uri_of, 0)],
        "partialFingerprints": {_FINGERPRINT: fingerprint(located)},
        "properties": {"rules": [located_object(rule) for rule in located.rules], "fix": mend_text(finding, place)},
    }
    related = _related(first, others, uri_of)
    if related:
        result["relatedLocations"] = related
    by = located.suppressed_by
    # An empty array says that it is known to be none.
    result["suppressions"] = (
        [] if by is None else [{"kind": "external", "status": "accepted", "justification": f"{by.reason} ({by.where})"}]
    )
    return result


def _related(first: LocatedRule, others: Iterable[LocatedRule], uri_of: Callable[[str], str]) -> list[JsonObject]:
    pairs = [(first, number) for number in range(1, len(list(first.files())))]
    pairs += [(rule, number) for rule in others for number in range(max(1, len(list(rule.files()))))]
    return [
        {"id": place, **_location(rule, uri_of, number), "message": {"text": acl_text(rule.acl)}}
        for place, (rule, number) in enumerate(pairs, 1)
    ]


def _location(rule: LocatedRule, uri_of: Callable[[str], str], number: int) -> JsonObject:
    kind = code_name(ResourceType, rule.acl.resource_type)
    location: JsonObject = {
        "logicalLocations": [{"fullyQualifiedName": acl_text(rule.acl), "name": f"{kind} {rule.acl.resource_name}"}]
    }
    files = list(rule.files())
    if number < len(files) and files[number].file != _STDIN:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": quote(uri_of(files[number].file), safe="/:", errors="surrogateescape")},
            "region": {"startLine": files[number].line},
        }
    return location


# Findings as lines for people: by lint, the worst first, as much as fits a screen.


_FINDING_LIMIT, _TEXT_RULES = 5, 3
"""Findings of a lint, and rules of a finding, that are shown; the JSON lines have all."""


def text_lines(report: LintReport, place: ChangePlace, *, limit: int = _FINDING_LIMIT) -> Iterator[str]:
    """Yield the findings, a group for each lint, and a summary."""
    for group in grouped(report.findings):
        lint = group[0].lint
        yield f"{group[0].finding.severity.value} {lint.id} {lint.name}: {lint.title}"
        yield from _group_lines(group[:limit], place)
        if len(group) > limit:
            yield f"  and {len(group) - limit:,} more: --select {lint.id} --format jsonl has all"
        yield ""
    yield report.summary()


def _group_lines(group: Sequence[LocatedFinding], place: ChangePlace) -> Iterator[str]:
    shared = len(group) > 1 and len({each.finding.advice for each in group}) == 1
    for located in group:
        yield from finding_lines(located, place, advised=not shared)
    if shared:
        yield f"  mend: {group[0].finding.advice}"


def finding_lines(located: LocatedFinding, place: ChangePlace, *, advised: bool = True) -> Iterator[str]:
    """Yield the lines of a finding: its rules with their places, what is lost, and the mend."""
    for rule in located.rules[:_TEXT_RULES]:
        where = rule.places_text()
        yield f"  {where}: {acl_text(rule.acl)}" if where else f"  {acl_text(rule.acl)}"
    if len(located.rules) > _TEXT_RULES:
        yield f"  and {len(located.rules) - _TEXT_RULES:,} more rules"
    yield f"    {located.finding.lost}"
    if advised:
        yield f"    mend: {located.finding.advice}"
    yield from (f"    {line}" for line in _fix_lines(located, place))


def _fix_lines(located: LocatedFinding, place: ChangePlace) -> Iterator[str]:
    """Yield what to do: commands, or lines of files to change if the rules are kept in files."""
    fix = located.finding.fix
    by_acl = {rule.acl: rule for rule in located.rules}
    if not any(True for rule in located.rules for _ in rule.files()):
        lines = list(mend_commands(located.finding, place))
    else:
        lines = [_edit(change, by_acl.get(change.acl)) for change in fix]
    yield from lines[:_TEXT_RULES]
    if len(lines) > _TEXT_RULES:
        yield f"and {len(lines) - _TEXT_RULES:,} more changes"


def _edit(change: RuleChange, rule: LocatedRule | None) -> str:
    if change.added:
        return f"+ {acl_text(change.acl)}"
    places = "" if rule is None else rule.places_text()
    return f"- {places or acl_text(change.acl)}"
