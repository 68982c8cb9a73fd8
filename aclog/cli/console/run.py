"""Serves the console."""

from collections.abc import Iterator

from aclog.cli.console.flags import ConsoleFlags
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.policies import settings_of
from aclog.cli.serving import Endpoint, followed, listen_address, serve
from aclog.console.pages.command_line import CommandLine
from aclog.console.pages.console import Console
from aclog.console.pages.states import States
from aclog.console.web.app import WebConsole
from aclog.metalog.errors import ConfigError
from aclog.terminal.notices import note


def run_console(source: SourceFlags, flags: ConsoleFlags, authorizer: AuthorizerFlags) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        ConfigError: flags that do not go together, or the address cannot be listened on.

    """
    endpoint = Endpoint(address=listen_address(flags.listen))
    endpoint.check(secrets=None, ways="--login")
    chosen = source.choose(note)
    if chosen.moment is not None:
        raise ConfigError("--as-of: the console shows the newest state, and others in its pages")
    live = followed(chosen)
    console = Console(
        name=chosen.source.name,
        states=States(live=live, settings=settings_of(authorizer)),
        command=CommandLine(source=tuple(source_words(source)), settings=tuple(settings_words(authorizer))),
        place=chosen.source.change_place,
        origins=chosen.origins,
    )
    live.start()
    try:
        serve(WebConsole(console=console).app(), endpoint, f"console at {endpoint.url}; stop with Ctrl-C")
    finally:
        live.stop()


def source_words(source: SourceFlags) -> Iterator[str]:
    """Yield the flags that name a source."""
    given = {
        "--log": source.log,
        "--snapshot": source.snapshot,
        "--acls": source.acls,
        "--ref": source.ref,
        "--acls-format": source.acls_format,
        "--topics": source.topics_file,
        "--bootstrap-controller": source.bootstrap_controller,
        "--bootstrap-server": source.bootstrap_server,
        "--command-config": source.command_config,
    }
    for flag, value in given.items():
        if value is not None:
            yield from (flag, str(value))
    for module in source.modules:
        yield from ("--module", module)


def settings_words(flags: AuthorizerFlags) -> Iterator[str]:
    """Yield the flags that set an authorizer."""
    if flags.super_users:
        yield from ("--super-users", flags.super_users)
    if flags.allow_everyone:
        yield "--allow-everyone-if-no-acl-found"
    if flags.documented:
        yield from ("--semantics", "documented")
    if flags.cidr:
        yield "--cidr"
