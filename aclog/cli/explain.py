"""`aclog explain`: why a request is allowed or denied."""

from typing import Annotated

import typer

from aclog.authorizer.acl import PatternType
from aclog.cli.flags.answer import AnswerFlags
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.request import RequestFlags
from aclog.cli.flags.source import SourceFlags

app = typer.Typer()


@app.command()
@with_flags
def explain(
    source: SourceFlags,
    request: RequestFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
    origins: Annotated[
        bool,
        typer.Option(
            "--origins",
            metavar="",
            help="With a log: read it for the [cyan]offset[/] and the time at which each ACL was added.",
        ),
    ] = False,
) -> None:
    """Show every ACL that takes part in a decision, the determining one, and what would reverse the decision.

    'pii-*' is all names that begin with pii-, if all of them are decided
    alike; otherwise it is an error with an example of each decision.

    [bold]Examples[/]

      aclog explain --log DIR --principal User:bob --operation WRITE --topic pay
      aclog explain --log DIR --principal User:bob --operation READ --topic t --format json
      aclog explain --log DIR --principal User:bob --operation READ --topic t --origins
      aclog explain --log DIR --principal User:bob --operation READ --topic 'pii-*'
    """
    from attrs import evolve

    from aclog.authorizer.explain_options import ExplainOptions
    from aclog.authorizer.explanation_text import explanation_lines
    from aclog.cli.deciding import each_generation
    from aclog.cli.decisions import asked_of, strictest
    from aclog.cli.explained import examined_columns, examined_rows, explain_one, watch_ranges, with_log_origins
    from aclog.cli.premises import read_premises
    from aclog.snapshots.moments import moment_text
    from aclog.terminal.output import say

    how = output.choose()
    asked = request.request()
    chosen = source.choose()
    options = ExplainOptions(
        allow_everyone=authorizer.allow_everyone,
        host_given=asked.host_given,
        as_of=None if chosen.moment is None else moment_text(chosen.moment),
        place=chosen.source.change_place,
    )
    image = chosen.image()
    each = each_generation(image, authorizer, [(asked.resource_type, asked.operation)])
    options = evolve(options, origins=chosen.origins, premises=read_premises(chosen, authorizer.given()))
    if asked.pattern_type == PatternType.LITERAL:
        explanations = {generation: explain_one(image, own, asked, options) for generation, own in each.flags.items()}
    else:
        from aclog.analysis.answers.set_decision import explained
        from aclog.cli.policies import policy_of

        explanations = {
            generation: explained(policy_of(image, own), *asked_of(asked), options)
            for generation, own in each.flags.items()
        }
        for generation, explanation in explanations.items():
            watch_ranges(explanation, each.flags[generation])
    if origins:
        explanations = {
            generation: with_log_origins(explanation, chosen.source, image)
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
