"""Commands made of functions: the annotations of a function's parameters define its options and arguments.

A parameter is one option or argument, or a group: an attrs class whose fields are annotated in the same way.

    @frozen
    class Limits:
        most: Annotated[int, Option("--most", help="Stop after this many.")] = 10

    app = Group()

    @app.command()
    def names(limits: Limits, prefix: Annotated[str, Argument(metavar="PREFIX")]) -> None: ...

Without a default an option or argument is required. Types are str, int, float, bool (a flag), Path, an enum (its values
are the choices) and a list of one of these (an option that can be repeated), each also with `| None`; `parser` reads
any other. The one option of every command is also here: `--context`, with the context that it names.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from enum import Enum
from functools import wraps
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import click
from click._utils import UNSET
from click.parser import _OptionParser
from click.shell_completion import CompletionItem

from aclog.metalog.errors import NO_SUCH_PATH, ConfigError, MetadataError
from aclog.terminal.output import ColorChoice, use_color

if TYPE_CHECKING:
    from aclog.sources.contexts import ChosenContext


_Function = TypeVar("_Function", bound=Callable[..., Any])
_Words: TypeAlias = Iterable[str | tuple[str, str]]

# Annotations of options and arguments. Plain classes: attrs takes a fifth of the time of `aclog --help` to import.


class Option:
    """An option: its flags as they are typed, `--on/--off` for the two of a bool, and its help."""

    flags: tuple[str, ...]
    help: str
    metavar: str | None
    """The placeholder of the value in the help: by default the type."""
    show_default: bool | str
    """Whether the help has the default, or a text in its place."""
    rich_help_panel: str | None
    """The panel of the help in which the option is."""
    min: int | None
    max: int | None
    parser: Callable[[str], Any] | None
    """Reads the value; raises BadParameter or ConfigError."""
    autocompletion: Callable[..., _Words] | None
    """Returns what may be typed, each also with its help: of what is typed so far, or of the click context and that."""
    callback: Callable[[Any], Any] | None
    """Takes the value when it is read."""
    is_eager: bool
    """Whether it is read before all others."""
    if_missing: str
    """What the error of a missing required option states besides: how to get a value."""
    aliases: tuple[str, ...]
    """Names that are not in the help, taken where the command has no other option of such a name."""

    def __init__(
        self,
        *flags: str,
        help: str = "",  # noqa: A002 - as click names it
        metavar: str | None = None,
        show_default: bool | str = True,
        rich_help_panel: str | None = None,
        min: int | None = None,  # noqa: A002
        max: int | None = None,  # noqa: A002
        parser: Callable[[str], Any] | None = None,
        autocompletion: Callable[..., _Words] | None = None,
        callback: Callable[[Any], Any] | None = None,
        is_eager: bool = False,
        if_missing: str = "",
        aliases: tuple[str, ...] = (),
    ) -> None:
        """Take the flags, and the rest by its name."""
        self.flags, self.help, self.metavar = flags, help, metavar
        self.show_default, self.rich_help_panel = show_default, rich_help_panel
        self.min, self.max, self.parser = min, max, parser
        self.autocompletion, self.callback, self.is_eager = autocompletion, callback, is_eager
        self.if_missing = if_missing
        self.aliases = aliases


class Argument(NamedTuple):
    """An argument, by its place on the command line; see Option."""

    metavar: str | None = None
    help: str = ""
    show_default: bool | str = True
    autocompletion: Callable[..., _Words] | None = None


# Types of values.


class Choice(click.Choice[Any]):
    """The values of an enum."""

    def normalize_choice(self, choice: Any, ctx: click.Context | None) -> str:
        """Return the value as it is typed."""
        del ctx
        return str(choice.value if isinstance(choice, Enum) else choice)


class FilePath(click.ParamType[Path]):
    """A path, which can be read if it is there; shells complete it themselves."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; see click.ParamType.convert."""
        try:
            if not os.access(value, os.R_OK) and os.path.exists(value):  # noqa: PTH110 - it is no Path yet
                self.fail(f"path {value!r} is not readable.", param, ctx)
        except ValueError as error:  # a NUL
            self.fail(str(error), param, ctx)
        return Path(value)


