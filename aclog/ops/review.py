"""Reviews of a change of rules: what it gives and takes, what it breaks, and whether that is acceptable."""

import os
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import cache, cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

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
    LinkedPlace,
    LintOutcome,
    Placement,
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
    ModuleCall,
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
from aclog.metalog.errors import NO_SUCH_PATH, ConfigError, plural, printable
from aclog.ops.lint import UNREAD_RULE, LintInputs, lint_inputs, repository_path, run_lint, unread_result, with_declared
from aclog.ops.policies import StatedSettings, difference_objects, policy_by, settings_by, warn_of_super_users
from aclog.ops.test import settings_for
from aclog.planning.plan import PatternSet
from aclog.snapshots.deciding_kafka import deciding_kafka
from aclog.snapshots.image import Image
from aclog.sources.accesses import Accesses, need_file, read_accesses
from aclog.sources.acl_lines import NameFile
from aclog.sources.choice import (
    UNREAD,
    AclsSource,
    ChosenSource,
    SourceSelection,
    choose_source,
    gaps_of,
    not_accepted,
    parse_accepted,
)
from aclog.sources.cluster_parts import cluster_parts, reading_ahead
from aclog.sources.forks import each_part
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.unread import Dormant, Unread, UnreadKind
from aclog.sources.git import (
    GitPlace,
    HostedLines,
    changed_files,
    commit_id,
    default_base,
    default_branch,
    exists,
    file_content,
    merge_base,
    path_from_top,
    submodules,
    top_directory,
    way_out,
)
from aclog.sources.named_source import NamedSource
from aclog.sources.read_options import NO_INPUTS, ModuleInputs
from aclog.sources.rendering import PATIENCE_S, RenderCommand, Rendered, parse_command, render
from aclog.sources.repository import SETTINGS_FILE, RepositorySettings, render_commands
from aclog.sources.rule_tests import RuleTestFile, read_test_file
from aclog.sources.toml import parse_toml
from aclog.terminal.output import note, warn

# What is reviewed, and what makes a review fail.


NEVER = "never"


@frozen(kw_only=True)
class ReviewedChange:
    """The two sides: where the rules are, and of which commits."""

    path: str | None
    """The file or directory of rules; None: that of the settings."""
    base: str | None = None
    """The commit to compare with: the merge base of the head and this branch, tag or commit; None: the default
    branch."""
    head: str | None = None
    """The commit to review; None: the working tree."""
    form: AclsFormat | None = None
    modules: Mapping[str, str] = field(factory=dict)
    """The directory of each Terraform module that is not among the files, by its source."""
    exclude: tuple[str, ...] = ()
    """Globs of files that are not read."""
    accept_unread: tuple[str, ...] = ()
    """Content that may stay unread, as `--accept-unread` takes it."""
    inputs: ModuleInputs = NO_INPUTS
    """What the root modules of Terraform get, besides that of the settings."""
    render: str | None = None
    """A command whose output is the rules of a side."""
    render_configured: bool = False
    """Whether to run the command in the aclog.toml of the base, if it has one."""
    render_timeout: float = PATIENCE_S
    """How long the command may take on a side, in seconds."""
    cluster: str = ""
    """The name of the cluster in aclog.toml, if there are several."""


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


# The two sides of a review: the rules of a commit, and those of another or of the working tree.


_SHORT = 10
"""Digits of a commit's id, as people read it."""


