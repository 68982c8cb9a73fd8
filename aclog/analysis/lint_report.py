"""Lint: the catalogue of lints, a run over a policy, and the report on it as text, Markdown, JSON lines and SARIF."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from hashlib import sha256
from types import MappingProxyType
from typing import TypeAlias
from urllib.parse import quote

from attrs import evolve, field

from aclog.analysis.lint import related, single, spelling
from aclog.analysis.lint.finding import Finding, Lint, LintContext, RuleTable, Severity
from aclog.analysis.policy import Policy
from aclog.analysis.regions import JsonObject
from aclog.analysis.rows.report import SARIF_SCHEMA, markdown_text
from aclog.authorizer.acl import (
    ChangePlace,
    FileOrigin,
    LogOrigin,
    ModuleCall,
    Origin,
    Origins,
    StandardAcl,
    acl_command,
    acl_text,
    code_name,
    object_of_rule,
    origin_object,
    origin_text,
)
from aclog.authorizer.acls_image import RuleChange
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.index.layout import rule_mask
from aclog.authorizer.spellings import is_unexpanded
from aclog.authorizer.symbols import is_symbol
from aclog.metalog.errors import ConfigError, plural, printable
from aclog.metalog.values import frozen

# The catalogue: every lint of the modules of lints.


LINTS: tuple[Lint, ...] = tuple(
    sorted(
        (
            lint()
            for module in (single, related, spelling)
            for name, lint in vars(module).items()
            if isinstance(lint, type) and issubclass(lint, Lint) and lint.__module__ == module.__name__
            if not name.startswith("_")
        ),
        key=lambda lint: lint.id,
    )
)
"""By id, which are the numbers from 1 on."""

BY_ID: Mapping[str, Lint] = MappingProxyType({lint.id: lint for lint in LINTS})

ALL: frozenset[str] = frozenset(BY_ID)


def parse_lints(texts: Iterable[str]) -> frozenset[str]:
    """Return the ids of lints given by id (`08`, `8`) or by name (`shadowed`).

    Raises:
        ConfigError: there is no such lint; the message lists all lints.

    """
    by_text = {text: lint.id for lint in LINTS for text in (lint.id, lint.id.lstrip("0"), lint.name)}
    ids = set()
    for text in texts:
        key = text.strip().lower()
        if key not in by_text:
            names = ", ".join(f"{lint.id} {lint.name}" for lint in LINTS)
            raise ConfigError(f"{text[:40]!r} is no lint: expected one of {names}")
        ids.add(by_text[key])
    return frozenset(ids)


# A run: all findings on a policy.


Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of lints done and the number of all."""


def no_progress(_done: int, _of: int) -> None:
    """Do nothing."""


def no_note(_text: str) -> None:
    """Do nothing."""


def lint(
    policy: Policy,
    context: LintContext | None = None,
    *,
    select: Collection[str] = ALL,
    progress: Progress = no_progress,
    note: Callable[[str], None] = no_note,
) -> Iterator[Finding]:
    """Yield the findings of lints on the rules of a policy, lazily: by id of the lint, then in the order of the index.

    `select` are the ids of the lints to run. `note` is called with the rules that a lint did not judge, if any: the
    shape of the rules would take too long. Lint 26 does not run: a history (aclog.sources) has the past of a pattern, a
    policy has not.
    """
    table, lint_context = RuleTable.of(policy), context or LintContext()
    lints = [each for each in LINTS if each.id in select and not each.of_history]
    for done, each in enumerate(lints):
        progress(done, len(lints))
        for finding in each.find(table, lint_context):
            if not each.judges or not any(is_symbol(getattr(acl, each.judges)) for acl in finding.rules):
                yield finding
        if (text := each.not_judged(table)) is not None:
            note(f"lint {each.id}: {text}")
    progress(len(lints), len(lints))


# The fix of a finding as text to paste into a shell.


def fix_commands(finding: Finding, place: ChangePlace) -> Iterator[str]:
    """Yield a command for each change of a finding's fix, as a comment if no flags can express it."""
    for change in finding.fix:
        command = acl_command(change.acl, add=change.added, place=place)
        if command is None:
            word = "add" if change.added else "remove"
            command = f"# {word} {printable(acl_text(change.acl))}: no flags of kafka-acls.sh can express it"
        yield command


