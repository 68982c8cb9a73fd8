"""Lint of a source of rules: what is known besides the rules, what suppressions leave, and where the rules stand."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

from attrs import evolve

from aclog.analysis.comparison import opened
from aclog.analysis.lint.finding import SEPARATORS, DeclaredTopics, Facts, Finding, LintContext
from aclog.analysis.lint.related import DeadDeny
from aclog.analysis.lint.single import GROWN_REACH, TopicTimes, grown_reach, judged_rules
from aclog.analysis.lint_report import (
    ALL,
    BY_ID,
    LintReport,
    Progress,
    Statements,
    Suppressions,
    json_lines,
    lint,
    no_progress,
    parse_lints,
    physical_location,
    sarif_log,
)
from aclog.analysis.policy import Policy, merged, only_on
from aclog.analysis.regions import ExistingNames, JsonObject
from aclog.analysis.rows.report import rows_of_clusters
from aclog.authorizer.acl import ChangePlace, FileOrigin, Origins, StandardAcl
from aclog.authorizer.index.layout import Pause, no_pause
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, Generation, named_generation
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.authorizer.symbols import SYMBOLS
from aclog.metalog.errors import ConfigError
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.values import frozen
from aclog.ops.policies import existing_topics, policies_of, read_premises
from aclog.snapshots.image import Image
from aclog.sources.accesses import SeenAccesses, is_stream, read_seen_accesses
from aclog.sources.acl_lines import NameFile
from aclog.sources.choice import UNREAD, AclsSource, ChosenSource
from aclog.sources.formats.rule import StatedRules, repository_root
from aclog.sources.formats.unread import Unread
from aclog.sources.logs import LogPast, past_of
from aclog.sources.repository import (
    AuthorizerSettings,
    LintSettings,
    RepositorySettings,
    SourceSettings,
    inline_suppressions,
    read_suppressions,
)
from aclog.terminal.notices import progress
from aclog.terminal.output import note, warn

# Names of files in a repository: those by which settings may mean them, and those that other tools know.


@frozen
class FileNames:
    """The names by which a glob may mean a file."""

    _directory: Path | None
    """Where the file of suppressions is, if that is known."""

    def __call__(self, file: str) -> Iterable[str]:
        """Return the file as it is shown, without a commit and shortened, and as seen from that directory."""
        path = file if os.path.lexists(file) else file.partition(":")[2] or file  # GITREF:path
        names = {file, os.path.normpath(path)}
        if self._directory is not None:
            names.add(os.path.relpath(path, self._directory))
        return names


def repository_path(file: str) -> str:
    """Return a file's path from the root of the repository that the working directory is in; else as it is shown."""
    root = repository_root(Path.cwd())
    if root is None:
        return file
    if not os.path.lexists(file) and ":" in file:
        return file.partition(":")[2]  # GITREF:path, which begins at the root
    path = Path(os.path.normpath(Path.cwd() / file))
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else file


# What is known besides the rules.


_NEAR_MISS = "06"
"""The lint of principals that were never seen."""

Find: TypeAlias = Callable[[Policy, LintContext, frozenset[str]], tuple[list[Finding], list[str]]]
"""Returns the findings, and what was left undecided."""


@frozen(kw_only=True)
class LintInputs:
    """What lint knows besides the rules."""

    context: LintContext
    select: frozenset[str]
    suppressions: Suppressions
    allow_everyone: bool

    def judged(self, *, history: bool) -> frozenset[str]:
        """Return the selected lints that have what they need."""
        facts = Facts(context=self.context, allow_everyone=self.allow_everyone, history=history)
        return frozenset(each for each in self.select if BY_ID[each].is_ready(facts))


def with_declared(inputs: LintInputs, choice: ChosenSource) -> LintInputs:
    """Return the inputs with the topics that the files of a source declare, which has been read."""
    source = choice.source
    if not isinstance(source, AclsSource) or not source.topics:
        return inputs
    declared = DeclaredTopics.of({name for name, _ in source.topics}, is_whole=source.is_whole)
    return evolve(inputs, context=evolve(inputs.context, declared=declared))


def has_streams(source: SourceSettings) -> bool:
    """Return whether topics or groups are in a stream, which only one process can read."""
    return any(path is not None and is_stream(path) for path in (source.topics, source.groups))


