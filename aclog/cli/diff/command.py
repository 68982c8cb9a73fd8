"""`aclog diff`: what a change of rules or settings really gives and takes."""

import typer

from aclog.cli.diff.flags import DiffFlags
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.second_settings import SecondSettingsFlags
from aclog.cli.flags.second_state import SecondStateFlags
from aclog.cli.flags.source import SourceFlags

app = typer.Typer()


@app.command()
@with_flags
def diff(
    source: SourceFlags,
    target: SecondStateFlags,
    authorizer: AuthorizerFlags,
    settings: SecondSettingsFlags,
    report: DiffFlags,
) -> None:
    """Show which requests a second state allows and the first one does not, and which it no longer allows.

    The answer is exact: it covers every principal, host, operation and name,
    not only those that occur in a rule. Exit code 0 if every request is
    decided the same, 1 if not, 2 for bad input.

    [bold]Examples[/]

      aclog diff --log DIR --to-as-of 2026-11-20T10:00:00Z
      aclog diff --acls old.jsonl --to-acls new.jsonl --format markdown
      aclog diff --log DIR --change change.jsonl --accesses accesses
      aclog diff --log DIR --to-allow-everyone-if-no-acl-found --format jsonl
    """
    from aclog.analysis.name_map import parse_name_maps
    from aclog.cli.diff.report import print_difference
    from aclog.cli.policies import SideFlags

    maps = parse_name_maps(report.map_names)
    flags = SideFlags(source=source, authorizer=authorizer, target=target, settings=settings, maps=maps)
    raise typer.Exit(print_difference(flags, report))