def fix_text(finding: Finding, place: ChangePlace) -> str:
    """Return the fix as lines for a shell: its commands, or, without commands, the advice as a comment."""
    return "\n".join(fix_commands(finding, place)) or f"# {printable(finding.advice)}"


# Suppressions: accepted findings, with a reason and an optional expiry date.


RULE_FIELDS = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")
"""The keys of a rule by which a suppression may select, as in `acls list --format jsonl`."""


@frozen(kw_only=True)
class Suppression:
    """A selection of accepted findings, the reason, and the expiry date."""

    lints: frozenset[str]
    """Ids such as `08`."""
    fields: Mapping[str, str] = field(factory=dict)
    """Values that one of a finding's rules must have, by RULE_FIELDS, compared exactly: `*` is no wildcard."""
    file: str | None = None
    """A glob for the file with such a rule; its `*` matches `/` as well."""
    lines: tuple[str, int, int] | None = None
    """Of a comment: the file, as origins show it, and the first and the last line of such a rule."""
    reason: str
    expires: date | None = None
    """The first day (UTC) on which it no longer applies."""
    where: str
    """Its location: file and line."""

    def lints_text(self) -> str:
        """Return the ids: `08, 11`."""
        return ", ".join(sorted(self.lints))

    def has_expired(self, today: date) -> bool:
        """Return whether it no longer suppresses anything."""
        return self.expires is not None and self.expires <= today

    def covers(self, lint: str, rules: Iterable["PlacedRule"]) -> bool:
        """Return whether it selects a finding: its lint, and its rules."""
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


def suppression_lines(lint: str, acl: StandardAcl, reason: str, *, table: str, expires: date | None) -> Iterator[str]:
    """Yield the TOML that accepts the findings of a lint on a rule; `table` is that of its file.

    Raises ConfigError: TOML cannot state a name, which is not Unicode text.
    """
    fields = object_of_rule(acl)
    yield f"[[{table}]]"
    yield f"lint = {_toml_text(lint)}"
    for key in RULE_FIELDS:
        yield f"{key} = {_toml_text(fields[key])}"
    yield f"reason = {_toml_text(reason)}"
    if expires is not None:
        yield f"expires = {expires.isoformat()}"


def _toml_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{text!r} is not Unicode text: no file of suppressions can state it") from error
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


@frozen(kw_only=True)
class PlacedRule:
    """A rule with the fields that suppressions select by."""

    fields: Mapping[str, object]
    """By RULE_FIELDS."""
    files: tuple[str, ...] = ()
    """The names of its files that a glob may match."""
    lines: tuple[tuple[str, int], ...] = ()
    """Its locations: the files as shown, and the lines in them."""


# A finding with the locations of its rules.


@frozen(kw_only=True)
class LocatedRule:
    """A rule with its locations; none if they are unknown."""

    acl: StandardAcl
    origins: tuple[Origin, ...]

    def files(self) -> Iterator[FileOrigin]:
        """Yield the locations that are lines of files."""
        return (each for each in self.origins if isinstance(each, FileOrigin))

    def places_text(self) -> str:
        """Return the locations, such as `kafka/a.yaml:12, kafka/b.yaml:3`; empty if they are unknown."""
        return ", ".join(map(_place_text, self.origins))


@frozen(kw_only=True)
class LocatedFinding:
    """A finding, the locations of its rules, and its suppression, if any."""

    finding: Finding
    rules: tuple[LocatedRule, ...]
    suppressed_by: Suppression | None = None
    is_shared: bool = False
    """Whether the line of the rule to remove states other rules as well: its fix is no change of lines."""

    @staticmethod
    def of(finding: Finding, origins: Origins) -> "LocatedFinding":
        """Look up the locations of a finding's rules."""
        return LocatedFinding(
            finding=finding, rules=tuple(LocatedRule(acl=acl, origins=origins.of(acl)) for acl in finding.rules)
        )

    @property
    def lint(self) -> Lint:
        """The lint that found it."""
        return BY_ID[self.finding.lint]


