"""Reviews a change, and prints the review."""

import os
from collections.abc import Iterable, Iterator
from importlib.metadata import version

from attrs import evolve, frozen

from aclog.analysis.by_generation import merged
from aclog.analysis.comparison import Comparison, rows_of_each
from aclog.analysis.lint_report.lint_report import LintReport
from aclog.analysis.regions.existing_names import ExistingNames
from aclog.analysis.review.document_text import markdown_lines, text_lines
from aclog.analysis.review.flipped import Flipped, flipped
from aclog.analysis.review.move import moves
from aclog.analysis.review.outcomes import TestsOutcome
from aclog.analysis.review.rename import renames
from aclog.analysis.review.replacement import Addresses, replacements
from aclog.analysis.review.review import Review
from aclog.analysis.review.review_document import document_of
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.origin import FileOrigin, TwoOrigins
from aclog.cli.differing import Compared
from aclog.cli.flags.repository import RepositoryFlags
from aclog.cli.linting import LintInputs, lint_inputs, run_lint
from aclog.cli.review.flags import ChangeFlags, ReviewFlags, ReviewFormat, fail_on_kinds
from aclog.cli.review.lint_part import lint_outcome, new_findings
from aclog.cli.review.own_checks import own_checks
from aclog.cli.review.proofs import prove, untouched
from aclog.cli.review.review_json import json_lines
from aclog.cli.review.review_sarif import sarif_log
from aclog.cli.review.sides import ReviewSides, Side, SideReader
from aclog.cli.review.test_part import HeadTests
from aclog.cli.review.unread import unread
from aclog.metalog.errors import ConfigError
from aclog.sources.accesses import Accesses, need_file, read_accesses
from aclog.sources.name_file import NameFile
from aclog.sources.repository.settings import RepositorySettings
from aclog.terminal.json_text import json_text
from aclog.terminal.notices import warn
from aclog.terminal.output import emit, say

PASSES, FAILS = 0, 1
"""Exit codes."""


@frozen(eq=False, kw_only=True)
class Reviewed:
    """A review, and what its programs' formats need besides."""

    review: Review
    new: LintReport
    """Of the findings that the change brings."""


def print_review(change: ChangeFlags, flags: ReviewFlags, repository: RepositoryFlags) -> int:
    """Review a change, print the review and write the files of --out; return the exit code.

    Raises:
        ConfigError: flags or settings that are not valid, a commit that this clone lacks, or malformed files.
        MetadataError, OSError: something cannot be read.

    """
    files = flags.files()
    reviewed = review_change(change, flags.over(repository.load()), repository)
    for path, form in files.items():
        path.write_text("".join(f"{line}\n" for line in _lines(reviewed, form)), encoding="utf-8")
    for line in _lines(reviewed, flags.format):
        (emit if flags.format not in (ReviewFormat.TEXT, ReviewFormat.MARKDOWN) else say)(line)
    return FAILS if reviewed.review.fails else PASSES


def review_change(change: ChangeFlags, settings: RepositorySettings, repository: RepositoryFlags) -> Reviewed:
    """Review a change of rules; `settings` are those of aclog.toml and of all flags. Raises as print_review."""
    fail_on, resources = fail_on_kinds(settings), untouched(settings)
    path = change.path or settings.source.acls
    if path is None:
        raise ConfigError("no rules are named: expected PATH, or source.acls in aclog.toml")
    if settings.source.accesses is not None:
        need_file(settings.source.accesses, "a review reads the accesses twice, which a pipe cannot be")
    names = None if settings.source.topics is None else NameFile(settings.source.topics)
    sides = SideReader(change=change, path=path, topics=names, settings=settings).read()
    topics = None if names is None else ExistingNames.of(names.names())
    inputs = lint_inputs(settings, topics)
    before, after = _lint(sides, sides.base, inputs), _lint(sides, sides.head, inputs)
    origins = TwoOrigins(old=sides.base.placement.origins, new=sides.head.placement.origins)
    compared = _compared(sides, topics, origins)
    comparison = next(iter(compared.values()))
    tests = HeadTests(settings=settings, repository=repository, path=path, sides=sides).run()
    accesses = _accesses(settings)
    review = Review(
        comparisons=compared,
        rows=list(rows_of_each(compared)),
        renames=renames(comparison.changes, comparison.old.acls, comparison.new.acls),
        moves=moves((rule.acl for rule in sides.head.image.acls), sides.base.placement, sides.head.placement),
        replacements=replacements(_addresses(sides.base), _addresses(sides.head)),
        proofs=prove(resources, compared),
        tests=tests,
        lint=lint_outcome(before, after),
        flipped=[] if accesses is None else _flipped(compared, accesses),
        own_checks=tuple(own_checks(sides, settings)),
        doubts=(*sides.doubts, *(() if comparison.changes else unread(sides)), *_doubts_of(accesses, compared)),
        foot=(*_foot(sides, settings), *_tests_foot(tests)),
        fail_on=fail_on,
    )
    return Reviewed(review=review, new=evolve(after, findings=new_findings(before, after)))


