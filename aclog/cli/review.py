"""`aclog review`: a pull request against a repository of ACLs."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from enum import StrEnum
from functools import cache
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Annotated

from attrs import evolve, field
from click.exceptions import Exit

from aclog.analysis.review.comment import comment_of_clusters
from aclog.analysis.review.review import DEFAULT_FAIL_ON, Kind, Review, document_of, text_lines
from aclog.analysis.rows.report import cluster_title
from aclog.cli.flags.repository import RepositoryFlags
from aclog.cli.flags.source import (
    FILES_PANEL,
    AcceptUnread,
    Exclude,
    VarFiles,
    Vars,
    Workspace,
    module_inputs,
    parse_modules,
)
from aclog.cli.options import Argument, Group, Option
from aclog.cli.signals import ending_interrupts
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.ops.lint import has_streams, merged_logs
from aclog.ops.review import Reviewed, review_change, review_objects, sarif_log
from aclog.ops.review_sides import NEVER, ReviewedChange
from aclog.sources.acl_lines import NameFile
from aclog.sources.forks import each_part
from aclog.sources.formats.format import AclsFormat
from aclog.sources.rendering import PATIENCE_S
from aclog.sources.repository import RepositorySettings
from aclog.terminal.columns import json_text
from aclog.terminal.output import emit, note, say

# The flags of `aclog review` besides the settings of the repository.


_MEANINGS = {
    Kind.BREAKS: " (recent accesses denied)",
    Kind.EVERYONE: " (access for clients that no rule names, or without a login)",
    Kind.CHECKS: " (aclog.toml or tests changed)",
    Kind.UNREAD: " (content not read)",
}
"""Of the checks whose names do not state them."""
_DEFAULTS = tuple(kind for kind in Kind if kind in DEFAULT_FAIL_ON)
_CLUSTER_PANEL = "Data from the cluster"


class ReviewFormat(StrEnum):
    """The format of a review."""

    MARKDOWN = "markdown"
    TEXT = "text"
    SARIF = "sarif"
    JSONL = "jsonl"
    JSON = "json"


@frozen(kw_only=True)
class ChangeFlags:
    """The two sides: where the rules are, and of which commits; and what fails."""

    path: Annotated[
        str | None,
        Argument(
            metavar="[PATH]",
            help="The file or directory of rules. [dim]Default: source.acls of aclog.toml[/]",
            show_default=False,
        ),
    ] = None
    base: Annotated[
        str | None,
        Option(
            "--base",
            metavar="REF",
            help="A branch, tag or commit. The review compares the head with the merge base of the head and REF. "
            "[dim]Default: the target branch of a CI job, else the default branch of origin, main or master[/]",
        ),
    ] = None
    fail_on: Annotated[
        str | None,
        Option(
            "--fail-on",
            metavar="KINDS",
            help="Exit with 1 if one of these happens (replaces the default): "
            f"{', '.join(f'{kind}{_MEANINGS.get(kind, str())}' for kind in Kind)}; or {NEVER}. "
            f"[dim]Default: {', '.join(_DEFAULTS)}[/]",
        ),
    ] = None
    head: Annotated[
        str | None,
        Option("--head", metavar="REF", help="The commit to review. [dim]Default: the working tree[/]"),
    ] = None
    acls_format: Annotated[
        AclsFormat | None,
        Option(
            "--acls-format",
            help="The format of the files.",
            show_default="auto: each file's own",
            rich_help_panel=FILES_PANEL,
        ),
    ] = None
    modules: Annotated[
        list[str],
        Option(
            "--module",
            metavar="SOURCE=DIR",
            help="The directory of the Terraform module with this source; can be repeated.",
            rich_help_panel=FILES_PANEL,
        ),
    ] = field(factory=list)
    var_files: VarFiles = field(factory=list)
    variables: Vars = field(factory=list)
    workspace: Workspace = None

    exclude: Exclude = field(factory=list)
    accept_unread: AcceptUnread = field(factory=list)

    render: Annotated[
        str | None,
        Option(
            "--render",
            metavar="COMMAND",
            help="Run COMMAND twice, in a copy of the base and in a copy of the head, and read the rules that it "
            "writes to stdout: [cyan]kustomize build ...[/], [cyan]helm template ...[/].",
            rich_help_panel=FILES_PANEL,
        ),
    ] = None
    render_configured: Annotated[
        bool,
        Option(
            "--render-configured",
            help="Run the command in aclog.toml (key render). It is read from the base, so a pull request cannot "
            "change it.",
            rich_help_panel=FILES_PANEL,
        ),
    ] = False
    render_timeout: Annotated[
        float,
        Option(
            "--render-timeout",
            metavar="SECONDS",
            min=1,
            max=3600,
            help="The longest time that each run of the command may take, in seconds.",
            rich_help_panel=FILES_PANEL,
        ),
    ] = PATIENCE_S

    @property
    def renders(self) -> bool:
        """Whether a command may run."""
        return self.render is not None or self.render_configured

    def change(self, cluster: str) -> ReviewedChange:
        """Return what is reviewed, of a cluster of aclog.toml or of an empty name.

        Raises:
            ConfigError: a module without its directory, or rendering flags that do not go together.

        """
        if self.render is not None and (self.render_configured or cluster):
            raise ConfigError(
                "--render and --render-configured: expected one of them"
                if self.render_configured
                else "--render: one command for several clusters: expected PATH, or --render-configured"
            )
        if self.render_configured and self.path is not None:
            raise ConfigError("--render-configured: the command is for source.acls of aclog.toml: expected no PATH")
        return ReviewedChange(
            path=self.path,
            base=self.base,
            head=self.head,
            form=self.acls_format,
            modules=parse_modules(self.modules),
            exclude=tuple(self.exclude),
            accept_unread=tuple(self.accept_unread),
            inputs=module_inputs(self.var_files, self.variables, self.workspace),
            render=self.render,
            render_configured=self.render_configured,
            render_timeout=self.render_timeout,
            cluster=cluster,
        )


@frozen(kw_only=True)
class ReviewFlags:
    """What is checked besides the rules, and how it is printed."""

    tests: Annotated[
        list[Path],
        Option(
            "--tests",
            metavar="FILE",
            help="A file with tests of rules (see [cyan]aclog test[/]) to run on the head; can be repeated.",
        ),
    ] = field(factory=list)
    topics: Annotated[
        str | None,
        Option("--topics", metavar="FILE", help="Existing topics, one per line.", rich_help_panel=_CLUSTER_PANEL),
    ] = None
    groups: Annotated[
        str | None,
        Option("--groups", metavar="FILE", help="Existing groups, one per line.", rich_help_panel=_CLUSTER_PANEL),
    ] = None
    accesses: Annotated[
        str | None,
        Option(
            "--accesses",
            metavar="PATH",
            help="An access log (formats: see [cyan]aclog accesses usage[/]), to report recent accesses that the head "
            "would decide differently.",
            rich_help_panel=_CLUSTER_PANEL,
        ),
    ] = None
    format: Annotated[
        ReviewFormat,
        Option(
            "--format",
            help="markdown for a comment, text for a terminal, sarif for code scanning, jsonl or json for programs.",
        ),
    ] = ReviewFormat.TEXT
    out: Annotated[
        list[str],
        Option(
            "--out", metavar="FORMAT=FILE", help="Write the review to a file as well, in this format; can be repeated."
        ),
    ] = field(factory=list)

    def over(self, settings: "RepositorySettings", fail_on: str | None) -> "RepositorySettings":
        """Return the settings with what the flags give instead."""
        named = {"topics": self.topics, "groups": self.groups, "accesses": self.accesses}
        paths = {key: value for key, value in named.items() if value is not None}
        source = evolve(settings.source, **paths) if paths else settings.source  # type: ignore[arg-type]
        test = evolve(settings.test, files=tuple(map(str, self.tests))) if self.tests else settings.test
        kinds = tuple(fail_on.split(",")) if fail_on is not None else settings.review.fail_on
        return evolve(settings, source=source, test=test, review=evolve(settings.review, fail_on=kinds))

    def files(self) -> dict[Path, ReviewFormat]:
        """Return the files of --out with their formats. Raises ConfigError: no such format, or no file."""
        return dict(self._file(text) for text in self.out)

    def _file(self, text: str) -> tuple[Path, ReviewFormat]:
        form, _, path = text.partition("=")
        if form not in set(ReviewFormat) or not path:
            raise ConfigError(f"--out {text[:80]!r}: expected FORMAT=FILE, and one of {', '.join(ReviewFormat)}")
        return Path(path), ReviewFormat(form)


# `aclog review`: a pull request against a repository of rules, in one comment.


app = Group()


@app.command()
def review(change: ChangeFlags, flags: ReviewFlags, repository: RepositoryFlags) -> None:
    """Report what a pull request grants and revokes, what it breaks, and whether a check fails.

    Compares the rules in the files of two commits, or of a commit and the working
    tree: access gained and lost, failed tests, new lint findings, and recent
    accesses that would be decided differently. Proves or refutes that access to
    the resources in review.untouched (aclog.toml) stays as it is, and that no
    access to those in review.no-gain is gained. Needs no access to a cluster. Exit
    code 0 if no condition of --fail-on is met, 1 if one is met, 2 for bad input.

    [bold]Examples[/]

      aclog review kafka --base origin/main
      aclog review kafka --base main --tests tests/rules.yaml --topics topics.txt
      aclog review kafka --base main --accesses accesses.parquet --format markdown
      aclog review --base origin/main --out markdown=review.md --out sarif=review.sarif
      aclog review kafka --base HEAD~1 --head HEAD --fail-on gained,tests
      aclog review overlays/prod --render 'kustomize build overlays/prod'
    """
    with ending_interrupts() if change.renders else nullcontext():
        raise Exit(print_review(change, flags, repository))


# Prints a review.


PASSES, FAILS = 0, 1
"""Exit codes."""


def print_review(change: ChangeFlags, flags: ReviewFlags, repository: RepositoryFlags) -> int:
    """Review a change, print the review and write the files of --out; return the exit code.

    Raises:
        ConfigError: flags or settings that are not valid, a commit that this clone lacks, or malformed files.
        MetadataError, OSError: something cannot be read.

    """
    files, settings = flags.files(), flags.over(repository.load(), change.fail_on)
    clusters = {"": settings} if change.path is not None else settings.by_cluster()
    reviewed: dict[str, Reviewed] = {}
    name_file = cache(NameFile)  # once for all clusters: a stream has no second time
    # The programs of --render end with this process, and the threads that read Parquet are in it.
    is_shared = change.renders or any(each.source.accesses or has_streams(each.source) for each in clusters.values())

    def review_one(name: str) -> dict[str, Reviewed]:
        """Review a cluster."""
        return review_change(
            change.change(name),
            clusters[name],
            settings_win=repository.overrides(),
            name_file=name_file,
            processes=processes,
        )

    processes = 1 if is_shared else None
    for name, parts in each_part(list(clusters), review_one, processes=processes):
        reviewed |= {inner or name: part for inner, part in parts.items()}
    if off := _switched_off(change.fail_on, reviewed):
        note(f"--fail-on replaces the default: it leaves out {', '.join(off)}")
    for path, form in files.items():
        path.write_text("".join(f"{line}\n" for line in _lines(reviewed, form)), encoding="utf-8")
    for line in _lines(reviewed, flags.format):
        (emit if flags.format not in (ReviewFormat.TEXT, ReviewFormat.MARKDOWN) else say)(line)
    return FAILS if any(each.review.fails for each in reviewed.values()) else PASSES


def _lines(reviewed: Mapping[str, Reviewed], form: ReviewFormat) -> Iterable[str]:
    """Return the lines of the reviews of all clusters, by name; one without a name is the only one."""
    if form is ReviewFormat.SARIF:
        logs = {name: sarif_log(each.review, each.new, version=version("aclog")) for name, each in reviewed.items()}
        return [json_text(merged_logs(logs))]
    if form in (ReviewFormat.JSONL, ReviewFormat.JSON):
        objects = review_objects(reviewed)
        return map(json_text, objects) if form is ReviewFormat.JSONL else [json_text(list(objects))]
    if form is ReviewFormat.TEXT:
        return chain.from_iterable(
            _titled(name, chain(text_lines(document_of(each.review)), _way_to_fail(each.review)))
            for name, each in reviewed.items()
        )
    return comment_of_clusters({name: each.review for name, each in reviewed.items()})


def _switched_off(fail_on: str | None, reviewed: Mapping[str, Reviewed]) -> list[Kind]:
    """Return the kinds of the default that --fail-on leaves out; no kind if it is not given, or is `never`."""
    if fail_on in (None, NEVER):
        return []
    return [kind for kind in _DEFAULTS if not all(kind in each.review.fail_on for each in reviewed.values())]


def _way_to_fail(review: Review) -> Iterator[str]:
    """Yield the flag by which a review that passes fails on the access that is gained."""
    if Kind.GAINED in review.kinds and not review.fails and Kind.GAINED not in review.fail_on:
        kinds = [kind for kind in Kind if kind in review.fail_on or kind is Kind.GAINED]
        yield f"to fail on gained access as well: --fail-on {','.join(kinds)}"


def _titled(name: str, lines: Iterable[str]) -> Iterator[str]:
    return chain(cluster_title(name, is_markdown=False), lines)
