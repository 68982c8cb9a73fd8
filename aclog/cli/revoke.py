"""`aclog revoke`: take away what a client does by its principal's own ACLs."""

from click.exceptions import Exit

from aclog.cli.app import writes_only_with
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.many_requests import IntentFlags
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
    """Show which of a principal's own rules grant the named access; with --yes, remove them.

    Revokes access to the named resources only. A rule with more operations is
    replaced by rules for the remaining ones; a rule on more names, or for more
    hosts, stays. The plan lists the rules that still grant the access. Exit code
    0 if no rule grants it, or all is done; 1 if the plan has changes, or a rule
    still grants it; 2 if it is refused.

    [bold]Examples[/]

      aclog revoke --log DIR --principal User:a --intent consume --topic t
      aclog revoke --log DIR --principal User:a --intent produce --topic-prefix pay. --yes
    """
    from aclog.cli.grant import run_revoke

    raise Exit(run_revoke(target, intent, revoked, do, authorizer, output.choose()))