@frozen(eq=False, kw_only=True)
class Side:
    """The rules of one side."""

    name: str
    """Such as `main (3fa08c21d4)`, or `the working tree`."""
    ref: str | None
    choice: ChosenSource | None
    """None if the path is not there: no rules."""
    image: Image
    authorizer: StatedSettings
    rendered: Rendered | None = None
    """The output of a command, if the rules are in one."""

    @property
    def output(self) -> str | None:
        """What locations name that output; None without one."""
        return None if self.rendered is None else self.rendered.name

    @property
    def may_have_failed(self) -> bool:
        """Whether a command wrote nothing, or something to stderr, though it did not fail."""
        rendered = self.rendered
        return rendered is not None and (rendered.warning is not None or not rendered.output.strip())

    @property
    def unread(self) -> Sequence[Unread]:
        """What may hold rules and was not read."""
        return () if self.choice is None else self.choice.unread

    @property
    def dormant(self) -> Sequence[Dormant]:
        """What makes no rules by the values that were read, and is not accepted."""
        source = None if self.choice is None else self.choice.source
        if not isinstance(source, AclsSource):
            return ()
        accepted = source.options.accept_unread
        return [each for each in source.dormant if not_accepted((each.unread,), accepted)]

    @cached_property
    def placement(self) -> Placement:
        """Where the rules stand."""
        if self.choice is None:
            return Placement()
        ref = self.ref
        if ref is None:
            return Placement(origins=self.choice.origins, path_of=cache(partial(self._path, top=top_directory())))
        return Placement(origins=self.choice.origins, path_of=lambda file: file.removeprefix(f"{ref}:"))

    def _path(self, file: str, top: Path) -> str:
        return file if file == self.output else path_from_top(file, top=top)

    def with_choice(self, choice: ChosenSource | None) -> "Side":
        """Return the side with the rules of a part of its source."""
        return self if choice is None else evolve(self, choice=choice, image=choice.image())

    def without_ref(self, text: str) -> str:
        """Return a text whose locations do not name the commit, so that it equals that of another side."""
        return text if self.ref is None else text.replace(f"{self.ref}:", "")


@frozen(eq=False, kw_only=True)
class ReviewSides:
    """Both sides, and the files that are not the same in both."""

    base: Side
    head: Side
    changed: frozenset[str]
    """From the top of the repository; all files, not only those of rules."""
    base_commit: str
    head_commit: str | None
    """None for the working tree."""
    doubts: tuple[str, ...] = ()
    """Why the sides may not be what people think they are."""
    command: RenderCommand | None = None
    """The command whose output is the rules of both sides."""

    @cached_property
    def generations(self) -> tuple[Generation, ...]:
        """The generations of Kafka that may decide on both sides, if they do not decide alike; else one generation."""
        sides = (self.base, self.head)
        return max((deciding_kafka(each.image, each.authorizer.generation).generations for each in sides), key=len)

    def policies(self, side: Side, authorizer: StatedSettings | None = None) -> dict[Generation, Policy]:
        """Return the policy of a side for each generation; `authorizer`: by other settings than its own.

        Warns of super users in other settings that are likely a mistake; those of the sides are checked when read.

        Raises:
            ConfigError: a super user without a colon.

        """
        if authorizer is None or settings_by(authorizer) == settings_by(side.authorizer):
            return self._own_policies[side]
        warn_of_super_users(authorizer)
        return self._policies(side, authorizer)

    @cached_property
    def _own_policies(self) -> dict[Side, dict[Generation, Policy]]:
        """The policies of both sides by their own settings, by side."""
        return {side: self._policies(side, side.authorizer) for side in (self.base, self.head)}

    def _policies(self, side: Side, stated: StatedSettings) -> dict[Generation, Policy]:
        generations = self.generations if stated.generation is None else (stated.generation,)
        return {each: policy_by(side.image, stated.of_generation(each)) for each in generations}

    def head_has(self, file: str) -> bool:
        """Return whether the head has a file, by its path from the top of the repository."""
        if self.head_commit is None:
            return (top_directory() / file).exists()
        return exists(GitPlace(ref=self.head_commit, path=file))