class Number(click.ParamType[Any]):
    """An int or a float, between two bounds, which may be None."""

    name = "number"
    _WHOLE = re.compile(r"\s*[+-]?[0-9]+(?:_[0-9]+)*(?:\.0*)?\s*", re.ASCII)

    def __init__(self, kind: type[int | float], least: int | None, most: int | None) -> None:
        """Take the type, and the bounds."""
        self._kind, self._least, self._most = kind, least, most

    @property
    def range(self) -> str | None:
        """The bounds, as the help has them."""
        if self._least is None or self._most is None:
            return (
                None if self._least is self._most else f"x>={self._least}" if self._most is None else f"x<={self._most}"
            )
        return f"{self._least}<=x<={self._most}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; see click.ParamType.convert."""
        try:
            number = self._read(value) if isinstance(value, str) else value
        except UnicodeError:
            self.fail("Input should be a valid string, unable to parse raw data as a unicode string", param, ctx)
        except ValueError:
            kind = "an integer" if self._kind is int else "a number"
            what = kind.partition(" ")[2]
            self.fail(f"Input should be a valid {what}, unable to parse string as {kind}", param, ctx)
        if self._least is not None and not number >= self._least:  # a nan is neither
            self.fail(f"Input should be greater than or equal to {self._least}", param, ctx)
        if self._most is not None and not number <= self._most:
            self.fail(f"Input should be less than or equal to {self._most}", param, ctx)
        return number

    def _read(self, text: str) -> int | float:
        text.encode()
        if self._kind is float:
            return float(text)
        if not self._WHOLE.fullmatch(text):
            raise ValueError(text)
        return int(text.partition(".")[0])


class Parsed(click.ParamType[Any]):
    """What a function makes of the text."""

    name = "text"

    def __init__(self, parse: Callable[[str], Any]) -> None:
        """Take the function."""
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value; see click.ParamType.convert."""
        del param, ctx
        return self._parse(value) if isinstance(value, str) else value


def _type(kind: Any, option: Option | Argument) -> click.ParamType[Any]:
    if isinstance(option, Option) and option.parser is not None:
        return Parsed(option.parser)
    if issubclass(kind, Enum):
        return Choice(list(kind))
    if kind is Path:
        return FilePath()
    if kind in (int, float):
        return Number(kind, *((option.min, option.max) if isinstance(option, Option) else (None, None)))
    return click.BOOL if kind is bool else click.STRING


# click's options and arguments, and their help.


class _Described(click.Parameter):
    """What an option and an argument have in common."""

    annotation: Any
    show_default: Any
    rich_help_panel: str | None = None

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the value, of several a list; None for none of them if that is the default."""
        if not self.multiple and self.nargs == 1:
            return super().type_cast_value(ctx, value)
        return [self.type(each, self, ctx) for each in value or ()] or (None if self.default is None else [])

    @property
    def type_text(self) -> str:
        """The type of the value."""
        origin = get_origin(self.annotation)
        kind = get_args(self.annotation)[0] if origin is list else self.annotation
        if isinstance(self.type, Choice):
            name = "|".join(self.type.normalize_choice(each, None) for each in self.type.choices)
        elif kind is Path and origin is not list:
            name = "path"
        else:
            name = kind.__name__
        return f"<list[{name}]>" if origin is list else f"<{name}>"

    @property
    def range_text(self) -> str | None:
        """The bounds of a number."""
        return self.type.range if isinstance(self.type, Number) else None

    @property
    def default_text(self) -> str:
        """The default, or the text in its place; empty without one."""
        if isinstance(self.show_default, str):
            return f"({self.show_default})"
        if not self.show_default or self.required or self.default is None or self.default is False:
            return ""
        values = self.default if isinstance(self.default, list) else [self.default]
        return ", ".join(str(each.value if isinstance(each, Enum) else each) for each in values)

    def _with_extras(self, text: str) -> str:
        extras = [f"default: {self.default_text}"] * bool(self.default_text)
        extras += [self.range_text] if self.range_text else []
        extras += ["required"] * self.required
        return "  ".join(filter(None, (text, f"[{'; '.join(extras)}]" if extras else "")))


