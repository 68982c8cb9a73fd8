"""`aclog accesses index`.

Adds what is new in an access log to an index; and the access log of a command: its files, its times and gaps as
text.
"""

from pathlib import Path
from typing import Annotated

from aclog.cli.flags.accesses import AccessesFlags
from aclog.cli.flags.common import AuthorizerFlags, check_one_stdin, stdin_among
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group, Option
from aclog.metalog.values import frozen

# The flags besides the source and the log.


@frozen(kw_only=True)
class IndexFlags:
    """The index, and whether it follows the log."""

    index: Annotated[
        str,
        Option(
            "--index",
            metavar="DIR",
            help="The index; a new or empty directory becomes one. Without --follow also s3://BUCKET/PREFIX or "
            "abfss://...",
            show_default=False,
        ),
    ]
    follow: Annotated[
        bool,
        Option("--follow", metavar="", help="Add new entries as the log grows and is rotated, until SIGTERM."),
    ] = False
    interval: Annotated[
        float, Option("--interval", metavar="SECONDS", help="With --follow: the time between two looks.")
    ] = 60.0
    accesses_command_config: Annotated[
        Path | None,
        Option(
            "--accesses-command-config",
            metavar="FILE",
            help="Client properties for a topic of --accesses: security.protocol, sasl.*, ssl.*.",
            show_default="no authentication",
        ),
    ] = None


app = Group()


@app.command(name="usage-index")
def usage_index(
    source: SourceFlags,
    accesses: AccessesFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
    flags: IndexFlags,
) -> None:
    """Record in an index when each ACL was last used; `aclog accesses unused` reads it for any window of days.

    Entries are identified by the content of the files: a file that was rotated,
    compressed or copied counts once, and only the new part of a file that has
    grown is read. A run is atomic. With --log, each access is judged by the ACLs
    of its own time. Exit code 0, also without new entries. --follow continues until
    SIGTERM or Ctrl-C, with a line of status on stderr per interval; each access
    counts once, also after a kill and a restart.

    [bold]Examples[/]

      aclog accesses index --accesses /var/log/kafka --log DIR --index usage
      aclog accesses index --accesses 'logs/kafka-authorizer.log*' --acls acls.jsonl --index usage
      aclog accesses index --accesses /var/log/kafka --log DIR --index usage --follow
      aclog accesses index --accesses s3://logs/kafka --log DIR --index s3://audit/usage
      aclog accesses unused --log DIR --index usage --days 90
    """
    from aclog.ops.extras import need_usage_extra

    need_usage_extra()
    from aclog.cli.index_follow import IndexFollower, check_following, check_index, file_feed
    from aclog.cli.index_topic import topic_feed, topic_settings, update_from_topic
    from aclog.cli.index_update import IndexRuns, update_index
    from aclog.ops.policies import settings_of
    from aclog.usage.index.usage_index import UsageIndex

    check_one_stdin({**source.files(), **stdin_among(accesses.accesses)})
    settings, how = settings_of(authorizer), output.choose()
    topic = topic_settings(accesses, flags.accesses_command_config)
    configs = authorizer.configs()
    if not flags.follow:
        if topic is None:
            update_index(source, accesses, settings, flags.index, how, configs=configs)
        else:
            with topic_feed(topic, accesses, follow=False) as batches:
                update_from_topic(batches, source, settings, flags.index, how, configs=configs)
        return
    directory = check_index(flags.index)
    check_following(how, source, flags.interval)
    with (
        file_feed(accesses) if topic is None else topic_feed(topic, accesses, follow=True) as feed,
        UsageIndex.create(directory) as index,
    ):
        runs = IndexRuns(index=index, settings=settings, configs=configs)
        IndexFollower(feed=feed, runs=runs, source=source, output=how).run(flags.interval)
