"""An option of one value that is given twice: the last one would win in silence, so it is refused."""

from typing import Any

from aclog.metalog.errors import ConfigError


def refuse_repeats(command: Any) -> None:
    """Make a command refuse an option that is given twice with different values; twice the same is once.

    Completion takes what it finds.
    """
    make_parser = command.make_parser

    def make(ctx: Any) -> Any:
        """See typer's Command.make_parser."""
        parser = make_parser(ctx)
        if not ctx.resilient_parsing:
            _watch(parser)
        return parser

    command.make_parser = make


def _watch(parser: Any) -> None:
    options = {id(each): each for each in (*parser._long_opt.values(), *parser._short_opt.values())}
    taken: dict[str, str] = {}
    for option in options.values():
        if option.action in {"store", "store_const"}:
            option.process = _checked(option, option.process, taken)


def _checked(option: Any, process: Any, taken: dict[str, str]) -> Any:
    name = max((*option._long_opts, *option._short_opts), key=len)

    def process_once(value: Any, state: Any) -> None:
        """See typer's _Option.process. The error names no value: it may be a secret."""
        first = taken.setdefault(option.dest, name)
        if option.dest in state.opts and state.opts[option.dest] != (value if option.takes_value else option.const):
            if first != name:
                raise ConfigError(f"{first} and {name} are both given: expected one of them")
            raise ConfigError(f"{name} is given twice, with different values: expected it once")
        process(value, state)

    return process_once
