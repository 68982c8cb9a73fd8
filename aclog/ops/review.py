"""Reviews of a change of rules: what it gives and takes, what it breaks, and whether that is acceptable."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from attrs import evolve

from aclog.analysis.comparison import Comparison, differences, rows_of_each
from aclog.analysis.lint.finding import Severity
from aclog.analysis.lint_report import LintReport, LocatedFinding, parted, physical_location
from aclog.analysis.lint_report import json_lines as lint_lines
from aclog.analysis.lint_report import sarif_log as lint_log
from aclog.analysis.policy import Policy, generation_object, marked, merged, only_on
from aclog.analysis.regions import Direction, ExistingNames, JsonObject, Query
from aclog.analysis.review.comment import code
from aclog.analysis.review.review import (
    DEFAULT_FAIL_ON,
    Addresses,
    Flipped,
    Item,
    Kind,
    LintOutcome,
    Proof,
    Protection,
    Review,
    TestsOutcome,
    UnreadItem,
    flipped,
    moves,
    renames,
    replacements,
)
from aclog.analysis.rows.folding import rows
from aclog.analysis.rows.report import ReportRow, decided_by_text, example_text, markdown_text, message_lines, row_lines
from aclog.analysis.rows.report import sarif_log as difference_log
from aclog.analysis.rule_tests.case import Failure, Outcome, parse_resource, resource_text, with_ids
from aclog.analysis.rule_tests.results import EachRun, nearest_change
from aclog.authorizer.acl import (
    ChangePlace,
    FileOrigin,
    Origins,
    ResourcePattern,
    StandardAcl,
    TwoOrigins,
    acl_text,
    code_name,
    origin_text,
)
from aclog.authorizer.acls_image import RuleChange
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.settings import Generation
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.authorizer.symbols import is_symbol, known_beginning, symbols_of
from aclog.metalog.errors import ConfigError, plural, printable
from aclog.metalog.values import frozen
from aclog.ops.lint import UNREAD_RULE, LintInputs, lint_inputs, repository_path, run_lint, unread_result, with_declared
from aclog.ops.policies import difference_objects
from aclog.ops.review_sides import (
    NEVER,
    PlaceLinks,
    ReviewedChange,
    ReviewSides,
    Side,
    SideReader,
    own_checks,
    unread_items,
)
from aclog.ops.test import settings_for
from aclog.planning.plan import PatternSet
from aclog.sources.accesses import Accesses, need_file, read_accesses
from aclog.sources.acl_lines import NameFile
from aclog.sources.choice import UNREAD, gaps_of
from aclog.sources.cluster_parts import cluster_parts
from aclog.sources.forks import each_part
from aclog.sources.named_source import NamedSource
from aclog.sources.repository import RepositorySettings
from aclog.sources.rule_tests import RuleTestFile, read_test_file
from aclog.terminal.output import note, warn

# What makes a review fail.


def fail_on_kinds(settings: "RepositorySettings") -> frozenset[Kind]:
    """Return what makes a review fail. Raises ConfigError: an unknown kind."""
    words = settings.review.fail_on
    return DEFAULT_FAIL_ON if words is None else frozenset(_kinds(words))


def _kinds(words: tuple[str, ...]) -> Iterator[Kind]:
    for word in (each.strip() for each in words):
        if word == NEVER and len(words) == 1:
            return
        if word not in set(Kind):
            raise ConfigError(f"review.fail-on (--fail-on): {word[:40]!r} is not one of {', '.join(Kind)}, or {NEVER}")
        yield Kind(word)


# Lint findings of both sides of a review: those that the change adds, leaves and fixes.


_RULES = 3


def lint_outcome(before: LintReport | None, after: LintReport | None) -> LintOutcome:
    """Compare the reports of both sides; None is that of a side without rules."""
    was = () if before is None else before.findings
    now = () if after is None else after.findings
    new, old = parted(now, was)
    fixed, _ = parted(was, now)
    suppressed, _ = parted(() if after is None else after.suppressed, () if before is None else before.suppressed)
    return LintOutcome(
        new_errors=_items(each for each in new if each.finding.severity is Severity.ERROR),
        new_warnings=_items(each for each in new if each.finding.severity is Severity.WARNING),
        old=_items(old),
        resolved=_items(fixed, has_fix=False),
        suppressed=_items(suppressed),
    )


def new_findings(before: LintReport | None, after: LintReport) -> tuple[LocatedFinding, ...]:
    """Return the findings that only the second report has."""
    return tuple(parted(after.findings, () if before is None else before.findings)[0])


def _items(findings: Iterable[LocatedFinding], *, has_fix: bool = True) -> tuple[Item, ...]:
    """Return findings as items; last are those whose fix changes no decision, such as a rule that another implies.

    `has_fix`: False for what the change has fixed.
    """
    return tuple(_item(each, has_fix=has_fix) for each in sorted(findings, key=lambda each: each.finding.neutral))


def _item(finding: LocatedFinding, *, has_fix: bool = True) -> Item:
    first, *others = finding.rules
    more = f" and {len(others):,} more" if others else ""
    lint, by = finding.lint, finding.suppressed_by
    end = f"Fix: {finding.finding.advice}" if by is None else f"Suppressed at {by.where}: {by.reason}"
    last = f"fix: {finding.finding.advice}" if by is None else f"{by.where}: {by.reason}"
    return Item(
        text=f"{lint.id} {lint.name}: {acl_text(first.acl)}{more}: {finding.finding.lost}",
        details=(*_places(finding), *((last,) if has_fix else ())),
        markdown=f"{code(acl_text(first.acl))}{more}: {markdown_text(finding.finding.lost)}. {markdown_text(end)}",
        places=tuple(place for rule in finding.rules[:_RULES] for place in rule.files()),
    )


def _places(finding: LocatedFinding) -> Sequence[str]:
    texts = [f"{rule.places_text()}: {acl_text(rule.acl)}" for rule in finding.rules[:_RULES] if rule.origins]
    remaining = len(finding.rules) - len(texts)
    return [*texts, f"and {remaining:,} more rules"] if texts and remaining > 0 else texts


# Proofs that a change leaves protected access as it is, or grants none (`untouched` and `no-gain` of `review`).


_MAX_ROWS = 5
"""Rows that refute a proof; the effective change has all."""


@frozen(kw_only=True)
class Protected:
    """A resource that a change must not affect, or on which it must grant nothing."""

    resource: ResourcePattern
    setting: Protection

    @property
    def text(self) -> str:
        """What is to be proved."""
        name = resource_text(self.resource)
        if self.setting is Protection.NO_GAIN:
            return f"no principal gains access to {name}"
        return f"{name} is decided as before"

    def negation(self, *, is_sure: bool) -> str:
        """Return what is so if it is refuted, or only may be: rules may have values known after apply only."""
        name = resource_text(self.resource)
        if self.setting is Protection.NO_GAIN:
            return f"at least one principal {'gains' if is_sure else 'may gain'} access to {name}"
        return f"{name} {'is' if is_sure else 'may be'} decided differently for at least one request"

    @property
    def directions(self) -> Collection[Direction]:
        """Those of the differences that refute it."""
        return (Direction.GAINED,) if self.setting is Protection.NO_GAIN else tuple(Direction)


def protected(settings: RepositorySettings) -> list[Protected]:
    """Return the resources of aclog.toml that a change must not affect. Raises ConfigError: an invalid one."""
    texts = {Protection.UNTOUCHED: settings.review.untouched, Protection.NO_GAIN: settings.review.no_gain}
    resources = []
    for setting, text in ((setting, text) for setting, each in texts.items() for text in each or ()):
        try:
            resources.append(Protected(resource=parse_resource(text), setting=setting))
        except ConfigError as error:
            raise settings.error("review", setting.value, what=str(error)) from error
    return resources


def prove(resources: Sequence[Protected], compared: Mapping[Generation | None, Comparison]) -> list[Proof]:
    """Prove for each resource that the change does not affect it, by each Kafka that may decide."""
    return [_prove(each, compared) for each in resources]


def _prove(protected: Protected, compared: Mapping[Generation | None, Comparison]) -> Proof:
    refuting: dict[Generation | None, list[ReportRow | str]] = {
        generation: [*_refuting(protected, each), *_symbols_refuting(protected.resource, each)]
        for generation, each in compared.items()
    }
    by = [generation for generation, found in refuting.items() if found]
    return Proof(
        text=protected.text,
        holds=not by,
        negation=protected.negation(
            is_sure=any(isinstance(row, ReportRow) for found in refuting.values() for row in found)
        ),
        details=tuple(marked({each: _lines(found, row_lines) for each, found in refuting.items()})),
        messages=tuple(marked({each: _lines(found, message_lines) for each, found in refuting.items()})),
        only=by[0] if len(by) == 1 else None,
        setting=protected.setting,
        resource=resource_text(protected.resource),
    )


def _lines(found: Iterable[ReportRow | str], lines_of: Callable[[ReportRow], Iterable[str]]) -> list[str]:
    return [line for each in found for line in ((each,) if isinstance(each, str) else lines_of(each))]


def _refuting(protected: Protected, comparison: Comparison) -> Iterator[ReportRow]:
    query = Query(resources=(protected.resource,))
    changed = [change.acl for change in comparison.changes]
    each_difference = differences(comparison.old, comparison.new, query=query, changed=changed)
    regions = [each for each in each_difference if each.direction in protected.directions]
    changes = ((change.added, change.acl) for change in comparison.changes)
    for row in islice(rows(regions, comparison.old, comparison.new, changes), _MAX_ROWS):
        yield ReportRow(row=row, origins=comparison.origins)


def _symbols_refuting(resource: ResourcePattern, comparison: Comparison) -> Iterator[str]:
    """Yield the changed rules that may change what is decided on a resource, by what a symbol turns out to be."""
    symbolic = {*comparison.old.acls.symbolic(), *comparison.new.acls.symbolic()}
    if not symbolic:
        return
    target = PatternSet.of((resource,))
    has_other = any(_may_meet(each, target) for each in symbolic)
    for change in comparison.changes:
        if _may_meet(change.acl, target) and (has_other or is_symbol(change.acl.resource_name)):
            sign = "+" if change.added else "-"
            yield f"{sign} {acl_text(change.acl)}: its effect depends on values known after apply only"


def _may_meet(acl: StandardAcl, target: PatternSet) -> bool:
    """Return whether a rule shares a name with some patterns; a symbol may be any name with its known beginning."""
    if not is_symbol(acl.resource_name):
        return target.meets(acl.resource_type, acl.resource_name, acl.pattern_type)
    beginning = known_beginning(acl.resource_name)
    return not beginning or target.meets(acl.resource_type, beginning, PatternType.PREFIXED)


def symbol_doubts(compared: Mapping[Generation | None, Comparison]) -> Iterator[str]:
    """Yield that rules changed without an effective change, where a symbol may turn out to have one."""
    for each in compared.values():
        symbolic = (*each.new.acls.symbolic(), *each.old.acls.symbolic())
        if each.changes and not each.differences and symbolic:
            symbols = list(dict.fromkeys(symbol for acl in symbolic for symbol in symbols_of(acl)))
            more = f" and {len(symbols) - _SYMBOLS_SHOWN:,} more" if symbols[_SYMBOLS_SHOWN:] else ""
            listed = ", ".join(symbols[:_SYMBOLS_SHOWN])
            yield f"rules change, and the effect depends on values known after apply only: {listed}{more}"
            return


_SYMBOLS_SHOWN = 3


# A review as JSON lines: the verdict, then each difference, finding and failure with its `kind`.


def json_lines(review: Review, new: LintReport) -> Iterator[JsonObject]:
    """Yield the objects (docs/commands); `new` is the report on the new findings."""
    kinds = review.kinds
    yield {
        "kind": "verdict",
        "verdict": "FAILS" if review.fails else "PASSES",
        "found": [kind.value for kind in Kind if kind in kinds],
        "failOn": [kind.value for kind in Kind if kind in review.fail_on],
        "testsPassed": review.tests.passed,
        "checksChanged": list(review.own_checks),
        "unread": len(review.unread),
        "doubts": list(review.doubts),
        **_generations(review),
    }
    for unread in review.unread:
        yield _unread_object(unread)
    for line in difference_objects(review.comparisons):
        yield {"kind": "difference", **line}
    for proof in review.proofs:
        yield {
            "kind": "proof",
            "text": proof.text,
            "holds": proof.holds,
            "setting": proof.setting.value,
            "resource": proof.resource,
            **generation_object(proof.only),
        }
    for failure in review.tests.failures:
        yield {"kind": "test", "text": failure.text, "details": list(failure.details)}
    for line in lint_lines(new, ChangePlace()):
        yield {"kind": "finding", **line}
    for each in review.flipped:
        yield {
            "kind": "accesses",
            "change": each.direction.value,
            "principal": each.principal,
            "operation": code_name(AclOperation, each.operation),
            "resourceType": code_name(ResourceType, each.resource_type),
            "resourceNames": list(each.names),
            "accesses": each.accesses,
            **generation_object(each.only),
        }


def _unread_object(unread: UnreadItem) -> JsonObject:
    place = unread.item.origin
    return {
        "kind": "unread",
        "label": unread.label,
        "file": None if place is None else place.file,
        "line": None if place is None else place.line,
        "text": unread.item.text,
        "changed": unread.is_changed,
    }


def _generations(review: Review) -> JsonObject:
    several = [each.value for each in review.comparisons if each is not None]
    return {"generations": several} if several else {}


# A review as one SARIF log: what is gained and lost, proofs and tests that fail, and new findings of lint.


_PROOF, _TEST = "proof-refuted", "rule-test-fails"


def sarif_log(review: Review, new: LintReport, *, version: str) -> JsonObject:
    """Return the log; `new` is the report on the new findings."""
    log: dict[str, Any] = dict(lint_log(new, ChangePlace(), version=version, uri_of=repository_path))
    (run,) = log["runs"]
    changed: dict[str, Any] = dict(difference_log([*map(_from_top, review.rows)], version=version, path=None))
    (other,) = changed["runs"]
    run["tool"]["driver"]["rules"] += [
        *other["tool"]["driver"]["rules"],
        _rule(_PROOF, "What must not change does"),
        _rule(_TEST, "A test of rules fails"),
        UNREAD_RULE,
    ]
    refuted = (
        Item(text=f"{each.text}{only_on(each.only)}", details=each.messages) for each in review.proofs if not each.holds
    )
    run["results"] += [*other["results"], *_results(_PROOF, refuted), *_results(_TEST, review.tests.failures)]
    run["results"] += [
        unread_result(each.item.text, each.item.origin, "warning" if each.is_changed else "note")
        for each in review.unread
        if each.item.origin is not None
    ]
    return log


def _from_top(report: ReportRow) -> ReportRow:
    """Return a row whose places are paths from the top of the repository, as code scanning wants them."""
    return evolve(report, places=tuple(map(_place_from_top, report.places)))


def _place_from_top(place: FileOrigin) -> FileOrigin:
    calls = tuple(evolve(each, file=repository_path(each.file)) for each in place.calls)
    return evolve(place, file=repository_path(place.file), calls=calls)


def _rule(name: str, text: str) -> JsonObject:
    return {"id": name, "shortDescription": {"text": text}}


def _results(rule: str, items: Iterable[Item]) -> Iterator[JsonObject]:
    for item in items:
        text = "\n".join((item.text, *item.details))
        yield {"ruleId": rule, "level": "error", "message": {"text": text}, "locations": _locations(item)}


def _locations(item: Item) -> list[JsonObject]:
    if item.origin is None:
        return []
    return [{"physicalLocation": physical_location(repository_path(item.origin.file), item.origin.line)}]


# The tests of rules that a review runs on its head.


_TESTS_SHOWN = 3
"""Reasons of a failing case; `aclog test` shows more."""


@frozen(eq=False, kw_only=True)
class HeadTests:
    """The tests of a review, and the rules that they are run on: those of the head."""

    settings: RepositorySettings
    settings_win: Collection[str]
    """The settings of the authorizer that hold regardless of a file of tests, which otherwise has precedence."""
    path: str
    """The file or directory of rules."""
    sides: ReviewSides

    def run(self) -> TestsOutcome:
        """Run the tests.

        Raises:
            MetadataError: a malformed file, or another state that a test compares with cannot be read.
            OSError: a file cannot be read.

        """
        files = [read_test_file(path) for path in self.settings.test.files]
        outcomes = [self._run_file(file) for file in files if self._is_run(file)]
        return TestsOutcome(
            failures=tuple(item for failed, _ in outcomes for item in failed),
            passed=sum(passed for _, passed in outcomes),
            left_out=tuple(
                f"{file.path}: left out: its tests are of {file.source.value}, not of {self.path}"
                for file in files
                if file.source is not None and not self._is_run(file)
            ),
        )

    def _is_run(self, file: RuleTestFile) -> bool:
        return file.source is None or self._is_about_path(file.source)

    def _run_file(self, file: RuleTestFile) -> tuple[list[Item], int]:
        settings = settings_for(file, self.settings_win, self.settings)
        head = self.sides.head
        policies = self.sides.policies(head, settings.authorizer)
        numbered = {generation: with_ids(policy) for generation, policy in policies.items()}
        run = EachRun.of(numbered, _gaps(head))
        outcomes = [run.run(case) for case in file.cases]
        failed = [outcome for outcome in outcomes if not outcome.passed]
        items = [_test_item(outcome, numbered, head.placement.origins) for outcome in failed]
        return items, len(outcomes) - len(failed)

    def _is_about_path(self, source: NamedSource) -> bool:
        return source.kind == "acls" and Path(source.value).resolve() == Path(self.path).resolve()


def _test_item(outcome: Outcome, policies: Mapping[Generation, Policy], origins: Origins) -> Item:
    case, only = outcome.case, outcome.failures[0].only
    policy = next(iter(policies.values())) if only is None else policies[only]
    first, *others = outcome.failures
    more = f"; {len(others):,} more" if others else ""
    return Item(
        text=f"{case.test}: {case.text}: {first.actual}{more}",
        origin=case.origin,
        details=(
            origin_text(case.origin),
            *(line for each in outcome.failures[:_TESTS_SHOWN] for line in _details(each, origins)),
            *map(_change_text, nearest_change(case, policy)),
        ),
    )


def _details(failure: Failure, origins: Origins) -> Iterator[str]:
    if failure.request is not None:
        yield f"for example {example_text(failure.request)}: {decided_by_text(failure.decided_by, origins)}"


def _change_text(change: RuleChange) -> str:
    return f"the nearest change: {'add' if change.added else 'remove'} {acl_text(change.acl)}"


# Reviews a change.


@frozen(eq=False, kw_only=True)
class Reviewed:
    """A review, and what its programs' formats need besides."""

    review: Review
    new: LintReport
    """On the new findings."""

    def objects(self) -> Iterator[JsonObject]:
        """Yield the verdict, and an object for each difference, proof, finding and failure (docs/commands)."""
        return json_lines(self.review, self.new)

    def with_tests(self, tests: TestsOutcome, *foot: str) -> "Reviewed":
        """Return the review with the outcome of tests, and more lines at its foot."""
        foot = (*self.review.foot, *_tests_foot(tests), *foot)
        return evolve(self, review=evolve(self.review, tests=tests, foot=foot))