@frozen(kw_only=True)
class SideReader:
    """Reads both sides the same way."""

    change: ReviewedChange
    path: str
    topics: NameFile | None
    settings: RepositorySettings

    def read(self) -> ReviewSides:
        """Read both sides; warn of super users that are likely unintended.

        Raises:
            ConfigError: a commit that this clone does not have, a path that is on neither side, malformed files, or a
                super user without a colon.
            OSError: a file cannot be read.

        """
        warn_of_super_users(self.settings.authorizer)
        path = path_from_top(self.path)
        head_ref = self.change.head
        head_commit = None if head_ref is None else _commit(head_ref)
        base_ref, doubts = _parted(self.change.base or default_base(), head_commit or "HEAD", head_ref or "HEAD")
        self._check_var_files(base_ref, head_ref)
        command = self._command(base_ref, doubts)
        place = None if head_ref is None else GitPlace(ref=head_ref, path=path)
        with self._reading_ahead(place, command) as choice:
            base = self._side(GitPlace(ref=base_ref, path=path), command)
            head = self._working_tree(command, choice) if place is None else self._side(place, command, choice)
        if base.choice is head.choice is None:
            raise ConfigError(f"{self.path}: neither {base.name} nor {head.name} has it")
        for side in (base, head):
            if side.choice is None:
                doubts.append(f"{self.path}: {side.name} does not have it, so it has no rules")
            elif side.choice.nothing_read is not None and command is not None:
                doubts.append(f"{command.text}: wrote no rules of {side.name}")
            elif side.choice.nothing_read is not None:
                doubts.append(f"{self.path}: {side.name} has no file of a known format, so no rules")
        if head.choice is not None and head.choice.nothing_read is not None and head.may_have_failed:
            # A renderer that fails half-way would seem to remove all rules, which is not reviewed as a gain.
            of_base = f"{base.name} has {plural(len(base.image.acls), 'rule')}"
            raise ConfigError(f"{head.name}: {head.output}: wrote no rules, while {of_base}")
        nothing = [each.choice.nothing_read for each in (head, base) if each.choice is not None]
        if nothing[0] is not None and all(nothing) and not (head.unread or base.unread):
            raise ConfigError(nothing[0])
        for broken in _newly_broken(base, head):
            raise ConfigError(f"{broken.file}: {broken.reason}")
        doubts += _unknown_kafka(base, head)
        for each in doubts:
            note(each)
        return ReviewSides(
            base=base,
            head=head,
            changed=frozenset(changed_files(base_ref, head_commit)),
            base_commit=_commit(base_ref),
            head_commit=head_commit,
            doubts=tuple(doubts),
            command=command,
        )

    def _check_var_files(self, base: str, head: str | None) -> None:
        """Refuse a file of variables that neither side has: it is mistyped, and both sides would have defaults.

        Raises:
            ConfigError: there is such a file.

        """
        refs = [ref for ref in (base, head) if ref is not None]
        for name in self.change.inputs.over(self.settings.source.inputs()).var_files:
            try:
                path = path_from_top(name)
            except ConfigError:  # outside of the repository: both sides read it as it is
                continue
            in_tree = head is None and Path(name).exists()
            if not in_tree and not any(exists(GitPlace(ref=ref, path=path)) for ref in refs):
                sides = f"neither in {base} nor in {head or 'the working tree'}"
                raise ConfigError(f"--var-file: {name}: {NO_SUCH_PATH}, {sides}")

    def _command(self, base_ref: str, doubts: list[str]) -> RenderCommand | None:
        """Return the command whose output is the rules; None: they are read from the files."""
        change, own = self.change, self.settings.source.render
        if change.render is not None:
            return parse_command(change.render, path_from_top(os.curdir), change.render_timeout)
        if not change.render_configured:
            return None
        file, directory, commands = configured_commands(self.settings, base_ref)
        text = commands.get(change.cluster)
        if text is not None and text != own:
            doubts.append(f"{file}: {text[:200]!r} was run, that of the base: the change modifies its key render")
        elif text is None and (own is not None or not commands):
            doubts.append(f"{file}: no key render{_of_cluster(change.cluster)}, so files are read as they are")
        return None if text is None else parse_command(text, directory, change.render_timeout)

    @contextmanager
    def _reading_ahead(self, place: GitPlace | None, command: RenderCommand | None) -> Iterator[ChosenSource | None]:
        """Have another process read the files of the head during the `with`; yield their source, None if none is.

        `place`: as _side; None: the working tree.
        """
        if command is not None or not (Path(self.path).exists() if place is None else exists(place)):
            yield None
            return
        choice = choose_source(self._selection(acls=self.path) if place is None else self._selection(ref=place.name))
        with reading_ahead(choice):
            yield choice

    def _side(self, place: GitPlace, command: RenderCommand | None, choice: ChosenSource | None = None) -> Side:
        """Return the side of a commit; `choice`: its source, if it is being read already."""
        commit = _commit(place.ref)
        name = place.ref if commit.startswith(place.ref) else f"{place.ref} ({commit[:_SHORT]})"
        if choice is None and not exists(place):
            return _without_rules(name, self.settings.authorizer)
        if command is not None:
            return self._rendered(name, command, place.ref)
        return self._read(name, choice or choose_source(self._selection(ref=place.name)), place.ref)

    def _rendered(self, name: str, command: RenderCommand, ref: str | None) -> Side:
        rendered = render(command, ref, name)
        side = self._read(name, choose_source(self._selection(rendered=rendered)), ref)
        if rendered.warning is not None:
            note(printable(f"{name}: {command.text}: {rendered.warning}"))
        return evolve(side, rendered=rendered)

    def _working_tree(self, command: RenderCommand | None, choice: ChosenSource | None) -> Side:
        if not Path(self.path).exists():
            return _without_rules("the working tree", self.settings.authorizer)
        if command is not None:
            return self._rendered("the working tree", command, None)
        # Its directory is empty in a clone without submodules: a review of no files would pass.
        for each in submodules(path_from_top(self.path)):
            raise ConfigError(f"{each}: a submodule: its files are in another repository")
        return self._read("the working tree", choice or choose_source(self._selection(acls=self.path)), None)

    def _selection(
        self, *, ref: str | None = None, acls: str | None = None, rendered: Rendered | None = None
    ) -> SourceSelection:
        source, form = self.settings.source, self.change.form
        if form is None and self.change.path is None and source.format is not None:  # it is that of source.acls
            form = AclsFormat(source.format)
        of_settings = (text.rpartition("=") for text in source.modules)
        return SourceSelection(
            acls=acls,
            ref=ref,
            rendered=rendered,
            form=form or AclsFormat.AUTO,
            modules={**{name: directory for name, _, directory in of_settings}, **self.change.modules},
            exclude=(*source.exclude, *self.change.exclude),
            accept_unread=parse_accepted((*source.accept_unread, *self.change.accept_unread)),
            inputs=self.change.inputs.over(source.inputs()),
            topics=self.topics,
            may_be_empty=True,
            notes_clusters=False,
        )

    def _read(self, name: str, choice: ChosenSource, ref: str | None) -> Side:
        image = choice.image()
        return Side(name=name, ref=ref, choice=choice, image=image, authorizer=self.settings.authorizer)


