"""`aclog lint`: rules that do not do what they seem to do, or that do nothing."""

import typer

from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.repository import RepositoryFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.lint.flags import ClusterFlags, LintFlags
from aclog.terminal.output_format import OutputFormat

app = typer.Typer()


@app.command()
@with_flags
def lint(source: SourceFlags, cluster: ClusterFlags, flags: LintFlags, repository: RepositoryFlags) -> None:
    """Find rules that do not do what they seem to do, that do nothing, or that open what hardly anybody meant.

    Each finding names the rules, with file and line or offset and time, what
    is lost or opened, and the mend. Settings and suppressions may stand in
    the repository's aclog.toml. Exit code 1 if there is a finding of the
    severity of --fail-on, 0 if not, 2 for bad input.

    [bold]Examples[/]

      aclog lint --acls kafka/ --topics topics.txt
      aclog lint --bootstrap-server HOST:9092 --accesses accesses.parquet
      aclog lint --acls kafka/ --format sarif --fail-on never
      aclog lint --log DIR --select 08,11 --fix change.jsonl
      aclog lint --explain 08
    """
    if flags.list_all or flags.explain:
        _tell(flags)
        return
    from aclog.cli.lint.report import print_lint

    settings = flags.over(cluster.over(repository.load()))
    raise typer.Exit(print_lint(source, flags, settings))


def _tell(flags: LintFlags) -> None:
    from aclog.cli.lint.catalogue_text import CATALOGUE_COLUMNS, catalogue_rows, explain_lines, list_lines
    from aclog.cli.lint.lint_names import split_ids
    from aclog.metalog.errors import ConfigError
    from aclog.metalog.printable import printable
    from aclog.terminal.output import say

    output = flags.output()
    chosen = None if flags.list_all else [part for each in flags.explain for part in split_ids(each)]
    if output.is_rows:
        output.print_rows(CATALOGUE_COLUMNS, catalogue_rows(chosen))
        return
    if output.form is OutputFormat.SARIF:
        raise ConfigError("--format sarif: expected no --list and no --explain")
    for line in list_lines() if chosen is None else explain_lines(chosen):
        say(printable(line))