def review_objects(reviewed: Mapping[str, Reviewed]) -> Iterator[JsonObject]:
    """Yield the objects of the reviews of clusters, by name, each with the key `cluster` if it has a name."""
    for name, review in reviewed.items():
        for each in review.objects():
            yield {"kind": each["kind"], "cluster": name, **each} if name else each


def review_change(
    change: ReviewedChange,
    settings: RepositorySettings,
    *,
    settings_win: Collection[str] = (),
    name_file: Callable[[str, str], NameFile] = NameFile,
    processes: int | None = 1,
) -> dict[str, Reviewed]:
    """Review a change of rules; return a review for each cluster by its name, an empty one if there is one cluster.

    `settings`: those of aclog.toml, with what the caller gives instead. `settings_win`: the settings of the authorizer
    that hold regardless of a file of tests, by their names in AuthorizerSettings. `name_file` reads topics and groups.
    `processes`: as each_part.

    Raises:
        ConfigError: settings that are not valid, a commit that this clone lacks, or malformed files.
        MetadataError, OSError: something cannot be read.

    """
    resources, fail_on = protected(settings), fail_on_kinds(settings)
    path = change.path or settings.source.acls
    if path is None and change.render is None:
        paths = "source.acls" if change.render_configured else "PATH, or source.acls"
        raise ConfigError(f"no rules are named: expected {paths} in aclog.toml")
    path = path or os.curdir
    if settings.source.accesses is not None:
        need_file(settings.source.accesses, "a review reads the accesses twice, which a pipe cannot be")
    names = None if settings.source.topics is None else name_file(settings.source.topics, "a topic")
    sides = SideReader(change=change, path=path, topics=names, settings=settings).read()
    topics = None if names is None else ExistingNames.of(names.names())
    tests = HeadTests(settings=settings, settings_win=settings_win, path=path, sides=sides).run()
    reviewer = _Reviewer(
        settings=settings,
        resources=resources,
        topics=topics,
        inputs=lint_inputs(settings, topics, name_file=name_file),
        accesses=_accesses(settings),
        fail_on=fail_on,
    )
    parts = None if change.cluster else cluster_parts((sides.base.choice, sides.head.choice))
    if parts is None:
        return {"": reviewer.review(sides).with_tests(tests)}
    text = f"{path}: {parts.note}"
    note(printable(text))
    by_name = {
        name: evolve(sides, base=sides.base.with_choice(base), head=sides.head.with_choice(head))
        for name, (base, head) in parts.by_name.items()
    }
    reviews = each_part(
        list(by_name), lambda name: reviewer.review(by_name[name]), what="sections", processes=processes
    )
    reviewed = dict(reviews)
    if tests.passed or tests.failures:
        tests = evolve(tests, left_out=(*tests.left_out, _ALL_AT_ONCE))
    shown = max(reviewed, key=lambda name: len(reviewed[name].review.rows))  # where a change may have broken them
    return {**reviewed, shown: reviewed[shown].with_tests(tests, text)}