def configured_commands(settings: RepositorySettings, base_ref: str) -> tuple[str, str, Mapping[str, str]]:
    """Return the name of the settings file of the base, its directory, and its key `render` by cluster.

    The file of the change is not read: a pull request may have written it, and would run what it likes. A file that a
    flag names outside of the repository is no part of a change.

    Raises:
        ConfigError: the file of the base is not TOML, or the key is no text.

    """
    files = list(_settings_files())
    named = files[0] if settings.file is None else _stated_inside(settings.file)
    if named is None:
        commands = {} if settings.document is None else render_commands(settings.document)
        return str(settings.file), path_from_top(os.curdir), commands
    for file in files[files.index(named) :] if named in files else [named]:
        content = file_content(base_ref, file)
        if content is not None:
            display = f"{base_ref}:{file}"
            return display, os.path.dirname(file), render_commands(parse_toml(content, display))  # noqa: PTH120
    return f"{base_ref}:{named}", "", {}


def _stated_inside(file: Path) -> str | None:
    """Return the path of a file from the top of the repository; None if it does not lead through the repository.

    Symbolic links in the repository are not followed: the change may have them.
    """
    top, path = top_directory().resolve(), Path(os.path.normpath(Path.cwd() / file))
    for directory in reversed(path.parents):
        real = directory.resolve()
        if real.is_relative_to(top):
            return (real.relative_to(top) / path.relative_to(directory)).as_posix()
    return None