def lint_inputs(
    settings: RepositorySettings,
    topics: ExistingNames | None,
    *,
    ignore: Path | None = None,
    accesses: Sequence[str] = (),
    read: Callable[..., SeenAccesses] = read_seen_accesses,
    name_file: Callable[[str, str], NameFile] = NameFile,
    report: Callable[[str], None] = warn,
) -> LintInputs:
    """Return the inputs from settings, and the existing topics.

    `ignore` is a file of more suppressions; `accesses` are paths of access logs, instead of that of the settings;
    `read` reads them, and `name_file` the groups; warnings go to `report`.

    Raises:
        ConfigError: an invalid version, principal or lint, or a malformed file; OSError: a file cannot be read.

    """
    options, source = settings.lint, settings.source
    suppressions = (*options.ignore, *(read_suppressions(ignore) if ignore is not None else ()))
    paths = accesses or ([] if source.accesses is None else [source.accesses])
    logged, name = read(*paths), ", ".join(paths)
    if logged.malformed:
        report(f"{name}: {logged.malformed:,} lines have no principal and were skipped")
    select = _select(options.select)
    if logged.unread and _NEAR_MISS in select:
        report(
            f"{name}: {logged.unread:,} of these lines are unread accesses, which may be of any principal"
            f": not judged: {_NEAR_MISS} {BY_ID[_NEAR_MISS].name}"
        )
        select -= {_NEAR_MISS}
    return LintInputs(
        context=LintContext(
            topics=topics,
            groups=None if source.groups is None else ExistingNames.of(name_file(source.groups, "a group").names()),
            seen_principals=logged.principals,
            accesses=logged.requests,
            broker_version=None if _is_redpanda(options) else _version(options.broker_version),
            broker_principals=_principals(options.broker_principals),
            separators=SEPARATORS if options.separators is None else options.separators,
            principal_types=_REDPANDA_TYPES
            if _is_redpanda(options) and options.principal_types is None
            else _types(options.principal_types),
            states_principal_types=options.principal_types is not None,
        ),
        select=select,
        suppressions=Suppressions(
            listed=suppressions,
            today=datetime.fromtimestamp(current_time_ms() / 1000, UTC).date(),
            names_of=FileNames(None if settings.file is None else settings.file.parent),
        ),
        allow_everyone=bool(settings.authorizer.allow_everyone),
    )


# Lints a source.


@frozen(eq=False, kw_only=True)
class Linted:
    """What lint found in a source."""

    report: LintReport
    policies: tuple[Policy, ...]
    """Those of all generations of Kafka that may decide, the oldest first."""
    premises: Premises
    """What is unknown of that which decides."""
    place: ChangePlace
    """Where the rules are changed."""
    not_judged: str | None
    """Which selected lints lack what they need."""
    unread: tuple[Unread, ...] = ()
    """Content of the source that was not read and may hold rules."""

    def objects(self) -> Iterator[JsonObject]:
        """Yield an object for all content that was not read, and for each finding: the JSON lines of `aclog lint`."""
        yield from (each.to_dict() for each in self.unread)
        yield from json_lines(self.report, self.place)

    def sarif(self, version: str) -> JsonObject:
        """Return the findings, and the content that was not read, as a log of SARIF."""
        return with_unread(sarif_log(self.report, self.place, version=version, uri_of=repository_path), self.unread)


