"""`aclog when`: since when, and until when, something was allowed."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.many_requests import AskedFlags, WhoFlags
from aclog.cli.flags.question import AnswerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group

if TYPE_CHECKING:
    from aclog.snapshots.deciding_kafka import KafkaChange

app = Group()


@app.command()
def when(
    source: SourceFlags,
    action: AskedFlags,
    who: WhoFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
) -> None:
    """List the intervals of a log in which a request was allowed, and the changes at which each began and ended.

    The flags describe a set of requests: by several principals, on all names with
    a prefix, from any host, or all requests of an intent. In an interval at least
    one of them (for an intent: all of them) was allowed. Without a principal there
    are the intervals of each one that a rule names, and of all others. States within one batch
    or one metadata transaction were never visible, and do not count. --as-of ends
    the history at that state.

    Without --kafka-version, each moment is decided by the Kafka version that the
    brokers ran then, so an upgrade may begin or end an interval.

    [bold]Examples[/]

      aclog when --log DIR --principal User:bob --operation READ --topic orders
      aclog when DIR --operation READ --topic orders
      aclog when --log DIR --except-principal User:audit --operation READ --topic 'pii-*'
    """
    from itertools import takewhile

    from attrs import evolve

    from aclog.analysis.regions import who_text
    from aclog.analysis.timeline import concerns_controllers, intervals, intervals_by_principal, question_of
    from aclog.authorizer.codes import ResourceType
    from aclog.authorizer.settings import pattern_text
    from aclog.cli.answers import print_intervals, print_timelines
    from aclog.ops.near import spelled_otherwise
    from aclog.ops.policies import each_generation, read_premises, settings_of
    from aclog.snapshots.deciding_kafka import kafka_history
    from aclog.sources.logs import history_of, log_of
    from aclog.terminal.notices import tracked
    from aclog.terminal.output import note

    action.check()
    how = output.choose()
    principals, settings = who.principals(), settings_of(authorizer)
    query = action.query(principals, who.host)
    question = question_of(query, action.needs())
    choice = source.choose()
    history = history_of(choice.source, {each.name for one in question.queries for each in one.resources})
    # Read first: it shows the progress of a long replay, and warns of all that is wrong with the source.
    image = choice.image()
    end, premises = image.end_offset, read_premises(choice, authorizer.configs())
    changes = takewhile(lambda change: change.end_offset <= end, history.changes)
    each_generation(image, authorizer).warn()
    for text in spelled_otherwise(() if principals.complement else principals.named, image.acls):
        note(text)

    def kafka() -> "Iterator[KafkaChange]":
        """Read the log once more, for what its nodes ran."""
        controllers = concerns_controllers(question)
        changes = kafka_history(history.begin, log_of(choice.source), controllers=controllers)
        return takewhile(lambda change: change.end_offset <= end, changes)

    by_kafka = None if settings.is_kafka_stated else kafka
    asked = action.operation.name if action.operation is not None else f"to {action.intent}"
    on = ", ".join(f"{ResourceType(each.resource_type).name} {pattern_text(each)}" for each in action.resources())
    # Of everyone, `never` is that no principal had access, not that one of them lacked it.
    asker = "any principal" if who.is_everyone() else who_text(principals)
    request = " ".join(part for part in (asker, asked, on, f"from {who.host or 'any host'}") if part)
    last = "until now" if source.as_of is None else f"still so at offset {end}, where the history ends (--as-of)"
    if who.is_everyone():
        timelines = intervals_by_principal(
            history.begin,
            changes,
            lambda principals: question_of(evolve(query, principals=principals), action.needs()),
            settings,
            by_kafka,
        )
        timelines = tracked(timelines, "reading the history", "intervals", streams=True)
        print_timelines(timelines, how, begin=history.begin.end_offset, last=last, premises=premises, request=request)
    else:
        timeline = intervals(history.begin, changes, question, settings, by_kafka)
        timeline = tracked(timeline, "reading the history", "intervals", streams=True)
        print_intervals(timeline, how, begin=history.begin.end_offset, last=last, premises=premises, request=request)
    choice.warn_of_age()