def _of_cluster(name: str) -> str:
    return f" of the cluster {name}" if name else ""


def _without_rules(name: str, authorizer: StatedSettings) -> Side:
    image = Image()
    return Side(name=name, ref=None, choice=None, image=image, authorizer=authorizer)


def _unknown_kafka(*sides: Side) -> list[str]:
    """Return that it is not known which Kafka decides, if that matters."""
    for side in reversed(sides):
        kafka = deciding_kafka(side.image, side.authorizer.generation)
        if not kafka.is_known:
            return [kafka.ambiguity()]
    return []


def _commit(ref: str) -> str:
    commit = commit_id(ref)
    if commit is None:
        fix, default = way_out(ref, ref), default_branch()
        known = "" if default is None or default in fix else f"; the default branch is {default!r}"
        raise ConfigError(f"{ref}: this clone has no such commit{known}{fix}")
    return commit


def _parted(base: str, head: str, head_name: str) -> tuple[str, list[str]]:
    """Return the commit at which the head parted from the base: what came to the base since is not the head's.

    With it come doubts: the clone may be shallow.
    """
    commit = _commit(base)
    parted = merge_base(commit, head)
    if parted is None:
        doubt = (
            f"{base}: this clone does not have the commit at which {head_name} parted from it (a shallow one?), so "
            "later changes of the base count as reverted: fetch the history, such as with fetch-depth: 0"
        )
        return base, [doubt]
    return base if parted == commit else parted[:_SHORT], []


# Locations as the comment shows them: the file from the top of the repository, with a link to the line at its commit.


@frozen(eq=False, kw_only=True, slots=False)
class PlaceLinks:
    """Returns the locations of rules with their addresses."""

    sides: ReviewSides

    def __call__(self, place: FileOrigin) -> LinkedPlace:
        """Return a location as the comment shows it.

        Of the calls of modules that lead to it, the first one in a changed file comes first, or else the outermost.
        """
        steps = [self._step(each) for each in place.steps]
        first = next((each for each in steps if each.file in self.sides.changed), steps[0])
        return evolve(first, others=tuple(each for each in steps if each is not first))

    def _step(self, place: FileOrigin | ModuleCall) -> LinkedPlace:
        """Return a line; without an address if the site is unknown, or no commit has the line."""
        if place.file in (self.sides.base.output, self.sides.head.output):
            return LinkedPlace(file=place.file, line=place.line)
        commits = {self.sides.base.ref: self.sides.base_commit, self.sides.head.ref: self.sides.head_commit}
        for ref, commit in commits.items():
            if ref is not None and commit is not None and place.file.startswith(f"{ref}:"):
                return self._linked(place.file.removeprefix(f"{ref}:"), place.line, commit)
        try:
            path = self._path(place.file)
        except ConfigError:  # outside of the repository, such as the directory of a module
            return LinkedPlace(file=place.file, line=place.line)
        if self._lines is None:  # then what is committed makes no difference
            return LinkedPlace(file=path, line=place.line)
        return self._linked(path, place.line, None if path in self._uncommitted else self._checked_out)

    def _linked(self, path: str, line: int, commit: str | None) -> LinkedPlace:
        lines = self._lines
        url = None if lines is None or commit is None else lines.address(commit, path, line)
        return LinkedPlace(file=path, line=line, url=url)

    @cached_property
    def _lines(self) -> HostedLines | None:
        return HostedLines.of_repository()

    @cached_property
    def _path(self) -> Callable[[str], str]:
        return cache(partial(path_from_top, top=top_directory()))

    @cached_property
    def _checked_out(self) -> str | None:
        return commit_id("HEAD")

    @cached_property
    def _uncommitted(self) -> set[str]:
        """The files of the working tree that no commit has as they are."""
        return changed_files("HEAD", None)


# What a change does to the checks themselves: the settings, the tests of rules, and what is known of the cluster.