_ALL_AT_ONCE = "tests were run once, on the rules of all clusters together"


@frozen(eq=False, kw_only=True)
class _Reviewer:
    """What the reviews of all clusters have in common."""

    settings: RepositorySettings
    resources: Sequence[Protected]
    topics: ExistingNames | None
    """Those that exist."""
    inputs: LintInputs
    accesses: Accesses | None
    """Recent ones."""
    fail_on: frozenset[Kind]
    """What makes a review fail."""

    def review(self, sides: ReviewSides) -> Reviewed:
        """Review both sides, without tests."""
        settings, accesses = self.settings, self.accesses
        before, after = _lint(sides, sides.base, self.inputs), _lint(sides, sides.head, self.inputs)
        origins = TwoOrigins(old=sides.base.placement.origins, new=sides.head.placement.origins)
        compared = _compared(sides, self.topics, origins)
        comparison = next(iter(compared.values()))
        review = Review(
            comparisons=compared,
            rows=list(rows_of_each(compared)),
            renames=renames(comparison.changes, comparison.old.acls, comparison.new.acls),
            moves=moves((rule.acl for rule in sides.head.image.acls), sides.base.placement, sides.head.placement),
            replacements=replacements(_addresses(sides.base), _addresses(sides.head)),
            proofs=prove(self.resources, compared),
            lint=lint_outcome(before, after),
            flipped=[] if accesses is None else _flipped(compared, accesses),
            own_checks=tuple(own_checks(sides, settings)),
            unread=unread_items(sides),
            doubts=(
                *sides.doubts,
                *symbol_doubts(compared),
                *_doubts_of(accesses, compared),
            ),
            foot=tuple(_foot(sides, settings)),
            fail_on=self.fail_on,
            place_of=PlaceLinks(sides=sides),
        )
        return Reviewed(review=review, new=evolve(after, findings=new_findings(before, after)))


