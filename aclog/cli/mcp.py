"""`aclog mcp`: questions of assistants, by the Model Context Protocol."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import attrs
from attrs import evolve, field

from aclog.cli.flags.accesses import ACCESSES_PANEL, AccessesFormat, AccessesTimezone
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Argument, Group, Option
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen

if TYPE_CHECKING:
    from aclog.mcp.tools import Fixed
    from aclog.sources.choice import ChosenSource

# The flags besides the source.


@frozen(kw_only=True)
class McpFlags:
    """What the tool `unused` reads, and how long a tool may take."""

    index: Annotated[
        str | None,
        Option(
            "--index",
            metavar="DIR",
            help="The index that [cyan]aclog accesses index[/] keeps, for the tool [cyan]unused[/]; or "
            "s3://BUCKET/PREFIX or abfss://...",
            show_default=False,
            rich_help_panel=ACCESSES_PANEL,
        ),
    ] = None
    accesses: Annotated[
        list[str],
        Option(
            "--accesses",
            metavar="PATH",
            help="An access log for that tool: with [cyan]--index[/] for the proof, without it in place of the index "
            "(as in [cyan]aclog accesses usage[/]); can be repeated.",
            show_default=False,
            rich_help_panel=ACCESSES_PANEL,
        ),
    ] = field(factory=list)
    accesses_format: AccessesFormat = None
    accesses_timezone: AccessesTimezone = None
    time_limit: Annotated[
        float, Option("--time-limit", metavar="SECONDS", min=1, help="End a tool that takes longer.")
    ] = 60.0


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
    from aclog.mcp.server import serve_tools
    from aclog.sources.acl_lines import STDIN
    from aclog.terminal.moment import take_moment

    for flag, path in source.files().items():
        if path == STDIN:
            raise ConfigError(f"{flag} -: the assistant speaks on stdin: expected a file")
    choice = source.choose()  # wrong flags are reported now, to a person
    choice.source.close()
    if choice.as_of is not None:
        take_moment(choice.as_of, of_state=True)
    authorizer.warn_of_super_users()
    serve_tools(fixed_words(source, flags, authorizer), flags.time_limit)


def fixed_words(source: SourceFlags, flags: McpFlags, authorizer: AuthorizerFlags) -> "Fixed":
    """Return what the server is started with, as the words of the command lines that answer."""
    from aclog.mcp.tools import Fixed

    def open_source(as_of: str | None) -> "ChosenSource":
        """Choose the source, without its notes: the command that answers prints them."""
        return evolve(source, as_of=source.as_of if as_of is None else as_of).choose(lambda _: None)

    # The moment is left out: each question names its own, or has that of open_source.
    return Fixed(
        open_source=open_source,
        source=tuple(flag_words(evolve(source, as_of=None))),
        authorizer=tuple(flag_words(authorizer)),
        authorizer_of_any_kafka=tuple(flag_words(evolve(authorizer, kafka_version=None, cidr=None))),
        uses=tuple(flag_words(flags, without=("time_limit",))),
        has_index=flags.index is not None,
        has_accesses=bool(flags.accesses),
    )


def flag_words(group: attrs.AttrsInstance, *, without: Iterable[str] = ()) -> list[str]:
    """Return the words that give a command the same values of a group of flags; those with their defaults are left out.

    `group` is an attrs class whose fields are annotated as aclog.cli.options expects; arguments among them have been
    put under flags already (aclog.cli.flags.positional). Each word is a `--flag=value`, which no value can make into
    another flag. `without`: names of fields.
    """
    left_out = frozenset(without)
    hints = get_type_hints(type(group), include_extras=True)
    return [
        word
        for each in attrs.fields(type(group))
        if each.name not in left_out and not isinstance(hints[each.name].__metadata__[0], Argument)
        for word in _words(_flag(hints[each.name]), getattr(group, each.name), _default(each.default))
    ]


def _words(flag: str, value: Any, default: Any) -> Iterator[str]:
    if value == default:
        return
    if isinstance(value, bool):
        yield flag if value else f"--no-{flag.removeprefix('--')}"
    else:
        yield from (f"{flag}={each}" for each in (value if isinstance(value, list) else [value]))


def _flag(hint: Any) -> str:
    """Return the first flag of an option: of `--cidr/--no-cidr` the one that switches it on."""
    [option] = hint.__metadata__
    declared: str = option.flags[0]
    return declared.partition("/")[0]


def _default(default: Any) -> Any:
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]