def _compared(sides: ReviewSides, topics: ExistingNames | None, origins: TwoOrigins) -> Compared:
    """Compare both sides, as each generation of Kafka decides that may."""
    old, new = sides.policies(sides.base), sides.policies(sides.head)
    return {
        generation if len(new) > 1 else None: Comparison.of(old[generation], policy, topics=topics, origins=origins)
        for generation, policy in new.items()
    }


def _lint(sides: ReviewSides, side: Side, inputs: LintInputs) -> LintReport:
    if side.chosen is None:
        return LintReport(findings=(), rules=0)
    policies = sides.policies(side)
    return run_lint(side.chosen, side.image, next(iter(policies.values())), inputs, policies=policies)


def _flipped(compared: Compared, accesses: Accesses) -> list[Flipped]:
    found = {generation: flipped(accesses.counts, each.old, each.new) for generation, each in compared.items()}
    return [evolve(each, only=only) for each, only in merged(found)]


def _accesses(settings: RepositorySettings) -> Accesses | None:
    path = settings.source.accesses
    if path is None:
        return None
    accesses = read_accesses(path)
    if accesses.malformed:
        warn(f"{path}: {accesses.malformed:,} lines are not accesses and were skipped")
    return accesses


def _doubts_of(accesses: Accesses | None, compared: Compared) -> Iterator[str]:
    """Yield what is not known of the accesses that the change may break."""
    if accesses is not None and accesses.unread and any(each.differences for each in compared.values()):
        yield (
            f"{accesses.unread:,} of the recent accesses could not be read or decided: the change may break them, and "
            "they are not among those below"
        )


def _addresses(side: Side) -> Addresses:
    """Return the addresses that Terraform gives to the rules."""
    found: dict[tuple[str, StandardAcl], set[str]] = {}
    origins, path_of = side.placement.origins, side.placement.path_of
    for rule in (entry.acl for entry in side.image.acls):
        for origin in origins.of(rule):
            if isinstance(origin, FileOrigin) and origin.address is not None:
                key = os.path.dirname(path_of(origin.file)), rule  # noqa: PTH120
                found.setdefault(key, set()).add(origin.address)
    return {key: frozenset(addresses) for key, addresses in found.items()}


def _foot(sides: ReviewSides, settings: RepositorySettings) -> Iterator[str]:
    before, after = len(sides.base.image.acls), len(sides.head.image.acls)
    yield f"{sides.head.name}: {after:,} rules; {sides.base.name}: {before:,} rules"
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


def _lines(reviewed: Reviewed, form: ReviewFormat) -> Iterable[str]:
    if form is ReviewFormat.SARIF:
        log = sarif_log(reviewed.review, reviewed.new, version=version("aclog"))
        return [json_text(log)]
    if form is ReviewFormat.JSONL:
        return map(json_text, json_lines(reviewed.review, reviewed.new))
    if form is ReviewFormat.JSON:
        return [json_text(list(json_lines(reviewed.review, reviewed.new)))]
    document = document_of(reviewed.review)
    return markdown_lines(document) if form is ReviewFormat.MARKDOWN else text_lines(document)