def _compared(
    sides: ReviewSides, topics: ExistingNames | None, origins: TwoOrigins
) -> Mapping[Generation | None, Comparison]:
    """Compare both sides, as each generation of Kafka decides that may."""
    old, new = sides.policies(sides.base), sides.policies(sides.head)
    return {
        generation if len(new) > 1 else None: Comparison.of(old[generation], policy, topics=topics, origins=origins)
        for generation, policy in new.items()
    }


def _gaps(side: Side) -> Premises:
    """Return what the rules of a side leave unknown; what was not read is reported for itself."""
    return ALL_KNOWN if side.choice is None else gaps_of(side.choice.source).without({UNREAD})


def _lint(sides: ReviewSides, side: Side, inputs: LintInputs) -> LintReport:
    if side.choice is None:
        return LintReport(findings=(), rules=0)
    policies, inputs = sides.policies(side), with_declared(inputs, side.choice)
    policy, premises = next(iter(policies.values())), _gaps(side)
    return run_lint(side.choice, side.image, policy, inputs, policies=policies, premises=premises)


def _flipped(compared: Mapping[Generation | None, Comparison], accesses: Accesses) -> list[Flipped]:
    flips = {generation: flipped(accesses.counts, each.old, each.new) for generation, each in compared.items()}
    return [evolve(each, only=only) for each, only in merged(flips)]