def _place_text(origin: Origin) -> str:
    """Return a location; with the address in Terraform's state, since one line may have many rules (`for_each`)."""
    if not isinstance(origin, FileOrigin) or origin.address is None:
        return origin_text(origin)
    return f"{' -> '.join(f'{each.file}:{each.line}' for each in origin.steps)} ({origin.address})"


def located_object(rule: LocatedRule) -> JsonObject:
    """Return a rule with the keys of its first location, and under `also` those of the others."""
    row: JsonObject = {**object_of_rule(rule.acl)}
    if rule.origins:
        row |= origin_object(rule.origins[0])
    if rule.origins[1:]:
        row["also"] = [origin_object(each) for each in rule.origins[1:]]
    return row


# A finding at its location: a line may state more rules than the one to remove, and a tool may write redundant rules.


IMPLIED, _ODD_PRINCIPAL = "11", spelling.OddPrincipal.id
_TERRAFORM = "terraform"
GENERATORS = frozenset({"julie", "kafka-gitops", "ns4kafka"})
"""The formats whose tools make several rules of one statement, redundant ones as well."""
DOCUMENTING = frozenset({"strimzi", "ksm", "jikkou"})
"""The formats whose documentation lists DESCRIBE beside the operations that imply it."""


_Line: TypeAlias = tuple[str, int, tuple[ModuleCall, ...]]


def _line(origin: FileOrigin) -> _Line:
    return origin.file, origin.line, origin.calls


@frozen(eq=False)
class Statements:
    """The rules that the lines of some findings state: of one call of a module, if calls lead to a line."""

    _by_line: Mapping[_Line, Sequence[StandardAcl]]

    @staticmethod
    def of(findings: Iterable[Finding], rules: Iterable[StandardAcl], origins: Origins) -> "Statements":
        """Return those of the first rule of each finding, given all rules of a source."""
        first = {finding.rules[0] for finding in findings if finding.fix or finding.lint == IMPLIED}
        places = (origin for acl in first for origin in origins.of(acl))
        by_line: dict[_Line, list[StandardAcl]] = {_line(each): [] for each in places if isinstance(each, FileOrigin)}
        for acl in rules if by_line else ():
            for origin in origins.of(acl):
                if isinstance(origin, FileOrigin) and (line := _line(origin)) in by_line:
                    by_line[line].append(acl)
        return Statements(by_line)

    def beside(self, acl: StandardAcl, origin: FileOrigin) -> list[StandardAcl]:
        """Return the other rules of a line that states a rule."""
        return [each for each in self._by_line.get(_line(origin), ()) if each != acl]

    def _implies(self, acl: StandardAcl, origin: FileOrigin) -> bool:
        """Return whether the line of an ALLOW states another one on the same pattern that implies it."""
        bits = rule_mask(acl.operation, acl.permission_type)
        return any(
            evolve(each, operation=acl.operation) == acl
            and rule_mask(each.operation, each.permission_type) & bits == bits
            for each in self.beside(acl, origin)
        )

    def placed(self, located: LocatedFinding) -> LocatedFinding | None:
        """Return a finding with the severity and the advice that fit its location.

        None: a tool makes the redundant rule of a statement that also makes the one which implies it, or the template
        in a principal is a value that Terraform knows after apply.
        """
        finding, first, is_shared = located.finding, located.rules[0], False
        places = list(first.files())
        if not places or len(places) < len(first.origins):
            return located
        if finding.lint == IMPLIED and finding.severity is Severity.WARNING:
            if all(each.form in GENERATORS and self._implies(first.acl, each) for each in places):
                return None
            if all(each.form in DOCUMENTING for each in places):
                finding = evolve(finding, severity=Severity.INFO)
        is_template = finding.lint == _ODD_PRINCIPAL and is_unexpanded(first.acl.principal)
        if is_template and all(each.form == _TERRAFORM for each in places):
            return None  # a value that is known after apply
        removed = [change.acl for change in finding.fix if not change.added]
        if removed == [first.acl] and len(finding.fix) == 1:
            crowded = [each for each in places if self.beside(first.acl, each)]
            if crowded:
                finding, is_shared = evolve(finding, advice=self._advice(first.acl, crowded[0])), True
        return evolve(located, finding=finding, is_shared=is_shared)

    def _advice(self, acl: StandardAcl, origin: FileOrigin) -> str:
        others = self.beside(acl, origin)
        if all(evolve(each, operation=acl.operation) == acl for each in others):
            operation = "".join(map(str.title, code_name(AclOperation, acl.operation).split("_")))
            return f"Remove `{operation}` from this operations list."
        more = f"{plural(len(others), 'more rule')}: {acl_text(others[0])}{', ...' if others[1:] else ''}"
        if origin.calls:
            where = f"{origin.calls[0].name} ({origin.calls[0].file}:{origin.calls[0].line})"
            return f"Change the arguments of {where}: the line in the module states {more}."
        return f"Keep the line, or split it: it states {more}."


