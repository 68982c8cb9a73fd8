"""`aclog mcp`: questions of assistants, by the Model Context Protocol."""

from aclog.cli.flags.commands import McpFlags
from aclog.cli.flags.common import AuthorizerFlags, SourceFlags
from aclog.cli.options import Group

app = Group()


@app.command()
def mcp(source: SourceFlags, flags: McpFlags, authorizer: AuthorizerFlags) -> None:
    """Serve the Model Context Protocol to an assistant over stdin and stdout; read-only.

    The tools are who_can, what_can, explain, diff, check, when, lint and unused.
    Each runs the command of that name on the source given here, and returns the
    equivalent command line and the end offset of the state with its result. An
    assistant starts this command; it ends when stdin is closed.

    [bold]Examples[/]

      aclog mcp --log DIR
      aclog mcp --bootstrap-controller HOST:9093 --index usage
      aclog -c prod mcp
    """
    from aclog.ops.extras import need_mcp_extra

    need_mcp_extra()
    from aclog.cli.mcp_server import run_mcp

    run_mcp(source, flags, authorizer)
