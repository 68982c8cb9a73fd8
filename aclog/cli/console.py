"""`aclog console`: ACLs, answers and findings in a browser."""

import sys
from getpass import getpass

from aclog.cli.app import writes_only_with
from aclog.cli.flags.commands import ConsoleFlags, FindingsFlags
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group
from aclog.metalog.errors import ConfigError
from aclog.terminal.output import say

# `aclog console`: who may what, and why, in a browser.


app = Group()


@app.command()
@writes_only_with("--edit")
def console(source: SourceFlags, flags: ConsoleFlags, findings: FindingsFlags, authorizer: AuthorizerFlags) -> None:
    """Show access and its reasons in a browser; pages follow the source, and update by themselves.

    Every view has an address, the equivalent command line, and its content as
    JSON and CSV. The console listens on the loopback interface only, unless a
    login is configured. SIGHUP reads the file of the login again.

    [bold]Examples[/]

      aclog console DIR
      aclog console --bootstrap-controller HOST:9093 --command-config client.properties
      aclog console --hash-password User:alice
      aclog console --log DIR --login logins --listen 0.0.0.0:8443 --tls-cert C --tls-key K
    """
    from aclog.ops.extras import need_web_extra

    need_web_extra()
    if flags.hash_password is not None:
        print_password_line(flags.hash_password)
        return
    from aclog.cli.console_run import run_console

    run_console(source, flags, findings, authorizer)


# Makes a line of the password file.


def print_password_line(principal: str) -> None:
    """Prompt for a password, twice on a terminal, and print the line of `--login`'s file.

    Raises:
        ConfigError: an invalid principal, or an unusable password.

    """
    if sys.stdin.isatty():
        password = getpass(f"password of {principal}: ")
        if getpass("the same again: ") != password:
            raise ConfigError("the passwords differ: nothing was printed")
    else:
        password = sys.stdin.readline().rstrip("\n")
    from aclog.console.login.passwords import password_line

    say(password_line(principal, password))
