"""`aclog explain`: why a request is allowed or denied."""

import typer

from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.request import RequestFlags
from aclog.cli.flags.source import SourceFlags

app = typer.Typer()


@app.command()
@with_flags
def explain(source: SourceFlags, request: RequestFlags, authorizer: AuthorizerFlags) -> None:
    """Show every ACL that takes part in a decision, the determining one, and what would reverse the decision.

    [bold]Example[/]

      aclog explain --log DIR --principal User:bob --operation WRITE --topic pay
    """
    from aclog.cli.decisions import explain_one

    asked = request.request()
    chosen = source.choose()
    explain_one(chosen.image(), authorizer, asked, chosen.source.writable_log)
