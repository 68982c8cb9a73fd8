"""`aclog authorize`: decides one request, or a file of them."""

from typing import Annotated

import typer

from aclog.authorizer.acl import PatternType
from aclog.cli.flags.common import AuthorizerFlags, with_flags
from aclog.cli.flags.question import PANEL, AnswerFlags, RequestFlags
from aclog.cli.flags.source import SourceFlags
from aclog.metalog.errors import ConfigError

app = typer.Typer()


@app.command()
@with_flags
def authorize(
    source: SourceFlags,
    request: RequestFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
    requests: Annotated[
        str | None,
        typer.Option(
            "--requests",
            metavar="FILE",
            help="Decide every line of this file of JSON lines ([cyan]-[/] is stdin, gzip is detected).",
            rich_help_panel=PANEL,
        ),
    ] = None,
) -> None:
    """Print ALLOWED or DENIED, and the determining rule as Kafka's audit log names it.

    Exit code 0 if allowed, 1 if denied, 2 for bad input.

    'pii-*' is all names that begin with pii-: there is a decision if all of
    them are decided alike, otherwise an error with an example of each.

    With --requests each line has the keys principal, host, operation,
    resourceType and resourceName, or "kind":"byResourceType" and no
    resourceName to ask for any resource of the type. Each request gets one
    line, in order: {"decision":"ALLOWED","rule":"..."}; a malformed one gets
    {"decision":"ERROR","error":"..."}, and the exit code is then 2. Denied
    requests do not affect the exit code. What a running cluster has set and
    does not show, and no flag gives, may turn a decision: it says "DENIED
    unless ...", and a line of JSON then has the key premises.

    [bold]Examples[/]

      aclog authorize --log DIR --principal User:bob --operation READ --topic t
      aclog authorize --log DIR --principal User:bob --operation READ --topic 'pii-*'
      aclog authorize --snapshot FILE --requests asked.jsonl.gz > answers.jsonl
    """
    from aclog.cli.decisions import Decided, asked_of, authorizer_of, decide, decide_requests, print_decision
    from aclog.cli.policies import each_generation, read_premises

    how = output.choose(is_live=requests is not None)
    chosen = source.choose()
    if requests is None:
        asked = request.request()
        image, premises = chosen.image(), read_premises(chosen, authorizer.given())
        each = each_generation(image, authorizer, [(asked.resource_type, asked.operation)])
        decided = {}
        for generation, own in each.flags.items():
            if asked.pattern_type == PatternType.LITERAL:
                decided[generation] = Decided(decision=decide(authorizer_of(image, own), asked))
            else:
                from aclog.analysis.timeline import decide_set
                from aclog.cli.policies import policy_of

                found = decide_set(policy_of(image, own), *asked_of(asked))
                decided[generation] = Decided(decision=found.decision, example=found.example)
        acls = image.acls.with_options(documented=authorizer.documented, cidr=image.acls.cidr)
        if len({made.decision.text for made in decided.values()}) > 1:
            each.warn()
        raise typer.Exit(print_decision(decided, asked, how, acls, origins=chosen.file_origins, premises=premises))
    if request.given():
        raise ConfigError("--requests FILE excludes --principal, --operation, --host and the resource flags")
    chosen.refuse_shared_stdin(requests)
    image, premises = chosen.image(), read_premises(chosen, authorizer.given())
    raise typer.Exit(decide_requests(image, authorizer, requests, how, answered=chosen.warn_of_age, premises=premises))
