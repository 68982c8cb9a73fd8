"""`aclog authorize`: decide one request, or many."""

from typing import Annotated

import typer

from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.request import PANEL, RequestFlags
from aclog.cli.flags.source import SourceFlags
from aclog.metalog.errors import ConfigError

app = typer.Typer()


@app.command()
@with_flags
def authorize(
    source: SourceFlags,
    request: RequestFlags,
    authorizer: AuthorizerFlags,
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
    """Say ALLOWED or DENIED, and the rule that decided, as Kafka's authorizer names it.

    Exit code 0 if allowed, 1 if denied, 2 for bad input.

    With --requests each line has the keys principal, host, operation,
    resourceType and resourceName, or "kind":"byResourceType" and no
    resourceName, which asks for any resource of the type. One line a request
    comes out, in order: {"decision":"ALLOWED","rule":"..."}; a malformed
    request gives {"decision":"ERROR","error":"..."}, and exit code 2 at the
    end; denied requests count for nothing then.

    [bold]Examples[/]

      aclog authorize --log DIR --principal User:bob --operation READ --topic t
      aclog authorize --snapshot FILE --requests asked.jsonl.gz > answers.jsonl
    """
    from aclog.cli.decisions import decide_one, decide_requests

    chosen = source.choose()
    if requests is None:
        asked = request.request()
        raise typer.Exit(decide_one(chosen.image(), authorizer, asked))
    if request.given():
        raise ConfigError("--requests FILE excludes --principal, --operation, --host and the resource flags")
    chosen.keep_stdin_for(requests)
    raise typer.Exit(decide_requests(chosen.image(), authorizer, requests))