# The report on a run: active and suppressed findings, expired and stale suppressions.


_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


@frozen(kw_only=True)
class Suppressions:
    """All suppressions, and the date of the run."""

    listed: tuple[Suppression, ...] = ()
    today: date
    names_of: Callable[[str], Iterable[str]] = field(default=lambda file: (file,))
    """Returns the names of an origin's file that a glob may match."""

    def for_finding(self, located: LocatedFinding) -> Suppression | None:
        """Return the first one that selects a finding; None if none does."""
        if not self.listed:
            return None
        rules = [self._placed(each) for each in located.rules]
        active = (each for each in self.listed if not each.has_expired(self.today))
        return next((each for each in active if each.covers(located.finding.lint, rules)), None)

    def _placed(self, rule: LocatedRule) -> PlacedRule:
        return PlacedRule(
            fields=object_of_rule(rule.acl),
            files=tuple(name for origin in rule.files() for each in origin.steps for name in self.names_of(each.file)),
            lines=tuple((each.file, each.line) for origin in rule.files() for each in origin.steps),
        )


@frozen(kw_only=True)
class LintReport:
    """The findings of a run."""

    findings: tuple[LocatedFinding, ...]
    """Those that are not suppressed: errors first, then by lint, then in the order of the files, or of the log."""
    suppressed: tuple[LocatedFinding, ...] = ()
    expired: tuple[Suppression, ...] = ()
    """Suppressions past their expiry date."""
    stale: tuple[Suppression, ...] = ()
    """Active suppressions without a finding."""
    rules: int
    """The number of rules."""
    unknown: tuple[str, ...] = ()
    """Settings with an unknown value: there may be more findings."""
    unread: int = 0
    """The number of objects of the source that were not read, and may hold rules."""

    @staticmethod
    def of(
        findings: Iterable[Finding],
        origins: Origins,
        suppressions: Suppressions,
        *,
        judged: Collection[str],
        rules: int,
        statements: Statements | None = None,
    ) -> "LintReport":
        """Return the report on findings; `judged`: the selected lints that had the facts that they need.

        A suppression is stale only if all its lints were judged. `statements`: those of files, if the source is files.
        """
        reported, suppressed, used = [], [], set()
        for finding in findings:
            found = LocatedFinding.of(finding, origins)
            located = found if statements is None else statements.placed(found)
            if located is None:
                used |= {each.where for each in (suppressions.for_finding(found),) if each is not None}
                continue
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
        """Return the number of findings by severity, without suppressed ones."""
        return Counter(each.finding.severity for each in self.findings)

    def fails(self, fail_on: str) -> bool:
        """Return whether a finding is an error or, for `warning`, there is any finding; `never` fails for none."""
        counts = self.counts()
        return bool(counts[Severity.ERROR] and fail_on != "never") or bool(
            counts[Severity.WARNING] and fail_on == "warning"
        )

    def notes(self, used: Collection[str] = ()) -> Iterator[str]:
        """Yield the notes on expired and stale suppressions; `used`: the locations of those that others use."""
        for each in self.expired:
            yield f"{each.where}: the suppression of {each.lints_text()} has expired ({each.expires})"
        for each in (each for each in self.stale if each.where not in used):
            yield f"{each.where}: the suppression of {each.lints_text()} is stale: there is no such finding"

    def summary(self) -> str:
        """Return such as `2 errors, 5 warnings in 1,203 rules; 3 suppressed`."""
        counts = self.counts()
        parts = [severity_count(severity, counts[severity]) for severity in Severity if counts[severity]]
        text = f"{', '.join(parts) or 'no findings'} in {plural(self.rules, 'rule')}"
        text += f"; {len(self.suppressed):,} suppressed" if self.suppressed else ""
        if self.unread:
            more = f"{plural(self.unread, 'object')} not read, which may hold rules"
            text = f"{text}; {more}" if self.rules else f"not judged: no rule was read, and {more}"
        if not self.unknown:
            return text
        names = " and ".join(self.unknown)
        return f"{text}; there may be more: {names} {'are' if self.unknown[1:] else 'is'} unknown"