class CommandOption(_Described, click.Option):
    """An option of a command."""

    if_missing: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def type_text(self) -> str:
        """The placeholder of the value: by default its type."""
        return super().type_text if self.metavar is None else self.metavar

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return how it is typed, and its help."""
        names, _ = click.formatting.join_options(self.opts)
        if not self.is_flag:
            names += f" {self.type_text}"
        elif self.secondary_opts:
            names += f" / {click.formatting.join_options(self.secondary_opts)[0]}"
        del ctx
        return names, self._with_extras(self.help or "")


class CommandArgument(_Described, click.Argument):
    """An argument of a command."""

    @property
    def human_readable_name(self) -> str:
        """Its placeholder."""
        return self.name if self.metavar is None else self.metavar

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return its placeholder in the usage line."""
        del ctx
        name = self.human_readable_name.strip("[]")
        return [(f"{{{name}}}" if self.required else f"[{name}]") + "..." * (self.nargs != 1)]

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """Return what errors name it by."""
        del ctx
        return f"'{self.human_readable_name}'"

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return its placeholder, and its help."""
        del ctx
        return self.human_readable_name, self._with_extras(self.help or "")


def _completer(complete: Callable[..., _Words]) -> Callable[..., list[CompletionItem]]:
    def completed(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """See click.Parameter's shell_complete."""
        del param
        typed = (ctx, incomplete) if len(signature(complete).parameters) > 1 else (incomplete,)
        words = [(each, None) if isinstance(each, str) else each for each in complete(*typed)]
        return [CompletionItem(word, help=text) for word, text in words if word.startswith(incomplete)]

    return completed


def _parameter(name: str, hint: Any, default: Any) -> click.Parameter:
    """Return the option or argument of a parameter, or of a field of a group."""
    annotation, option = get_args(hint)
    if get_origin(annotation) is UnionType:
        annotation, *others = (each for each in get_args(annotation) if each is not NoneType)
        if others and (isinstance(option, Argument) or option.parser is None):
            raise TypeError(f"{name}: several types: expected a parser")
    is_list = get_origin(annotation) is list
    kind = get_args(annotation)[0] if is_list else annotation
    attributes: dict[str, Any] = {
        "type": _type(kind, option), "metavar": option.metavar, "help": option.help or None,
        "required": default is Parameter.empty,
        "shell_complete": option.autocompletion and _completer(option.autocompletion),
    }  # fmt: skip
    if default is not Parameter.empty:
        attributes["default"] = default
    parameter: CommandOption | CommandArgument
    if isinstance(option, Argument):
        parameter = CommandArgument([name], nargs=-1 if is_list else 1, **attributes)
    else:
        if kind is bool:
            attributes["is_flag"] = True
        if (callback := option.callback) is not None:
            attributes["callback"] = lambda _ctx, _param, value: callback(value)
        parameter = CommandOption([name, *option.flags], multiple=is_list, is_eager=option.is_eager, **attributes)
        parameter.rich_help_panel, parameter.aliases = option.rich_help_panel, option.aliases
        parameter.if_missing = option.if_missing
    parameter.annotation, parameter.show_default = annotation, option.show_default
    return parameter


# Command lines: an option of one value that is given twice is refused, and the context gives what is left out.


