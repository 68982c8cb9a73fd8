"""`aclog drift`: how a target differs from what its source of ACLs states."""

from click.exceptions import Exit

from aclog.cli.flags.commands import DriftFlags
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.flags.source import FollowerFlags
from aclog.cli.flags.target import TargetFlags, WantFlags
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
    """Show the rules that are wanted and missing, and those that are owned, no longer wanted, and still there.

    Rules that are neither wanted nor owned are somebody else's: they are
    counted, and are no drift. With --follow it looks again and again, at what is
    wanted, too, and prints a line for each rule that drifts or is mended. Exit
    code 0 if nothing drifts, 1 if something does, 2 if nobody can tell.

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
