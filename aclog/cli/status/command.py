"""The `aclog status` command."""

from typing import Annotated

import typer

from aclog.cli.flags.cluster import TargetConfig, TargetController, TargetServer
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.output import OutputFlags, format_option
from aclog.terminal.output_format import ROW_FORMATS, OutputFormat

app = typer.Typer()


@app.command()
@with_flags
def status(
    output: OutputFlags,
    bootstrap_server: TargetServer = None,
    bootstrap_controller: TargetController = None,
    command_config: TargetConfig = None,
    json: Annotated[bool, typer.Option("--json", metavar="", help="One JSON object, as --format json.")] = False,
    format_: Annotated[OutputFormat | None, format_option(*ROW_FORMATS, default="table")] = None,
) -> None:
    """Show the leader of a running cluster, its high-water mark, and its replicas.

    Needs DESCRIBE on the cluster, and ALTER with --bootstrap-controller.

    [bold]Example[/]

      aclog status --bootstrap-controller HOST:9093
    """
    from aclog.cli.status.report import print_status
    from aclog.metalog.errors import ConfigError
    from aclog.sources.server_flags import client_security, parse_servers

    servers = parse_servers("--bootstrap-server", bootstrap_server)
    controllers = parse_servers("--bootstrap-controller", bootstrap_controller)
    if bool(servers) is bool(controllers):
        raise ConfigError("exactly one must be given: --bootstrap-server HOST:PORT or --bootstrap-controller HOST:PORT")
    how = output.choose(OutputFormat.JSON if json and format_ is None else format_, pipe=OutputFormat.TABLE)
    print_status(servers or controllers, client_security(command_config), controller=bool(controllers), output=how)
