"""The flags of `aclog review` besides the settings of the repository."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from attrs import evolve, field, frozen

from aclog.analysis.review.verdict import DEFAULT_FAIL_ON, Kind
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.format import AclsFormat

if TYPE_CHECKING:
    from aclog.sources.repository.settings import RepositorySettings

NEVER = "never"
_KNOWN = "What is known of the cluster"


class ReviewFormat(StrEnum):
    """The format of a review."""

    MARKDOWN = "markdown"
    TEXT = "text"
    SARIF = "sarif"
    JSONL = "jsonl"
    JSON = "json"


@frozen(kw_only=True)
class ChangeFlags:
    """The two sides: where the rules are, and of which commits."""

    path: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH]",
            help="The file or directory of rules. [dim]Default: source.acls of aclog.toml[/]",
            show_default=False,
        ),
    ] = None
    base: Annotated[
        str,
        typer.Option(
            "--base",
            metavar="REF",
            help="The commit to compare with: where the head parted from this branch, tag or commit.",
        ),
    ]
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="REF", help="The commit to review. [dim]Default: the working tree[/]"),
    ] = None
    acls_format: Annotated[
        AclsFormat | None,
        typer.Option("--acls-format", help="The format of the files.", show_default="auto: each file's own"),
    ] = None
    modules: Annotated[
        list[str],
        typer.Option(
            "--module",
            metavar="SOURCE=DIR",
            help="Where the Terraform module of this source is; can be repeated.",
        ),
    ] = field(factory=list)


@frozen(kw_only=True)
class ReviewFlags:
    """What is checked besides the rules, what fails, and how it is printed."""

    tests: Annotated[
        list[Path],
        typer.Option("--tests", metavar="FILE", help="Tests of rules to run on the head; can be repeated."),
    ] = field(factory=list)
    topics: Annotated[
        str | None,
        typer.Option("--topics", metavar="FILE", help="Topics that exist, one a line.", rich_help_panel=_KNOWN),
    ] = None
    groups: Annotated[
        str | None,
        typer.Option("--groups", metavar="FILE", help="Groups that exist, one a line.", rich_help_panel=_KNOWN),
    ] = None
    accesses: Annotated[
        str | None,
        typer.Option(
            "--accesses",
            metavar="PATH",
            help="Recent accesses, in any form that [cyan]aclog usage[/] reads: which are decided differently?",
            rich_help_panel=_KNOWN,
        ),
    ] = None
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            metavar="KINDS",
            help=f"What makes the exit code 1, with commas between: {', '.join(Kind)}; or {NEVER}.",
            show_default=",".join(kind for kind in Kind if kind in DEFAULT_FAIL_ON),
        ),
    ] = None
    format: Annotated[
        ReviewFormat,
        typer.Option("--format", help="For a comment, for a terminal, for code scanning, for programs."),
    ] = ReviewFormat.TEXT
    out: Annotated[
        list[str],
        typer.Option(
            "--out", metavar="FORMAT=FILE", help="Write the review to a file as well, in this format; can be repeated."
        ),
    ] = field(factory=list)

    def over(self, settings: "RepositorySettings") -> "RepositorySettings":
        """Return the settings with what the flags give instead."""
        named = {"topics": self.topics, "groups": self.groups, "accesses": self.accesses}
        given = {key: value for key, value in named.items() if value is not None}
        source = evolve(settings.source, **given) if given else settings.source  # type: ignore[arg-type]
        test = evolve(settings.test, files=tuple(map(str, self.tests))) if self.tests else settings.test
        fail_on = tuple(self.fail_on.split(",")) if self.fail_on is not None else settings.review.fail_on
        return evolve(settings, source=source, test=test, review=evolve(settings.review, fail_on=fail_on))

    def files(self) -> dict[Path, ReviewFormat]:
        """Return the files of --out with their formats. Raises ConfigError: no such format, or no file."""
        return dict(self._file(text) for text in self.out)

    def _file(self, text: str) -> tuple[Path, ReviewFormat]:
        form, _, path = text.partition("=")
        if form not in set(ReviewFormat) or not path:
            raise ConfigError(f"--out {text[:80]!r}: expected FORMAT=FILE, and one of {', '.join(ReviewFormat)}")
        return Path(path), ReviewFormat(form)


def fail_on_kinds(settings: "RepositorySettings") -> frozenset[Kind]:
    """Return what makes a review fail. Raises ConfigError: a word that is none of the kinds."""
    words = settings.review.fail_on
    return DEFAULT_FAIL_ON if words is None else frozenset(_kinds(words))


def _kinds(words: tuple[str, ...]) -> Iterator[Kind]:
    for word in (each.strip() for each in words):
        if word == NEVER and len(words) == 1:
            return
        if word not in set(Kind):
            raise ConfigError(f"review.fail-on (--fail-on): {word[:40]!r} is not one of {', '.join(Kind)}, or {NEVER}")
        yield Kind(word)