class Defaults(Protocol):
    """What gives values to what a command line leaves out: the `obj` of click's context, for all commands below."""

    def add_option(self, command: click.Command, parser: _OptionParser) -> None:
        """Add the option that chooses the values to those of a command."""

    def complete(
        self, ctx: click.Context, values: dict[str, Any], order: list[click.Parameter]
    ) -> list[click.Parameter]:
        """Add to the values of a command line; return what it gives, in its order, without that option."""

    def announce(self, ctx: click.Context) -> None:
        """Print what was added, and confirm it, before the command runs."""


def _defaults(ctx: click.Context) -> Defaults | None:
    return ctx.obj if isinstance(ctx.command, Command) else None


class _Parser(_OptionParser):
    """Parses the command line of one command."""

    def add_aliases(self, parameters: Iterable[click.Parameter]) -> None:
        """Take the aliases of the options that were added, unless another option begins one: `--out`, `--output`."""
        for each in parameters:
            aliases = each.aliases if isinstance(each, CommandOption) else ()
            if any(alias.startswith(name) for alias in aliases for name in self._long_opt):
                continue
            for alias in aliases:
                names = self._long_opt if alias.startswith("--") else self._short_opt
                names.setdefault(alias, self._long_opt[each.opts[0]])

    def watch(self) -> None:
        """Refuse an option that is given twice with different values: the last would win. Twice the same is once."""
        names: dict[str | None, str] = {}
        for option in {id(each): each for each in (*self._long_opt.values(), *self._short_opt.values())}.values():
            if option.action in {"store", "store_const"}:
                option.process = _once(option, option.process, names)  # type: ignore[assignment, method-assign]

    def parse_args(self, args: list[str]) -> tuple[dict[str, Any], list[str], list[click.Parameter]]:
        """Return the values, with those of the context; the words that are left; and what was given, in its order."""
        parsed, rest, order = super().parse_args(args)
        values = {name: value for name, value in parsed.items() if value is not UNSET}
        if isinstance(self.ctx, click.Context) and (defaults := _defaults(self.ctx)) is not None:
            order = defaults.complete(self.ctx, values, order)
        return values, rest, order


def _once(option: Any, process: Callable[[Any, Any], None], names: dict[str | None, str]) -> Callable[[Any, Any], None]:
    name = max((*option._long_opts, *option._short_opts), key=len)

    def process_once(value: Any, state: Any) -> None:
        """See click's parser. The error names no value: it may be a secret."""
        first = names.setdefault(option.dest, name)
        if option.dest in state.opts and state.opts[option.dest] != (value if option.takes_value else option.const):
            if first != name:
                raise ConfigError(f"{first} and {name} are both given: expected one of them")
            raise ConfigError(f"{name} is given twice, with different values: expected it once")
        process(value, state)

    return process_once


# Commands, and groups of commands.


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Print the complete page of a command, and end."""
    del param
    if value and not ctx.resilient_parsing:
        from aclog.cli.panels import print_help

        print_help(ctx.command, ctx, is_complete=True)
        ctx.exit()


HELP_ALL = "help_all"
_HELP_ALL = click.Option(
    [HELP_ALL, "--help-all"], is_flag=True, expose_value=False, is_eager=True, hidden=True, callback=_show_all
)
"""Of every command; the text of `--help` names it."""


def _choose_color(ctx: click.Context, param: click.Parameter, value: ColorChoice | None) -> None:
    """Use a value of `--color`."""
    del ctx, param
    if value is not None:
        use_color(value)


_COLOR = click.Option(
    ["color_", "--color"],
    type=Choice(list(ColorChoice)),
    expose_value=False,
    is_eager=True,
    hidden=True,
    callback=_choose_color,
)
"""Of every command after its name; `aclog` itself has it with a help."""


class _Shown(click.Command):
    """A command with the help of aclog.cli.panels."""

    def get_help(self, ctx: click.Context) -> str:
        """Print the help; return nothing more to print."""
        from aclog.cli.panels import print_help

        print_help(self, ctx)
        return ""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """See click.Command.get_help_option."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "Show this page. [cyan]--help-all[/] shows the help of all flags."
        return option

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """See click.Command.get_params."""
        own = super().get_params(ctx)
        return [*own, _HELP_ALL, *(() if any("--color" in each.opts for each in own) else (_COLOR,))]

    def make_parser(self, ctx: click.Context) -> _OptionParser:
        """Return what parses the command line."""
        parser = _Parser(ctx)
        for parameter in self.get_params(ctx):
            parameter.add_to_parser(parser, ctx)
        if (defaults := _defaults(ctx)) is not None:
            defaults.add_option(self, parser)
        parser.add_aliases(self.get_params(ctx))
        if not ctx.resilient_parsing:  # completion takes what it finds
            parser.watch()
        return parser


