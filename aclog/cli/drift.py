"""`aclog drift`: how a target differs from what its source of ACLs states."""

from click.exceptions import Exit

from aclog.cli.flags.commands import DriftFlags
from aclog.cli.flags.common import FollowerFlags
from aclog.cli.flags.plans import WantFlags
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.flags.target import TargetFlags
from aclog.cli.options import Group
from aclog.metalog.errors import ConfigError

app = Group()


@app.command()
def drift(
    target: TargetFlags,
    want: WantFlags,
    flags: DriftFlags,
    follower: FollowerFlags,
    output: AnswerFlags,
) -> None:
    """Show desired ACLs that are missing, and managed ACLs that are no longer desired and still exist.

    Rules that are neither desired nor managed belong to other owners: they are
    counted, and are not drift. With --follow, the target and the desired rules
    are checked repeatedly, and each rule that drifts or is fixed is printed. Exit
    code 0 if there is no drift, 1 if there is, 2 if it is unknown.

    [bold]Examples[/]

      aclog drift --log DIR --want rules.jsonl --journal rules.journal
      aclog drift --bootstrap-server HOST:9092 --want kafka/ --journal prod.journal --follow --format jsonl
    """
    from aclog.cli.drift_report import print_drift

    if flags.follow:
        from aclog.cli.drift_follow import follow_drift

        follow_drift(target, want, flags, follower, output.choose(is_live=True))
        return
    if flags.interval is not None:
        raise ConfigError("--interval: only together with --follow")
    follower.refuse("--follow")
    raise Exit(print_drift(target, want, flags, output.choose()))
