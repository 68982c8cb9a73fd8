"""The command line that answers a question."""

from attrs import evolve, frozen

from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.mcp.arguments import Arguments, Check, Unused, option_words
from aclog.cli.mcp.end_offset import AskedState, asked_state
from aclog.cli.mcp.flag_words import flag_words, line_text
from aclog.cli.mcp.flags import McpFlags
from aclog.cli.mcp.tool import Tool
from aclog.metalog.errors import ConfigError
from aclog.snapshots.moments import LATEST

_COMPARISONS = frozenset(("no-new-access", "equal"))


@frozen(kw_only=True)
class Fixed:
    """What the server was started with: no question changes it."""

    source: SourceFlags
    authorizer: AuthorizerFlags
    flags: McpFlags


@frozen(kw_only=True)
class CommandLine:
    """A command line, and the state or the two states that it is about."""

    words: tuple[str, ...]
    """After `aclog`."""
    stdin: str | None
    """What the command reads there."""
    state: AskedState
    to_state: AskedState | None

    @property
    def text(self) -> str:
        """The line, for a shell."""
        return line_text(self.words)


def command_line(tool: Tool, arguments: Arguments, fixed: Fixed) -> CommandLine:
    """Return the command line for a question: about offsets, so that it says the same for ever.

    Raises:
        ConfigError: the arguments do not go together, or name no moment.
        MetadataError, OSError: the source cannot be read, or not so far back.

    """
    change: str | None = getattr(arguments, "change", None)
    to_as_of = _second_moment(tool, arguments)
    command = _command(tool, arguments, fixed.flags)
    state = asked_state(fixed.source, arguments.as_of)
    to_state = None if to_as_of is None else asked_state(fixed.source, to_as_of)
    words = [
        *command,
        *flag_words(evolve(fixed.source, as_of=None)),
        *(() if state.as_of is None else (f"--as-of={state.as_of}",)),
        *(() if to_state is None else (f"--to-as-of={to_state.as_of or to_as_of}",)),
        *(() if change is None else ("--change=-",)),
        *option_words(arguments),
        *(() if command[0] == "unused" else flag_words(_authorizer(fixed.authorizer, arguments))),
        f"--format={'json' if tool.name == 'explain' else 'jsonl'}",
    ]
    return CommandLine(words=tuple(words), stdin=change, state=state, to_state=to_state)


def _authorizer(flags: AuthorizerFlags, arguments: Arguments) -> AuthorizerFlags:
    """Return the flags that the server was started with, but for a Kafka that the question names."""
    return flags if arguments.kafka_version is None else evolve(flags, kafka_version=None, cidr=None)


def _command(tool: Tool, arguments: Arguments, flags: McpFlags) -> list[str]:
    if isinstance(arguments, Check):
        return ["check", arguments.check]
    if isinstance(arguments, Unused):
        return _unused(arguments, flags)
    return [tool.name.replace("_", "-"), *(["--origins"] if tool.name == "explain" else [])]


def _unused(arguments: Unused, flags: McpFlags) -> list[str]:
    words = flag_words(flags, without=("time_limit",))
    if flags.index is not None:
        if arguments.kafka_version is not None:
            raise ConfigError("kafka_version: the index was made with what decided: expected no such argument")
        return ["unused", *words]
    if not flags.accesses:
        raise ConfigError("nothing tells what was used: start aclog mcp with --index DIR or --accesses PATH")
    if arguments.gap is not None or arguments.ignore_brokers:
        raise ConfigError("gap, ignore_brokers: an index tells when brokers logged: start aclog mcp with --index DIR")
    return ["usage", *words]


def _second_moment(tool: Tool, arguments: Arguments) -> str | None:
    """Return the moment of the second state; None if the question has none. Raises ConfigError: it needs one."""
    to_as_of: str | None = getattr(arguments, "to_as_of", None)
    change: str | None = getattr(arguments, "change", None)
    if to_as_of is not None and change is not None:
        raise ConfigError("to_as_of and change: expected one of them")
    if to_as_of is not None or change is not None:
        return to_as_of
    if tool.name == "diff" or (isinstance(arguments, Check) and arguments.check in _COMPARISONS):
        if getattr(arguments, "to_kafka_version", None) is not None and arguments.as_of is None:
            return None  # of the same state
        if arguments.as_of is None:
            raise ConfigError(
                "expected to_as_of, change or to_kafka_version, or as_of to compare with the newest state"
            )
        return LATEST
    return None