def severity_count(severity: Severity, count: int) -> str:
    """Return such as `2 errors`, or `2 info`."""
    return f"{count:,} {severity.value}" if severity is Severity.INFO else plural(count, severity.value)


def grouped(findings: Sequence[LocatedFinding]) -> Iterator[list[LocatedFinding]]:
    """Yield the findings by lint and severity, in their order."""
    groups: dict[tuple[str, Severity], list[LocatedFinding]] = {}
    for each in findings:
        groups.setdefault((each.finding.lint, each.finding.severity), []).append(each)
    yield from groups.values()


def _rank(located: LocatedFinding) -> tuple[int, str, str, int]:
    return _ORDER[located.finding.severity], located.finding.lint, *_place(located)


def _place(located: LocatedFinding) -> tuple[str, int]:
    """Return the sort key of findings of one lint: the order of their files, or of their log."""
    origin = next(iter(located.rules[0].origins), None)
    match origin:
        case FileOrigin():
            return origin.steps[0].file, origin.steps[0].line
        case LogOrigin():
            return "", origin.offset
        case None:
            return "", -1


# Findings as JSON lines (docs/commands).


def finding_object(located: LocatedFinding, place: ChangePlace) -> JsonObject:
    """Return a finding as an object; its fix is for the place where the rules can be changed."""
    return {
        "lint": located.finding.lint,
        "severity": located.finding.severity.value,
        "rules": [located_object(rule) for rule in located.rules],
        "lost": located.finding.lost,
        "fix": fix_text(located.finding, place),
    }


def json_lines(report: LintReport, place: ChangePlace) -> Iterator[JsonObject]:
    """Yield an object for each finding, without suppressed ones."""
    return (finding_object(located, place) for located in report.findings)


# Findings as a table in markdown, for a merge request.


_TITLES = ("severity", "lint", "rules", "location", "impact", "fix")
_RULES = 3


def markdown_lines(report: LintReport) -> Iterator[str]:
    """Yield a table of the findings, without suppressed ones, and a summary."""
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


# The findings of two states compared.


def parted(
    findings: Iterable[LocatedFinding], others: Iterable[LocatedFinding]
) -> tuple[list[LocatedFinding], list[LocatedFinding]]:
    """Return the findings that are not among the others, and those that are: the same lint found all their rules."""
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


_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_STDIN = "stdin"
"""The file of a rule that was read from stdin: no location."""
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
    text = f"{lint.rationale}\nFix: {lint.fix}"
    return {
        "id": lint.id,
        "name": lint.name,
        "shortDescription": {"text": lint.title},
        "fullDescription": {"text": lint.rationale},
        "help": {"text": text, "markdown": f"{lint.rationale}\n\n**Fix:** {lint.fix}"},
        "defaultConfiguration": {"level": _LEVELS[lint.severity]},
        "properties": {"precision": "very-high" if lint.exact else "medium", "tags": ["security", "kafka", "acl"]},
    }


def fingerprint(located: LocatedFinding) -> str:
    """Return the fingerprint of a finding, independent of its lines: of its lint and the contents of its rules."""
    contents = sorted(repr(sorted(object_of_rule(rule.acl).items())) for rule in located.rules)
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
        "message": {"text": f"{located.lint.title}: {rules}{more}\n{finding.lost}\nFix: {finding.advice}"},
        "locations": [_location(first, uri_of, 0)],
        "partialFingerprints": {_FINGERPRINT: fingerprint(located)},
        "properties": {"rules": [located_object(rule) for rule in located.rules], "fix": fix_text(finding, place)},
    }
    related = _related(first, others, uri_of)
    if related:
        result["relatedLocations"] = related
    by = located.suppressed_by
    # SARIF: an empty array means "not suppressed", a missing one "unknown".
    result["suppressions"] = (
        [] if by is None else [{"kind": "external", "status": "accepted", "justification": f"{by.reason} ({by.where})"}]
    )
    return result


