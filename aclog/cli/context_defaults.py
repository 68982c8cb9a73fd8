"""Values that the chosen context gives to flags that a command line leaves out."""

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click
from attrs import define, field, frozen

from aclog.cli.flags.context import chosen_context, named_context, use_context
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.sources.contexts import ChosenContext
from aclog.terminal.columns import OutputFormat

# The flags of one command line, to which a context adds what was not typed.


@define
class Filling:
    """The flags of one command line, to which values of a context are added."""

    _parameters: dict[str, Any]
    _values: dict[str, Any]
    deciding: list[str] = field(factory=list, init=False)
    """Settings that came from the context and change decisions, as people read them."""
    client_properties: Path | None = field(default=None, init=False)
    """The file of them that came from the context."""

    def is_given(self, options: tuple[str, ...]) -> bool:
        """Return whether the command line names one of these options, or another in their place."""
        return any(self._has_value(name) for name in options)

    def put(self, option: str, value: Any) -> bool:
        """Give an option a value, unless the command has no such option, or the command line gives it."""
        if value is None or option not in self._parameters or self._has_value(option):
            return False
        self._values[self._parameters[option].name] = value
        return True

    def put_settings(self, choice: ChosenContext) -> None:
        """Give the other options the values of a context."""
        context = choice.context
        self.put("--acls-format", context.acls_format)
        self.put("--module", [f"{source}={path}" for source, path in context.modules.items()] or None)
        self.put("--topics", context.topics)
        if self.put("--command-config", _text(context.command_config)):
            self.client_properties = context.command_config
        self.put("--zk-tls-config-file", _text(context.zookeeper_config))
        self.put("--timezone", context.timezone)
        self._put_choice("--format", context.format)
        self._put_deciding(choice)

    def _put_deciding(self, choice: ChosenContext) -> None:
        context = choice.context
        everyone, never = "--allow-everyone-if-no-acl-found", "--no-allow-everyone-if-no-acl-found"
        if context.allow_everyone is False and not self._has_value(everyone):
            self.put(never, True)  # aclog.toml may have another value
        put = {
            "super_users": self.put("--super-users", context.super_users),
            "allow_everyone": not self._has_value(never) and self.put(everyone, context.allow_everyone),
            "semantics": self.put("--semantics", context.semantics),
            "cidr": not self._has_value("--kafka-version") and self.put("--cidr", context.cidr),
        }
        self.deciding += [text for name, text in context.decides().items() if put[name]]

    def _put_choice(self, option: str, value: str | None) -> None:
        """Give `--format` a value if the command knows it, and a person reads: scripts get the default format.

        Flags with the same meaning take precedence.
        """
        if not sys.stdout.isatty() or any(map(self._has_value, ("--json", "--columns", "--follow"))):
            return
        parameter = self._parameters.get(option)
        if value is None or parameter is None or parameter.annotation is not OutputFormat:
            return
        with suppress(click.BadParameter):
            self.put(option, parameter.type(value))

    def _has_value(self, option: str) -> bool:
        parameter = self._parameters.get(option)
        return parameter is not None and self._values.get(parameter.name) not in (None, [], ())


def _text(path: object) -> str | None:
    return None if path is None else str(path)


# Marks of commands: what they do with the source that their flags, or a context, name.


_WRITES = "writes_to_source"
_WRITES_WITH = "writes_to_source_with"
_ABOUT = "is_about_contexts"
_EXAMINES = "examines_contexts"

_Command = TypeVar("_Command", bound=Callable[..., Any])


def writes_to_source(*, unless: tuple[str, ...] = ()) -> Callable[[_Command], _Command]:
    """Mark a command that changes what its source flags name; with one of the flags in `unless` it only reads."""

    def mark(command: _Command) -> _Command:
        """Return the same command."""
        setattr(command, _WRITES, unless)
        return command

    return mark


def writes_only_with(*flags: str) -> Callable[[_Command], _Command]:
    """Mark a command that changes what its source flags name with one of these flags, and else only reads it."""

    def mark(command: _Command) -> _Command:
        """Return the same command."""
        setattr(command, _WRITES_WITH, flags)
        return command

    return mark


def is_about_contexts(command: _Command) -> _Command:
    """Mark a command that is about contexts itself: none of its flags comes from one."""
    setattr(command, _ABOUT, True)
    return command


def examines_contexts(command: _Command) -> _Command:
    """Mark a command that reports itself the problem of a context that it does not name, and continues without it."""
    setattr(command, _EXAMINES, True)
    return command


def goes_on_without(command: Any) -> bool:
    """Return whether a command continues without a context that cannot be used."""
    return getattr(command.callback, _EXAMINES, False) is True


def written_unless(command: Any) -> tuple[str, ...] | None:
    """Return with which flags a command does not change its source; None if it never does, or with some flags only."""
    flags: tuple[str, ...] | None = getattr(command.callback, _WRITES, None)
    return flags


def written_with(command: Any) -> tuple[str, ...]:
    """Return with which flags alone a command changes its source."""
    flags: tuple[str, ...] = getattr(command.callback, _WRITES_WITH, ())
    return flags


def takes_no_context(command: Any) -> bool:
    """Return whether a command is about contexts itself."""
    return getattr(command.callback, _ABOUT, False) is True


# What a command took from a context: printed, and confirmed, before the command runs.


