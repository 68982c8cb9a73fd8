"""Where typer parses a command line: what it leaves out is taken from a context."""

from contextlib import suppress
from typing import Any

from aclog.cli.flags.context import chosen_context, named_context, use_context
from aclog.cli.from_context.filling import Filling
from aclog.cli.from_context.marks import goes_on_without, takes_no_context, written_unless, written_with
from aclog.cli.from_context.taken import Taken, Unused
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.sources.contexts.choosing import ChosenContext

SOURCES = ("--log", "--snapshot", "--acls", "--ref", "--bootstrap-controller", "--bootstrap-server")
"""Flags that name a state source, or what is written."""
STORES = ("--zookeeper", "--authorizer-properties")
"""Flags that name a ZooKeeper."""
_SOURCE_GROUP = (*SOURCES, "--bootstrap-checkpoint")
_STORE_GROUP = (*STORES, "--to-zookeeper")
"""Of each group a command takes one flag; of both together, unless it takes a source and a ZooKeeper."""
_REPOSITORY = "--config"
"""A command with this flag asks aclog.toml, before a context that its command line does not name."""
META = "aclog.cli.from_context"
"""Under which key typer's context has what is to be told, and asked, before the command runs."""
_NAMED = "aclog named context"
"""Under which key the values of a command line have the name of a context that follows the command."""
_ANYWHERE = object()
"""What stands for that option: it is none of the command's own."""


def take_from_context(command: Any) -> None:
    """Make a command take from the context of the invocation what its command line leaves out."""
    if takes_no_context(command):
        return
    make_parser, invoke = command.make_parser, command.invoke

    def make(ctx: Any) -> Any:
        """See typer's Command.make_parser."""
        parser = make_parser(ctx)
        parser.add_option(obj=_ANYWHERE, opts=["--context", "-c"], dest=_NAMED, action="store", nargs=1)
        parse = parser.parse_args

        def parse_args(args: list[str]) -> Any:
            """See typer's _OptionParser.parse_args."""
            values, rest, order = parse(args)
            name = values.pop(_NAMED, None)
            if ctx.resilient_parsing:
                with suppress(MetadataError, OSError):  # completion says nothing, and completes the rest
                    # No callback of `aclog` itself is called.
                    use_context(ctx.find_root().params.get("context") if name is None else name)
                    _fill(ctx, values)
            elif not values.get("help"):
                _name_context(name)
                with suppress(*_passed_over(command)):
                    _fill(ctx, values)
            return values, rest, [each for each in order if each is not _ANYWHERE]

        parser.parse_args = parse_args
        return parser

    def invoked(ctx: Any) -> Any:
        """See typer's Command.invoke."""
        taken = ctx.meta.pop(META, None)
        if taken is not None:
            taken.tell(force=bool(ctx.params.get("force")))
        return invoke(ctx)

    command.make_parser, command.invoke = make, invoked


def _passed_over(command: Any) -> tuple[type[Exception], ...]:
    """Return what may be wrong with a context without keeping the command from running."""
    return (MetadataError, OSError) if goes_on_without(command) else ()


def _name_context(name: str | None) -> None:
    """Use a context that is named after the command, where many look for such a flag. Raises ConfigError: two are."""
    if name is None:
        return
    if named_context() not in {None, name}:
        raise ConfigError("--context is given twice, with different values: expected it once")
    use_context(name)


def source_options(command: Any) -> list[str]:
    """Return the options by which a command takes a source from a context."""
    return [name for name in (*SOURCES, *STORES) if name in _parameters(command)]


def _parameters(command: Any) -> dict[str, Any]:
    found = {name: each for each in command.params for name in each.opts}
    if "--base" in found and "path" in found:  # `aclog review PATH --base REF` compares commits of files
        found["--acls"] = found["path"]
    return found


def _fill(ctx: Any, values: dict[str, Any]) -> None:
    """Add to the values of a command line what the context says."""
    parameters = _parameters(ctx.command)
    filling = Filling(parameters, values)
    options = [name for name in (*SOURCES, *STORES) if name in parameters]
    if not options:
        _note_unused(ctx, f"{ctx.command_path} takes no source from it")
        return
    both = (*_SOURCE_GROUP, *_STORE_GROUP)
    groups = [_SOURCE_GROUP, _STORE_GROUP] if "--zookeeper" in parameters else [both]
    if all(filling.is_given(group) for group in groups):
        _note_unused(ctx, "a flag names the source")
        return
    chosen = chosen_context()
    if chosen is None or (chosen.is_ambient and _REPOSITORY in parameters):
        return
    option, value = _source_flag(chosen, parameters)
    if option is None:
        raise _unfit(chosen, ctx.command_path, options)
    if filling.is_given(next(group for group in groups if option in group)):
        return
    filling.put(option, value)
    filling.put_settings(chosen)
    ctx.meta[META] = Taken(
        chosen=chosen,
        writes=option != "--zookeeper" and _writes(ctx.command, values),
        deciding=tuple(filling.deciding),
        client_properties=filling.client_properties,
    )


def _writes(command: Any, values: dict[str, Any]) -> bool:
    unless = written_unless(command)
    if unless is None:
        return any(values.get(_dest(name)) for name in written_with(command))
    return not any(values.get(_dest(name)) for name in unless)


def _note_unused(ctx: Any, why: str) -> None:
    if name := named_context():
        ctx.meta[META] = Unused(name=name, why=why)


def _dest(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _source_flag(chosen: ChosenContext, parameters: dict[str, Any]) -> tuple[str | None, Any]:
    """Return the flag of this command that a context's source is, and its value."""
    context = chosen.context
    option = f"--{context.kind}"
    if option == "--zookeeper" and "--authorizer-properties" in parameters:
        from aclog.sources.contexts.selection import store_properties

        return "--authorizer-properties", list(store_properties(context))
    return (option if option in parameters else None), context.value


def _unfit(chosen: ChosenContext, command: str, options: list[str]) -> ConfigError:
    context = chosen.context
    return ConfigError(
        f"context {context.name} ({chosen.by}) is {context.address}: {command} takes {' or '.join(options)}"
    )
