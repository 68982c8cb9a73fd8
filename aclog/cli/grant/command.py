"""`aclog grant`: the least rules that let a client do its work."""

import typer

from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.granting import DoFlags
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.intent import IntentFlags
from aclog.cli.flags.plan import StepsOutputFlags
from aclog.cli.flags.target import TargetFlags
from aclog.cli.from_context.marks import writes_only_with

app = typer.Typer()


@app.command()
@with_flags
@writes_only_with("--yes")
def grant(
    target: TargetFlags,
    asked: IntentFlags,
    do: DoFlags,
    authorizer: AuthorizerFlags,
    output: StepsOutputFlags,
) -> None:
    """Show the least rules that a client needs for its work, given what is there; with --yes, add them.

    All resources that are named are granted, and nothing else: no rule is
    wider than asked. Rules that are there are used as they are. The plan
    tells whose resources a prefix opens, too, and what a rule denies
    nevertheless. Exit code 0 if nothing is missing, or all is done; 1 if
    the plan has changes; 2 if it is refused: a rule denies what is asked,
    or others would lose access.

    [bold]Examples[/]

      aclog grant --log DIR --principal User:a --intent consume --topic t --group g
      aclog grant --bootstrap-server HOST:9092 --principal User:a --intent produce --topic t --yes
      aclog grant --log DIR --principal User:a --intent stream --group app --input-topic t --out PLAN
    """
    from aclog.cli.granting.grant import run_grant

    raise typer.Exit(run_grant(target, asked, do, authorizer, output.choose()))
