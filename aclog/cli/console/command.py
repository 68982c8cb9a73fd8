"""`aclog console`: who may what, and why, in a browser."""

import typer

from aclog.cli.console.flags import ConsoleFlags, FindingsFlags
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.from_context.marks import writes_only_with

app = typer.Typer()


@app.command()
@with_flags
@writes_only_with("--edit")
def console(source: SourceFlags, flags: ConsoleFlags, findings: FindingsFlags, authorizer: AuthorizerFlags) -> None:
    """Show who may what, and why, in a browser; it follows the source, and changes appear by themselves.

    Every view has an address of its own, the command line that says the same,
    and its content as JSON and CSV. It listens on this machine only, unless
    there is a login. SIGHUP reads the login's file again.

    [bold]Examples[/]

      aclog console --log DIR
      aclog console --bootstrap-controller HOST:9093 --command-config client.properties
      aclog console --hash-password User:alice
      aclog console --log DIR --login logins --listen 0.0.0.0:8443 --tls-cert C --tls-key K
    """
    from aclog.cli.web_extra import need_web_extra

    need_web_extra()
    if flags.hash_password is not None:
        from aclog.cli.console.password import print_password_line

        print_password_line(flags.hash_password)
        return
    from aclog.cli.console.run import run_console

    run_console(source, flags, findings, authorizer)