class Command(_Shown):
    """A command that is a function; see the module's docstring. The function's docstring is the help."""

    allow_extra_args = True
    """For click: they are refused below."""

    def __init__(self, function: Callable[..., Any], name: str | None, settings: dict[str, Any] | None) -> None:
        """Make a command of the function, by default of its name.

        Raises:
            TypeError: two groups have a field of the same name.

        """
        super().__init__(
            name or function.__name__.lower().replace("_", "-"),
            callback=_gathered(function),
            params=parameters_of(function),
            help=cleandoc(function.__doc__ or ""),
            context_settings=settings,
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click.Command.parse_args."""
        if (rest := super().parse_args(ctx, args)) and not ctx.resilient_parsing:
            ctx.fail(f"Got unexpected extra argument(s) ({' '.join(map(visible, rest))})")
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Print what the command took from a context, confirm it, and run the function.

        Raises:
            ConfigError: also a path that does not exist, with the option that names it.

        """
        if (defaults := _defaults(ctx)) is not None:
            defaults.announce(ctx)
        values = dict(ctx.params)
        try:
            return super().invoke(ctx)
        except (FileNotFoundError, MetadataError) as error:
            text = str(error) if isinstance(error, MetadataError) else f"{error.filename}: {NO_SUCH_PATH}"
            path, problem, rest = text.partition(f": {NO_SUCH_PATH}")
            option = self._option_of(path, values) if problem else None
            if option is None:
                raise
            raise ConfigError(f"{option}: {path}{problem}{rest}") from error

    def _option_of(self, path: str, values: Mapping[str, Any]) -> str | None:
        """Return the option whose value, or one of its values, is a path; None if no option names it."""
        for each in self.params:
            value = values.get(each.name or "")
            paths = [str(one) for one in (value if isinstance(value, list) else [value]) if isinstance(one, str | Path)]
            if isinstance(each, click.Option) and path in paths:
                return each.opts[0]
        return None


class Group(click.Group, _Shown):
    """A group of commands, in the order in which they are added."""

    def command(  # type: ignore[override]
        self, name: str | None = None, *, context_settings: dict[str, Any] | None = None
    ) -> Callable[[_Function], _Function]:
        """Return a decorator that adds a function as a command, and returns the function."""

        def add(function: _Function) -> _Function:
            """Add the function."""
            self.add_command(Command(function, name, context_settings))
            return function

        return add

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        del ctx
        return list(self.commands)


def visible(text: str) -> str:
    """Return a word of a command line with its control characters escaped."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda match: f"\\x{ord(match[0]):02x}", text)


def parameters_of(function: Callable[..., Any]) -> list[click.Parameter]:
    """Return the options and arguments of a function, in the order of its parameters.

    Raises:
        TypeError: two groups have a field of the same name.

    """
    hints = get_type_hints(function, include_extras=True)
    parameters: list[click.Parameter] = []
    for name, parameter in signature(function).parameters.items():
        if _is_group(hints[name]):
            parameters += _group_parameters(hints[name])
        elif hints[name] is not click.Context:
            parameters.append(_parameter(name, hints[name], parameter.default))
    names = [each.name for each in parameters]
    if len(set(names)) < len(names):
        raise TypeError(f"{function.__name__}: two groups have a field of the same name: {sorted(names)}")
    takes_all_words = any(isinstance(each, CommandArgument) and each.nargs < 0 for each in parameters)
    return [each for each in parameters if not (takes_all_words and _is_optional_word(each))]


def _is_optional_word(parameter: click.Parameter) -> bool:
    """Return whether a parameter is one argument that may be left out: none is left for it beside any number."""
    return isinstance(parameter, CommandArgument) and parameter.nargs == 1 and not parameter.required


def _is_group(hint: Any) -> bool:
    return hasattr(hint, "__attrs_attrs__")


def _group_parameters(group: Any) -> Iterable[click.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [_parameter(each.name, hints[each.name], _default(each.default)) for each in group.__attrs_attrs__]


def _default(default: Any) -> Any:
    import attrs  # which a group has imported

    if default is attrs.NOTHING:
        return Parameter.empty
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]


def _gathered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of all values that gives each group its own."""
    hints = get_type_hints(function)
    groups = {name: hints[name] for name in signature(function).parameters if _is_group(hints[name])}
    contexts = [name for name in signature(function).parameters if hints[name] is click.Context]

    @wraps(function)
    def gathered(**values: Any) -> Any:
        """Run the function."""
        for name, group in groups.items():
            own = {each.alias: values.pop(each.name) for each in group.__attrs_attrs__ if each.name in values}
            values[name] = group(**own)
        values.update(dict.fromkeys(contexts, click.get_current_context(silent=True)))
        return function(**values)

    return gathered


# The flag that names a context for any command, and the context that this invocation uses.


def complete_contexts(incomplete: str) -> list[str]:
    """Return the names of contexts that begin so, for shell completion."""
    from aclog.sources.contexts import read_context_file

    return [name for name in read_context_file().names if name.startswith(incomplete)]


ContextName: TypeAlias = Annotated[
    str | None,
    Option(
        "--context",
        "-c",
        metavar="NAME",
        autocompletion=complete_contexts,
        help="Take source and settings from this context, unless a flag names a source. "
        "[dim]Default: $ACLOG_CONTEXT, or `context use`[/]",
    ),
]


class _Invocation:
    """What one command line states about contexts. A plain class: `aclog --help` imports no attrs."""

    __slots__ = ("_choice", "_is_found", "name")

    def __init__(self, name: str | None) -> None:
        self.name = name
        self._choice: ChosenContext | None = None
        self._is_found = False

    def choice(self) -> "ChosenContext | None":
        """Return the context, as it was when this was first called. Raises as chosen_context."""
        if not self._is_found:
            from aclog.sources.contexts import choose_context

            self._choice, self._is_found = choose_context(self.name), True
        return self._choice


_THIS: ContextVar[_Invocation | None] = ContextVar("aclog_context", default=None)
"""Of this invocation of a command, which runs in a context of its own (aclog.cli.app.run)."""


def use_context(name: str | None) -> None:
    """Use the context of this name for the rest of this invocation; None: that of the environment, or the current one.

    Raises:
        ConfigError, OSError: as aclog.sources.contexts.choose_context, if one is named.

    """
    this = _Invocation(name)
    _THIS.set(this)
    if name is not None:
        this.choice()


def named_context() -> str | None:
    """Return the name that this command line gives; None if it names none."""
    this = _THIS.get()
    return None if this is None else this.name or None


def chosen_context() -> "ChosenContext | None":
    """Return the context of this invocation; None without one. The file is read once, when this is first called.

    Raises:
        ConfigError, OSError: as aclog.sources.contexts.choose_context.

    """
    this = _THIS.get()
    if this is None:
        this = _Invocation(None)
        _THIS.set(this)
    return this.choice()