def lint_objects(linted: Mapping[str, Linted]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of clusters by their names, each with the key `cluster` if it has a name.

    What was not read of any cluster is first: without it, a cluster looks clean whose rules are unknown.
    """
    yield from rows_of_clusters({name: map(Unread.to_dict, each.unread) for name, each in linted.items()})
    yield from rows_of_clusters({name: json_lines(each.report, each.place) for name, each in linted.items()})


def with_unread(log: JsonObject, unread: Iterable[Unread]) -> JsonObject:
    """Return a log of SARIF with one run that begins with a result for content that was not read, if there is any.

    What both sides of a comparison have is one result.
    """
    results = {
        (repository_path(each.file), each.line, each.label): unread_result(each.text(), each.origin) for each in unread
    }
    if not results:
        return log
    changed: dict[str, Any] = dict(log)
    (run,) = changed["runs"]
    driver = {**run["tool"]["driver"], "rules": [*run["tool"]["driver"]["rules"], UNREAD_RULE]}
    return {**changed, "runs": [{**run, "tool": {"driver": driver}, "results": [*results.values(), *run["results"]]}]}


def merged_logs(logs: Mapping[str, JsonObject]) -> JsonObject:
    """Return one log of SARIF for those of several clusters, by name: a run for each; one without a name as it is."""
    runs = []
    for name, log in logs.items():
        each: dict[str, Any] = dict(log)
        details = {"automationDetails": {"id": f"aclog/{name}"}} if name else {}
        runs += [{**run, **details} for run in each["runs"]]
    return {**next(iter(logs.values())), "runs": runs}


UNREAD_RULE: JsonObject = {
    "id": "content-not-read",
    "shortDescription": {"text": "Content that may hold rules was not read"},
}
"""The rule of SARIF for unread content."""


def unread_result(text: str, origin: FileOrigin, level: str = "note") -> JsonObject:
    """Return a result of SARIF about content that was not read."""
    return {
        "ruleId": UNREAD_RULE["id"],
        "level": level,
        "message": {"text": text},
        "locations": [{"physicalLocation": physical_location(repository_path(origin.file), origin.line)}],
    }


def lint_source(
    choice: ChosenSource,
    settings: RepositorySettings,
    *,
    topics: NameFile | None = None,
    ignore: Path | None = None,
    accesses: Sequence[str] = (),
    read: Callable[..., SeenAccesses] = read_seen_accesses,
    name_file: Callable[[str, str], NameFile] = NameFile,
) -> Linted:
    """Lint the rules of a source by the settings of a repository; what is not known is noted.

    `topics`: those that exist. `ignore`: a file of more suppressions. `accesses`: access logs, instead of that of the
    settings; `read` reads them, and `name_file` the groups.

    Raises:
        ConfigError: settings that are not valid, or malformed input.
        MetadataError, OSError: the source is damaged or cannot be read.

    """
    image = choice.image()
    existing = existing_topics(topics, [image], [choice])
    inputs = lint_inputs(settings, existing, ignore=ignore, accesses=accesses, read=read, name_file=name_file)
    inputs = with_declared(inputs, choice)
    stated = _decided_by(settings)
    policies = policies_of(image, stated)
    policy = next(iter(policies.values()))
    premises = read_premises(choice, stated.configs())
    # Findings are about the rules that were read: what else there may be is reported beside them.
    report = run_lint(choice, image, policy, inputs, policies=policies, premises=premises.without({UNREAD}))
    return Linted(
        report=evolve(report, unread=len(choice.unread)),
        policies=tuple(policies.values()),
        premises=premises,
        place=choice.source.change_place,
        not_judged=not_judged(inputs, history=choice.source.log is not None),
        unread=choice.unread,
    )


def _decided_by(settings: RepositorySettings) -> AuthorizerSettings:
    """Return what is stated of the authorizer; `broker-version` names the Kafka that decides, if nothing else does."""
    stated, version = settings.authorizer, settings.lint.broker_version
    if stated.generation is not None or version is None or _is_redpanda(settings.lint):
        return stated
    generation = named_generation(
        version.strip().removeprefix("v"), None, version_name="--kafka-version", ranges_text=""
    )
    return stated if generation is None else stated.of_generation(generation)


def run_lint(
    choice: ChosenSource,
    image: Image,
    policy: Policy,
    inputs: LintInputs,
    *,
    policies: Mapping[Generation, Policy] | None = None,
    premises: Premises = ALL_KNOWN,
) -> LintReport:
    """Return the report on a state of a source; `policies`: those of each generation of Kafka that may decide.

    `premises`: what is unknown of the settings: a rule is redundant only if it is so in any case.

    Raises:
        ConfigError: a comment that suppresses findings without a lint or a reason.
        MetadataError, OSError: a log is damaged or cannot be read.

    """
    with progress("looking for what is odd", "lints") as advance:
        find = sure(partial(_find_all, advance=advance), premises) if premises else None
        if policies and len(policies) > 1:
            find = for_each(policies, find or _find_all)
        report = lint_report(choice, image, policy, inputs, tell=note, advance=advance, find=find)
        return evolve(report, unknown=premises.names)


def for_each(policies: Mapping[Generation, Policy], find: Find) -> Find:
    """Return what finds the same by each generation of Kafka that may decide."""
    return partial(_find_in_each, policies, find) if len(policies) > 1 else find


def sure(find: Find, premises: Premises) -> Find:
    """Return what finds the same, but reports a rule as redundant only if it is so regardless of unknown settings."""
    if ALLOW_EVERYONE_CONFIG in premises.names:
        find = partial(_find_sure, find)
    if SYMBOLS in premises.names:
        find = partial(_find_dead, find)
    unknown = premises.turning(allowed=True)
    return partial(_find_useful, unknown, find) if unknown else find


def _find_all(
    policy: Policy, context: LintContext, select: frozenset[str], *, advance: Progress = no_progress
) -> tuple[list[Finding], list[str]]:
    undecided: list[str] = []
    return list(lint(policy, context, select=select, note=undecided.append, progress=advance)), undecided


def _find_useful(
    unknown: Premises, find: Find, policy: Policy, context: LintContext, select: frozenset[str]
) -> tuple[list[Finding], list[str]]:
    """Return the findings that report no rule as redundant (Find): unknown settings may need any."""
    findings, undecided = find(policy, context, select)
    names = " and ".join(unknown.names)
    left_out = f"whether rules are redundant is not judged: {names} {'are' if unknown.unknown[1:] else 'is'} not known"
    return [each for each in findings if not each.neutral], [*undecided, left_out]


def _find_dead(
    find: Find, policy: Policy, context: LintContext, select: frozenset[str]
) -> tuple[list[Finding], list[str]]:
    """Return the findings except those of a DENY that blocks nothing (Find): an ALLOW with a symbol may need it."""
    return find(policy, context, select - {DeadDeny.id})


def _find_in_each(
    policies: Mapping[Generation, Policy], find: Find, _policy: Policy, context: LintContext, select: frozenset[str]
) -> tuple[list[Finding], list[str]]:
    """Lint by the rules of each generation.

    What only one of them finds has no fix: to the other the rule may be of use.
    """
    undecided: list[str] = []
    answers: dict[Generation, list[Finding]] = {}
    for generation, policy in policies.items():
        answers[generation], notes = find(policy, context, select)
        undecided += notes
    findings = [
        finding
        if generation is None
        else evolve(
            finding,
            lost=f"{finding.lost}{only_on(generation)}",
            fix=(),
            advice=f"State the Kafka version (--kafka-version): {_other(generation, policies)} decides otherwise.",
            neutral=False,
        )
        for finding, generation in merged(answers, lambda each: (each.lint, each.rules, each.lost, each.fix))
    ]
    return sorted(findings, key=lambda each: each.lint), list(dict.fromkeys(undecided))


def _other(generation: Generation, policies: Mapping[Generation, Policy]) -> str:
    return " and ".join(str(each) for each in policies if each is not generation)


def _find_sure(
    find: Find, policy: Policy, context: LintContext, select: frozenset[str]
) -> tuple[list[Finding], list[str]]:
    """Return the findings that hold whether or not everything is open that no ACL is for (Find)."""
    findings, undecided = find(policy, context, select)
    neutral = frozenset(each.lint for each in findings if each.neutral)
    others, more = find(opened(policy), context, neutral) if neutral else ([], [])
    needless = {each.rules for each in others if each.neutral}
    certain = [each for each in findings if not each.neutral or each.rules in needless]
    return certain, list(dict.fromkeys((*undecided, *more)))


def lint_report(
    choice: ChosenSource,
    image: Image,
    policy: Policy,
    inputs: LintInputs,
    *,
    tell: Callable[[str], None],
    advance: Progress = no_progress,
    find: "Find | None" = None,
    pause: Pause = no_pause,
) -> LintReport:
    """Return the report on a state of a source; the first callback receives what is undecided. Raises as run_lint.

    `find` lints in another way, such as in a process of its own. `pause` is called again and again while the log is
    read.
    """
    if find is None:
        findings = list(lint(policy, inputs.context, select=inputs.select, note=tell, progress=advance))
    else:
        findings, undecided = find(policy, inputs.context, inputs.select)
        for text in undecided:
            tell(text)
    judged_by_id = _judged(policy, choice, inputs.select)
    past = _past(choice, image, findings, judged_by_id, pause)
    if past is not None:
        added = past.added(judged_by_id.values())
        findings += grown_reach(added, TopicTimes(past.topics.spans), separators=inputs.context.separators)
    origins: Origins = choice.origins if past is None else past
    judged = inputs.judged(history=past is not None)
    suppressions = inputs.suppressions
    if isinstance(choice.source, AclsSource):
        suppressions = evolve(suppressions, listed=(*suppressions.listed, *inline_suppressions(choice.source)))
    statements = None
    if isinstance(origins, StatedRules) and findings:
        statements = Statements.of(findings, (entry.acl for entry in image.acls), origins)
    return LintReport.of(findings, origins, suppressions, judged=judged, rules=len(image.acls), statements=statements)


_NEEDED = {
    "--accesses": "an access log, such as kafka-authorizer.log (--accesses)",
    "--topics": "the existing topics (--topics)",
    "--topics or --groups": "the existing topics or groups (--topics or --groups)",
}
"""What the flags in `needs` of a lint provide."""


def not_judged(inputs: LintInputs, *, history: bool) -> str | None:
    """Return which selected lints lack what they need, and what that is; None if none does."""
    lacking: dict[str, list[str]] = {}
    for number in sorted(inputs.select - inputs.judged(history=history)):
        lacking.setdefault(BY_ID[number].needs, []).append(f"{number} {BY_ID[number].name}")
    if not lacking:
        return None
    parts = (
        f"{'checks' if names[1:] else 'check'} {' and '.join(names)}, which {'need' if names[1:] else 'needs'} "
        f"{_NEEDED.get(what, what)}"
        for what, names in lacking.items()
    )
    return f"skipped: {'; '.join(parts)}"


def _past(
    choice: ChosenSource,
    image: Image,
    findings: Sequence[Finding],
    judged: Mapping[UUID, StandardAcl],
    pause: Pause,
) -> LogPast | None:
    """Return what the log of a source has on the rules that are found or judged; None if it has no log."""
    if choice.source.log is None:
        return None
    ids = dict(judged)
    for acl in dict.fromkeys(acl for each in findings for acl in each.rules):
        pause()
        if (id_ := image.acls.find(acl)) is not None:
            ids[id_] = acl
    return past_of(choice.source, image.end_offset, ids, pause)


def _judged(policy: Policy, choice: ChosenSource, select: frozenset[str]) -> dict[UUID, StandardAcl]:
    """Return the rules whose reach may have grown, by id."""
    if choice.source.log is None or GROWN_REACH not in select:
        return {}
    return {rule.id: rule.acl for rule in judged_rules(policy) if rule.id is not None}


def _select(texts: Sequence[str] | None) -> frozenset[str]:
    if texts is None:
        return ALL
    if not texts:
        raise ConfigError("--select: no lint is selected: expected ids or names, such as 08,dead-deny")
    return parse_lints(texts)


def _types(texts: Sequence[str] | None) -> frozenset[str]:
    if texts is None:
        return frozenset({"User"})
    if not texts or not all(texts):
        raise ConfigError("--principal-types: expected types with commas between them, such as User,Group")
    return frozenset(texts)


_REDPANDA_TYPES = frozenset({"User", "RedpandaRole", "Group"})
"""The types of principals that Redpanda has: a role, and a group of an identity provider, besides users."""


def _is_redpanda(settings: LintSettings) -> bool:
    """Return whether the brokers are Redpanda's, of any version."""
    return (settings.broker_version or "").strip().lower() == "redpanda"


def _version(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    parts = text.strip().removeprefix("v").split(".")
    if not 1 < len(parts) < 5 or not all(part.isascii() and part.isdigit() and len(part) < 5 for part in parts):
        raise ConfigError(f"--broker-version {text[:40]!r}: expected a release of Kafka, such as 3.9.1, or redpanda")
    return tuple(map(int, parts))


def _principals(texts: Iterable[str] | None) -> frozenset[str]:
    principals = frozenset(part for text in texts or () for each in text.split(";") if (part := each.strip()))
    for each in principals:
        if ":" not in each:
            raise ConfigError(f"--broker-principals: {each[:80]!r} has no type: expected such as User:broker-1")
    return principals