def own_checks(sides: ReviewSides, settings: RepositorySettings) -> Iterator[str]:
    """Yield the files among the checks that the change touches, from the top of the repository, and which it deletes.

    The settings of the base count as well: a change may delete them, or the tests that they name.
    """
    source = settings.source
    files = (settings.file, *settings.test.files, source.topics, source.groups, source.accesses)
    named = {path for each in files if each is not None for path in _inside(str(each))}
    of_settings = {*named, *_settings_files()} if settings.file is None else named
    patterns = {each for file in of_settings & sides.changed for each in _tests_of(sides, file)}
    if settings.document is not None and settings.file is not None:
        patterns |= {each for path in _inside(str(settings.file)) for each in _patterns(settings.document.values, path)}
    for file in sorted(sides.changed):
        if file in of_settings or any(fnmatchcase(file, pattern) for pattern in patterns):
            yield file if sides.head_has(file) else f"{file} (deleted)"


def _inside(file: str) -> Iterator[str]:
    try:
        yield path_from_top(file)
    except ConfigError:  # it is not in the repository
        return


def _settings_files() -> Iterator[str]:
    """Yield where an aclog.toml would be the settings of the working directory, from the top of the repository."""
    here, top = Path.cwd().resolve(), top_directory().resolve()
    for directory in (here, *here.parents):
        if directory.is_relative_to(top):
            yield (directory / SETTINGS_FILE).relative_to(top).as_posix()


def _tests_of(sides: ReviewSides, file: str) -> Iterator[str]:
    """Yield the names and globs of the tests that a file of settings names in the base, if it is one."""
    content = file_content(sides.base_commit, file) if os.path.splitext(file)[1] == ".toml" else None  # noqa: PTH122
    try:
        yield from _patterns(tomllib.loads((content or b"").decode()), file)
    except (ValueError, RecursionError):  # the old content is reported: it is a change of the settings
        return


def _patterns(values: dict[str, object], file: str) -> Iterator[str]:
    """Yield the paths of `test.files`, from the top of the repository."""
    table = values.get("test")
    texts = table.get("files") if isinstance(table, dict) else None
    for text in texts if isinstance(texts, list) else ():
        yield os.path.normpath(os.path.join(os.path.dirname(file), str(text)))  # noqa: PTH118, PTH120


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


# What was not read of both sides, and may hold rules.


def _newly_broken(base: Side, head: Side) -> Iterator[Unread]:
    """Yield the root modules of Terraform with an error that only the head has: their rules would seem revoked."""
    old = {base.without_ref(each.reason) for each in base.unread}
    for each in head.unread:
        if each.kind is UnreadKind.BROKEN and each.name and head.without_ref(each.reason) not in old:
            yield each


def unread_items(sides: ReviewSides) -> list[UnreadItem]:
    """Return the content of either side that was not read, what the change touches first; each object once.

    What only one side has also counts as changed: git lists no submodule of a work tree, nor a file that it ignores.
    """
    head, base = (
        {(side.placement.path_of(each.file), each.label, side.without_ref(each.reason)): each for each in side.unread}
        for side in (sides.head, sides.base)
    )
    items = []
    for key, each in {**base, **head}.items():
        is_changed = key[0] in sides.changed or key not in head or key not in base
        item = Item(text=each.text(), origin=each.origin)
        items.append(UnreadItem(label=each.label, item=item, is_changed=is_changed))
    return [*_dormant_items(sides), *sorted(items, key=lambda each: not each.is_changed)]


def _dormant_items(sides: ReviewSides) -> Iterator[UnreadItem]:
    """Yield statements that change, and that make no rules by the values that were read."""
    base, head = (
        {(side.placement.path_of(each.unread.file), each.address): each for each in side.dormant}
        for side in (sides.base, sides.head)
    )
    for key, each in {**base, **head}.items():
        if key not in base or key not in head or base[key].content != head[key].content:
            item = Item(text=each.unread.text(), origin=each.unread.origin)
            yield UnreadItem(label=each.unread.label, item=item, is_changed=True)


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
