"""`aclog diff`: what a change of ACLs or settings really changes."""

from click.exceptions import Exit

from aclog.cli.flags.commands import DiffFlags, check_followed
from aclog.cli.flags.common import AuthorizerFlags, FollowerFlags
from aclog.cli.flags.many_requests import SecondSettingsFlags, SecondStateFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group

app = Group()


@app.command()
def diff(
    source: SourceFlags,
    target: SecondStateFlags,
    authorizer: AuthorizerFlags,
    settings: SecondSettingsFlags,
    report: DiffFlags,
    follower: FollowerFlags,
) -> None:
    """Show which requests a second state allows and the first one denies, and the reverse.

    Covers every principal, host, operation and name, not only those that occur
    in a rule. The exit code and the regions of jsonl, json, csv and table are
    exact. A row of text, markdown and sarif is exact as well, unless it has "at
    most": then some of its principals, hosts, names or operations, as it states,
    may be unaffected.

    Exit code 0 if every request is decided the same, 1 if not, or if a setting
    that a running cluster does not reveal could change the result, 2 for bad
    input.

    A log with --as-of and no second state is compared with its newest state.
    With --follow there is no second state: the command prints the effective
    change of each commit to a log, until Ctrl-C or SIGTERM.

    [bold]Examples[/]

      aclog diff --log DIR --as-of yesterday
      aclog diff DIR --as-of 2026-11-19 --to-as-of 2026-11-20T10:00:00Z
      aclog diff old.jsonl new.jsonl --format markdown
      aclog diff origin/main:kafka kafka --format sarif
      aclog diff --log DIR --change change.jsonl --accesses accesses
      aclog diff --log DIR --to-allow-everyone-if-no-acl-found --format jsonl
      aclog diff --follow --bootstrap-controller HOST:9093 --format jsonl
    """
    if report.follow:
        check_followed(target, settings, report)
        raise Exit(_follow(source, authorizer, report, follower))
    follower.refuse("--follow")
    if not settings.is_given():
        target = target.or_now(source)
    from aclog.analysis.policy import parse_name_maps
    from aclog.cli.diff_report import SideFlags, print_difference

    maps = parse_name_maps(report.map_names)
    flags = SideFlags(source=source, authorizer=authorizer, target=target, settings=settings, maps=maps)
    raise Exit(print_difference(flags, report))


def _follow(source: SourceFlags, authorizer: AuthorizerFlags, report: DiffFlags, follower: FollowerFlags) -> int:
    from aclog.cli.follow import FollowOptions, follow_differences
    from aclog.ops.policies import existing_topics, read_premises, settings_of

    options = FollowOptions(
        settings=settings_of(authorizer),
        topics=existing_topics(source.topics(), ()),
        format=report.output().form,
        http=follower.address(),
        give_up_after=follower.patience(),
    )
    choice = source.choose()
    read_premises(choice, authorizer.configs())
    follow_differences(choice, options)
    return 0
