"""`aclog revoke`: take away what a client does by its principal's own ACLs."""

from click.exceptions import Exit

from aclog.cli.app import writes_only_with
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.many_requests import IntentFlags
from aclog.cli.flags.plans import DoFlags, RevokedFlags, StepsOutputFlags
from aclog.cli.flags.target import TargetFlags
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

    Revokes access to the named resources only. A rule that also allows other
    operations (ALL) is replaced by rules for those. A rule that also covers other
    names or hosts is not changed. The plan lists the rules that still grant the
    access. Exit code 0 if no rule grants the access, or --yes has removed it; 1 if
    changes are left to make, or a rule still grants it; 2 if refused.

    [bold]Examples[/]

      aclog revoke --log DIR --principal User:a --intent consume --topic t
      aclog revoke --log DIR --principal User:a --intent produce --topic-prefix pay. --yes
    """
    from aclog.cli.grant import run_revoke

    raise Exit(run_revoke(target, intent, revoked, do, authorizer, output.choose()))