def _accesses(settings: RepositorySettings) -> Accesses | None:
    path = settings.source.accesses
    if path is None:
        return None
    accesses = read_accesses(path)
    if accesses.malformed:
        warn(f"{path}: {plural(accesses.malformed, 'line')} skipped: no accesses")
    return accesses


def _doubts_of(accesses: Accesses | None, compared: Mapping[Generation | None, Comparison]) -> Iterator[str]:
    """Yield what is not known of the accesses that the change may break."""
    if accesses is not None and accesses.unread and any(each.differences for each in compared.values()):
        yield (
            f"{accesses.unread:,} of the recent accesses could not be read or decided: the change may break them, and "
            "they are not among those below"
        )


def _addresses(side: Side) -> Addresses:
    """Return the addresses that Terraform gives to the rules."""
    by_rule: dict[tuple[str, StandardAcl], set[str]] = {}
    origins, path_of = side.placement.origins, side.placement.path_of
    for rule in (entry.acl for entry in side.image.acls):
        for origin in origins.of(rule):
            if isinstance(origin, FileOrigin) and origin.address is not None:
                key = os.path.dirname(path_of(origin.file)), rule  # noqa: PTH120
                by_rule.setdefault(key, set()).add(origin.address)
    return {key: frozenset(addresses) for key, addresses in by_rule.items()}


def _foot(sides: ReviewSides, settings: RepositorySettings) -> Iterator[str]:
    before, after = len(sides.base.image.acls), len(sides.head.image.acls)
    yield f"{sides.head.name}: {plural(after, 'rule')}; {sides.base.name}: {plural(before, 'rule')}"
    if sides.command is not None:
        yield f"the rules are the output of {sides.command.text}, run in a copy of each side"
    authorizer = settings.authorizer
    if authorizer.super_users:
        yield f"super users: {authorizer.super_users}"
    if authorizer.allow_everyone:
        yield "allow.everyone.if.no.acl.found is true"


def _tests_foot(tests: TestsOutcome) -> Iterator[str]:
    """Yield how many tests were run, and which were not: one that was not run does not fail."""
    if tests.passed or tests.failures:
        yield f"tests: {tests.passed:,} pass, {len(tests.failures):,} fail"
    yield from tests.left_out
