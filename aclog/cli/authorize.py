"""`aclog authorize`: decides one request, or a file of requests."""

from typing import Annotated

from click.exceptions import Exit

from aclog.authorizer.acl import deciding_filter
from aclog.authorizer.codes import PatternType
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.question import PANEL, AnswerFlags, RequestFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group, Option
from aclog.metalog.errors import ConfigError

app = Group()


@app.command()
def authorize(
    source: SourceFlags,
    request: RequestFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
    requests: Annotated[
        str | None,
        Option(
            "--requests",
            metavar="FILE",
            help="Decide every line of this file of JSON lines ([cyan]-[/] is stdin, gzip is detected).",
            rich_help_panel=PANEL,
        ),
    ] = None,
) -> None:
    """Print ALLOWED or DENIED, and the determining rule as Kafka's audit log names it.

    Exit code 0 if allowed, 1 if denied, 2 for bad input.

    'pii-*' means all names that begin with pii-. If they are not all decided
    alike, the command prints an example of each decision, and fails.

    With --requests, each line has the keys principal, host, operation,
    resourceType and resourceName, or "kind":"byResourceType" without
    resourceName for any resource of the type. Each request results in one line,
    in order: {"decision":"ALLOWED","rule":"..."}. For a malformed request it is
    {"decision":"ERROR","error":"..."}, and the exit code is 2. Denied requests do
    not affect the exit code.

    Settings of a running cluster that it does not reveal, and that no flag gives,
    may change a decision: the result is then "DENIED unless ...", and a line of
    JSON has the key premises.

    [bold]Examples[/]

      aclog authorize --log DIR --principal User:bob --operation READ --topic t
      aclog authorize --log DIR --principal User:bob --operation READ --topic 'pii-*'
      aclog authorize --snapshot FILE --requests requests.jsonl.gz > answers.jsonl
    """
    from aclog.cli.explain import Decided, asked_of, authorizer_of, decide, print_decision
    from aclog.ops.near import spelled_otherwise
    from aclog.ops.policies import each_generation, read_premises, refuse_symbols
    from aclog.terminal.output import note

    how = output.choose(is_live=requests is not None)
    choice = source.choose()
    if requests is None:
        question = request.request(instead="--requests FILE")
        choice.restrict([deciding_filter(question.resource_type, question.name, question.pattern_type)])
        image = choice.image()
        refuse_symbols(image, choice.origins, "no decision is known")
        premises = read_premises(choice, authorizer.configs())
        each = each_generation(image, authorizer, [(question.resource_type, question.operation)])
        decided = {}
        for generation, own in each.stated.items():
            if question.pattern_type == PatternType.LITERAL:
                decided[generation] = Decided(decision=decide(authorizer_of(image, own), question))
            else:
                from aclog.analysis.timeline import decide_set
                from aclog.ops.policies import policy_of

                answer = decide_set(policy_of(image, own), *asked_of(question))
                decided[generation] = Decided(decision=answer.decision, example=answer.example)
        acls = image.acls.with_options(documented=authorizer.documented, cidr=image.acls.cidr)
        if len({outcome.decision.text for outcome in decided.values()}) > 1:
            each.warn()
        if not all(outcome.decision for outcome in decided.values()):
            for text in spelled_otherwise([question.principal], image.acls):
                note(text)
        raise Exit(print_decision(decided, question, how, acls, origins=choice.file_origins, premises=premises))
    if request.is_given():
        raise ConfigError("--requests FILE excludes --principal, --operation, --host and the resource flags")
    from aclog.cli.authorize_lines import decide_requests

    choice.refuse_shared_stdin(requests)
    image = choice.image()
    refuse_symbols(image, choice.origins, "no decision is known")
    premises = read_premises(choice, authorizer.configs())
    raise Exit(decide_requests(image, authorizer, requests, how, answered=choice.warn_of_age, premises=premises))
