"""`aclog explain`: why a request is allowed or denied."""

from collections.abc import Iterator
from typing import Annotated

from attrs import evolve

from aclog.authorizer.acl import PatternType
from aclog.authorizer.explain import ExplainOptions, Explanation
from aclog.authorizer.explain import explain as explain_decision
from aclog.authorizer.settings import Generation
from aclog.cli.acl_columns import ORIGIN_COLUMNS, RULE_COLUMNS
from aclog.cli.decisions import asked_of, authorizer_of
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.question import AnswerFlags, Request, RequestFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.images import RangeWatch
from aclog.cli.options import Group, Option
from aclog.ops.policies import StatedSettings
from aclog.snapshots.deciding_kafka import DecidingKafka
from aclog.snapshots.image import Image
from aclog.snapshots.state_source import StateSource
from aclog.terminal.columns import Column, Row

app = Group()


@app.command()
def explain(
    source: SourceFlags,
    request: RequestFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
    origins: Annotated[
        bool,
        Option(
            "--origins",
            metavar="",
            help="With a log: read it for the [cyan]offset[/] and the time at which each ACL was added.",
        ),
    ] = False,
) -> None:
    """Show every ACL that takes part in a decision, the determining one, and what would reverse the decision.

    'pii-*' means all names that begin with pii-. If they are not all decided
    alike, the command prints an example of each decision, and fails.

    [bold]Examples[/]

      aclog explain --log DIR --principal User:bob --operation WRITE --topic pay
      aclog explain --log DIR --principal User:bob --operation READ --topic t --format json
      aclog explain --log DIR --principal User:bob --operation READ --topic t --origins
      aclog explain --log DIR --principal User:bob --operation READ --topic 'pii-*'
    """
    from attrs import evolve

    from aclog.authorizer.explain import ExplainOptions, explanation_lines
    from aclog.cli.decisions import asked_of, strictest
    from aclog.ops.policies import each_generation, read_premises
    from aclog.snapshots.moments import moment_text
    from aclog.terminal.output import say

    how = output.choose()
    question = request.request()
    choice = source.choose()
    options = ExplainOptions(
        allow_everyone=authorizer.allow_everyone,
        host_given=question.host_given,
        as_of=None if choice.moment is None else moment_text(choice.moment),
        place=choice.source.change_place,
    )
    image = choice.image()
    each = each_generation(image, authorizer, [(question.resource_type, question.operation)])
    options = evolve(options, origins=choice.origins, premises=read_premises(choice, authorizer.configs()))
    if question.pattern_type == PatternType.LITERAL:
        explanations = {
            generation: explain_one(image, own, question, options) for generation, own in each.stated.items()
        }
    else:
        from aclog.analysis.timeline import explained
        from aclog.ops.policies import policy_of

        explanations = {
            generation: explained(policy_of(image, own), *asked_of(question), options)
            for generation, own in each.stated.items()
        }
        for generation, explanation in explanations.items():
            watch_ranges(explanation, each.stated[generation])
    if origins:
        explanations = {
            generation: with_log_origins(explanation, choice.source, image)
            for generation, explanation in explanations.items()
        }
    generation, _ = strictest({of: explanation.decision for of, explanation in explanations.items()})
    first = explanations.pop(generation)
    each.warn()
    if how.is_rows:
        answer = first.to_dict()
        if explanations:
            answer["generation"] = generation.value
            answer["otherGenerations"] = {of.value: other.to_dict() for of, other in explanations.items()}
        how.print_answer(answer, examined_columns(in_log=origins), examined_rows(first))
        return
    if explanations:
        say(f"On {generation}:")
    for line in explanation_lines(first):
        say(line)
    for of, other in explanations.items():
        say(f"\nOn {of}:")
        for line in explanation_lines(other):
            say(line)


# The explanation of one decision, for `explain`.


_OLDER = DecidingKafka(generations=(Generation.V4_3,), stated=Generation.V4_3)
_LOG_COLUMNS = (Column(key="offset"), Column(key="timestamp", spare=True))


def examined_columns(*, in_log: bool = False) -> tuple[Column, ...]:
    """Return the columns of the ACLs of an explanation; `in_log`: also where in a log each was added."""
    placed = (*ORIGIN_COLUMNS, *_LOG_COLUMNS) if in_log else ORIGIN_COLUMNS
    return (Column(key="role"), *RULE_COLUMNS, *placed, Column(key="notes", spare=True, text="; ".join))


def examined_rows(explanation: Explanation) -> Iterator[Row]:
    """Yield the ACLs that took part, the most important first."""
    for each in explanation.to_dict()["rules"]:
        yield {"role": each["role"], **each["rule"], "notes": each["notes"]}


def explain_one(image: Image, stated: StatedSettings, request: Request, options: ExplainOptions) -> Explanation:
    """Return the explanation of a decision; warn of ACLs with a CIDR range as host.

    Raises:
        ConfigError, InvalidRequestError: as aclog.cli.decisions.decide.

    """
    context, action = asked_of(request)
    pattern = action.resource_pattern
    decision = authorizer_of(image, stated).decide(context, action)
    has_ranges = stated.generation is Generation.V4_4
    acls = image.acls.with_options(documented=stated.documented, cidr=has_ranges)
    if not has_ranges:
        watch = RangeWatch(options.origins)
        watch.watch_all(acls.candidates(pattern.resource_type, pattern.name), _OLDER)
        watch.report()
    return explain_decision(acls, decision, context, action, options=options)


def watch_ranges(explanation: Explanation, stated: StatedSettings) -> None:
    """Warn of ACLs with a CIDR range as host among those of an explanation."""
    if stated.generation is not Generation.V4_4:
        watch = RangeWatch(explanation.options.origins)
        watch.watch_all((each.rule for each in explanation.rules), _OLDER)
        watch.report()


def with_log_origins(explanation: Explanation, source: StateSource, image: Image) -> Explanation:
    """Return an explanation of `image` with the locations of its ACLs; the same if its source has no log.

    Raises:
        MetadataError: the log is damaged, or no checkpoint reaches its start.

    """
    if source.log is None:
        return explanation
    from aclog.sources.logs import past_of  # reads the whole log, which only this needs

    ids = {each.rule.id: each.rule.acl for each in explanation.rules if each.rule.id is not None}
    past = past_of(source, image.end_offset, ids)
    return evolve(explanation, options=evolve(explanation.options, origins=past))
