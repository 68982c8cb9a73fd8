"""The flags of `aclog test`."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from attrs import field, frozen

from aclog.cli.flags.answer import AnswerFlags, AnswerFormat
from aclog.cli.flags.output import Columns, NoPager, Output

TestFiles: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="Tests: YAML, or JSON lines of requests with their decisions ([cyan]*.jsonl[/]; [cyan]-[/] is stdin). "
        "[dim]Default: those of aclog.toml[/]",
        show_default=False,
    ),
]


@frozen(kw_only=True)
class RunFlags:
    """Which tests are run, what else is measured, and how it is told."""

    files: TestFiles = field(factory=list)
    run: Annotated[
        list[str],
        typer.Option("--run", metavar="GLOB", help="Only tests with such a name; can be repeated.", show_default=False),
    ] = field(factory=list)
    coverage: Annotated[
        bool, typer.Option("--coverage", metavar="", help="Also list the rules that no test exercises.")
    ] = False
    min_coverage: Annotated[
        float | None,
        typer.Option(
            "--min-coverage",
            metavar="P",
            min=0,
            max=100,
            help="Fail if fewer than P percent of the rules are exercised.",
        ),
    ] = None
    mutate: Annotated[
        bool,
        typer.Option(
            "--mutate",
            metavar="",
            help="Also fail for each rule that can be removed, widened or flipped without a test that fails.",
        ),
    ] = False
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write the results as JUnit XML, too.")
    ] = None
    format: AnswerFormat = None
    columns: Columns = None
    no_pager: NoPager = False
    schema: Annotated[
        bool, typer.Option("--schema", metavar="", help="Print the JSON schema of YAML tests, for editors, and exit.")
    ] = False

    def output(self, *, is_live: bool = False) -> Output:
        """Return how to print. Raises as AnswerFlags.choose."""
        return AnswerFlags(format=self.format, columns=self.columns, no_pager=self.no_pager).choose(is_live=is_live)