def _related(first: LocatedRule, others: Iterable[LocatedRule], uri_of: Callable[[str], str]) -> list[JsonObject]:
    pairs = [(first, number) for number in range(1, len(_lines(first)))]
    pairs += [(rule, number) for rule in others for number in range(max(1, len(_lines(rule))))]
    return [
        {"id": place, **_location(rule, uri_of, number), "message": {"text": acl_text(rule.acl)}}
        for place, (rule, number) in enumerate(pairs, 1)
    ]


def _lines(rule: LocatedRule) -> list[ModuleCall | FileOrigin]:
    """Return the lines of a rule: of each location the calls that lead to it, the outermost first, and its own."""
    return [step for origin in rule.files() for step in origin.steps]


def _location(rule: LocatedRule, uri_of: Callable[[str], str], number: int) -> JsonObject:
    kind = code_name(ResourceType, rule.acl.resource_type)
    location: JsonObject = {
        "logicalLocations": [{"fullyQualifiedName": acl_text(rule.acl), "name": f"{kind} {rule.acl.resource_name}"}]
    }
    files = _lines(rule)
    if number < len(files) and files[number].file != _STDIN:
        location["physicalLocation"] = physical_location(uri_of(files[number].file), files[number].line)
    return location


def physical_location(path: str, line: int) -> JsonObject:
    """Return a line of a file as SARIF has it."""
    uri = quote(path, safe="/:", errors="surrogateescape")
    return {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}


# Findings as lines for people: by lint, errors first, limited to a screen.


_FINDING_LIMIT, _TEXT_RULES = 5, 3
"""The number of shown findings per lint, and of shown rules per finding; the JSON lines have all."""


def text_lines(report: LintReport, place: ChangePlace, *, limit: int = _FINDING_LIMIT) -> Iterator[str]:
    """Yield the findings, a group for each lint, and a summary."""
    for group in grouped(report.findings):
        lint = group[0].lint
        yield f"{group[0].finding.severity.value} [{lint.id} {lint.name}]: {lint.title}"
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
        yield f"  fix: {group[0].finding.advice}"


def finding_lines(located: LocatedFinding, place: ChangePlace, *, advised: bool = True) -> Iterator[str]:
    """Yield the lines of a finding: its rules with their locations, the impact, and the fix."""
    for rule in located.rules[:_TEXT_RULES]:
        where = rule.places_text()
        yield f"  {where}: {acl_text(rule.acl)}" if where else f"  {acl_text(rule.acl)}"
    if len(located.rules) > _TEXT_RULES:
        yield f"  and {len(located.rules) - _TEXT_RULES:,} more rules"
    yield f"    {located.finding.lost}"
    if advised:
        yield f"    fix: {located.finding.advice}"
    yield from (f"    {line}" for line in _fix_lines(located, place))


def _fix_lines(located: LocatedFinding, place: ChangePlace) -> Iterator[str]:
    """Yield the fix: commands, or the changes of files if the rules are in files."""
    if located.is_shared:
        return
    fix = located.finding.fix
    by_acl = {rule.acl: rule for rule in located.rules}
    if not any(True for rule in located.rules for _ in rule.files()):
        lines = list(fix_commands(located.finding, place))
    else:
        lines = [_edit(change, by_acl.get(change.acl)) for change in fix]
    yield from lines[:_TEXT_RULES]
    if len(lines) > _TEXT_RULES:
        yield f"and {len(lines) - _TEXT_RULES:,} more changes"


def _edit(change: RuleChange, rule: LocatedRule | None) -> str:
    if change.added:
        return f"add: {acl_text(change.acl)}"
    places = "" if rule is None else rule.places_text()
    return f"remove: {places or acl_text(change.acl)}"
