"""`aclog revoke`: take away what a client does by its principal's own ACLs."""

from click.exceptions import Exit

from aclog.cli.app import writes_only_with
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.question import IntentFlags
from aclog.cli.flags.target import DoFlags, RevokedFlags, StepsOutputFlags, TargetFlags
from aclog.cli.options import Group

app = Group()


@app.command()
@writes_only_with("--yes")
def revoke(
    target: TargetFlags,
    intent: IntentFlags,
    revoked: RevokedFlags,
    do: DoFlags,
    authorizer: AuthorizerFlags,
    output: StepsOutputFlags,
) -> None:
    """Show which of a principal's own rules let its client do something; with --yes, remove them.

    Only resources that are named are taken away. A rule that gives more
    operations is replaced by rules for the others; one on more names or for
    more hosts than requested stays. The plan lists what still allows it. Exit
    code 0 if nothing allows it, or all is done; 1 if the plan has changes,
    or something still allows it; 2 if it is refused.

    [bold]Examples[/]

      aclog revoke --log DIR --principal User:a --intent consume --topic t
      aclog revoke --log DIR --principal User:a --intent produce --topic-prefix pay. --yes
    """
    from aclog.cli.grant import run_revoke

    raise Exit(run_revoke(target, intent, revoked, do, authorizer, output.choose()))