@frozen(kw_only=True)
class Unused:
    """A context that the command line names, and does not use."""

    name: str
    why: str

    def tell(self, *, force: bool) -> None:
        """Print a note."""
        del force
        from aclog.terminal.output import note

        note(f"context {self.name} is not used: {self.why}")


@frozen(kw_only=True)
class ContextUse:
    """What a command took from a context."""

    choice: ChosenContext
    writes: bool
    """Whether the command changes the context's source."""
    deciding: tuple[str, ...]
    client_properties: Path | None

    def tell(self, *, force: bool) -> None:
        """Note what decides besides the rules; confirm a write to a target that this command line does not name.

        Raises:
            ConfigError: the answer is no, or there is no terminal.

        """
        from aclog.cli.flags.source import tell_what_decides
        from aclog.sources.contexts import warn_of_readers

        context = self.choice.context
        if self.client_properties is not None:
            warn_of_readers(self.client_properties)
        tell_what_decides(context, self.deciding)
        if self.writes and self.choice.is_ambient and not force:
            self._ask()

    def _ask(self) -> None:
        from aclog.terminal.output import confirms_on_terminal

        context = self.choice.context
        what = f"context {context.name} ({context.address}), {self.choice.by}"
        answer = confirms_on_terminal(
            f"Write to {what}? (y/n)",
            f"writing to {what}: stdin is not a terminal, cannot ask for confirmation: expected -c {context.name} or "
            "--force",
        )
        if not answer:
            raise ConfigError(f"nothing was written to context {context.name}")


# What a command line leaves out is taken from a context.


SOURCES = ("--log", "--snapshot", "--acls", "--ref", "--bootstrap-controller", "--bootstrap-server")
"""Flags that name a state source, or what is written."""
STORES = ("--zookeeper", "--authorizer-properties")
"""Flags that name a ZooKeeper."""
_SOURCE_GROUP = (*SOURCES, "--bootstrap-checkpoint")
_STORE_GROUP = (*STORES, "--to-zookeeper")
"""Of each group a command takes one flag; of both together, unless it takes a source and a ZooKeeper."""
_REPOSITORY = "--config"
"""A command with this flag reads aclog.toml, before a context that its command line does not name."""
META = "aclog.cli.context_defaults"
"""The key of click's context for what is to be printed, and confirmed, before the command runs."""
_NAMED = "_named_context"
"""Under which key the values of a command line have the name of a context that follows the command."""
_ANYWHERE = click.Option([_NAMED, "--context", "-c"])
"""That option; the command does not define it."""


def add_context_option(command: Any, parser: Any) -> None:
    """Have the parser of a command line take `--context`, unless the command is about contexts itself."""
    if not takes_no_context(command):
        _ANYWHERE.add_to_parser(parser, parser.ctx)


def announce_use(ctx: click.Context) -> None:
    """Print what a command took from a context, and confirm it, before it runs. Raises ConfigError: not confirmed."""
    use = ctx.meta.pop(META, None)
    if use is not None:
        use.tell(force=bool(ctx.params.get("force")))


def complete_values(ctx: click.Context, values: dict[str, Any], order: list[Any]) -> list[Any]:
    """Add the values of the context of the invocation to those of a command line; return what it gives, in its order.

    Raises:
        MetadataError, OSError: the context cannot be used.

    """
    if takes_no_context(ctx.command):
        return order
    name = values.pop(_NAMED, None)
    if ctx.resilient_parsing:
        with suppress(MetadataError, OSError):  # completion prints no error, and completes the rest
            # No callback of `aclog` itself is called.
            use_context(ctx.find_root().params.get("context") if name is None else name)
            _fill(ctx, values)
    elif not _asks_for_help(ctx, values):
        _name_context(name)
        with suppress(*_passed_over(ctx.command)):
            _fill(ctx, values)
    return [each for each in order if each is not _ANYWHERE]


def _asks_for_help(ctx: click.Context, values: dict[str, Any]) -> bool:
    option = ctx.command.get_help_option(ctx)
    return option is not None and option.name in values


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
    parameters = {name: each for each in command.params for name in each.opts}
    if "--base" in parameters and "path" in parameters:  # `aclog review PATH --base REF` compares commits of files
        parameters["--acls"] = parameters["path"]
    return parameters


def _fill(ctx: Any, values: dict[str, Any]) -> None:
    """Add the values of the context to those of a command line."""
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
    choice = chosen_context()
    if choice is None or (choice.is_ambient and _REPOSITORY in parameters):
        return
    option, value = _source_flag(choice, parameters)
    if option is None:
        raise _unfit(choice, ctx.command_path, options)
    if filling.is_given(next(group for group in groups if option in group)):
        return
    filling.put(option, value)
    filling.put_settings(choice)
    ctx.meta[META] = ContextUse(
        choice=choice,
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


def _source_flag(choice: ChosenContext, parameters: dict[str, Any]) -> tuple[str | None, Any]:
    """Return the flag of this command that a context's source is, and its value."""
    context = choice.context
    option = f"--{context.kind}"
    if option == "--zookeeper" and "--authorizer-properties" in parameters:
        from aclog.sources.named_source import store_properties

        return "--authorizer-properties", list(store_properties(context))
    return (option if option in parameters else None), context.value


def _unfit(choice: ChosenContext, command: str, options: list[str]) -> ConfigError:
    context = choice.context
    return ConfigError(
        f"context {context.name} ({choice.by}) is {context.address}: {command} takes {' or '.join(options)}"
    )
